"""The directive in `_meta.nextTool`, and how to read it (TC-D-01 to TC-D-19)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tool_chaining.values import canonical

IDENTIFIER: Final = "com.example/tool-chaining"
"""The extension's identifier. It is provisional, since `com.example` belongs to nobody: once the
extension has a home, it is replaced here and nowhere else."""

META_KEY: Final = "nextTool"
"""The member of a result's `_meta` that holds the directive."""

SETTINGS: Final[dict[str, Any]] = {"version": 1}
"""The settings object, which both halves put at `capabilities.extensions[IDENTIFIER]`."""

DEFAULT_LIMIT: Final = 5
"""Calls in one chain, the first one included, unless the user or the host sets another limit
(TC-C-09)."""

MAX_TITLE: Final = 200
"""Characters of a directive's `title` at most."""


class Directive(BaseModel):
    """Call `tool` next, with exactly `arguments`.

    Types are strict (TC-C-08), and unknown members are ignored (TC-D-05). If `tool` is absent,
    `name` is read in its place (TC-D-06): early servers send that deprecated alias. It is never
    sent.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    tool: str = Field(min_length=1)
    """The exact name of a tool on the server that sent the result."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    """The complete arguments; absent means `{}` (TC-C-06)."""

    title: str | None = Field(default=None, min_length=1, max_length=MAX_TITLE)
    """The server's text for the user about this step. Never for a model (TC-C-40)."""

    @model_validator(mode="before")
    @classmethod
    def _read_alias(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "name" not in value:
            return value
        if "tool" not in value:
            return {**value, "tool": value["name"]}
        # If `tool` is not a string, the check of its type reports that.
        if isinstance(value["tool"], str) and value["tool"] != value["name"]:
            raise ValueError("both 'tool' and its deprecated alias 'name' are present, and differ")
        return value

    def to_wire(self) -> dict[str, Any]:
        """Return the directive as the JSON value of `_meta.nextTool`."""
        title = {} if self.title is None else {"title": self.title}
        return {"tool": self.tool, "arguments": self.arguments, **title}


@dataclass(frozen=True)
class Absent:
    """The result carries no directive: the chain is complete."""


@dataclass(frozen=True)
class Malformed:
    """The result's `nextTool` is not a directive, so the chain ends (TC-C-08)."""

    reason: str
    """What is wrong, without any value of the directive, so that it can be logged."""


@dataclass(frozen=True)
class Found:
    """The result carries a directive."""

    directive: Directive


Reading = Absent | Malformed | Found
"""What a result's `_meta` says about the next tool."""


def read_directive(meta: object) -> Reading:
    """Read the directive from the `_meta` of a result. Never raises, whatever `meta` holds.

    `meta` is the result's `_meta` as parsed from JSON, or None if the result has none. Only the
    complete result of a `tools/call` can have a directive (TC-D-11).

    If a member occurs twice, Python's JSON parser keeps the last one and reports no error. It reads
    integers of any length exactly; they are compared as doubles, as other readers see them
    (TC-D-19).
    """
    if not isinstance(meta, Mapping) or META_KEY not in meta:
        return Absent()
    value = meta[META_KEY]
    if not isinstance(value, Mapping):
        return Malformed(f"{META_KEY} must be an object")
    usable = dict(value)
    if not is_title(value.get("title")):
        usable.pop("title", None)
    try:
        directive = Directive.model_validate(usable)
        canonical(dict(value))
    except ValidationError as error:
        return Malformed(_explain(error))
    except ValueError as error:
        return Malformed(f"{META_KEY} cannot be written as RFC 8785 has it: {error}")
    except RecursionError:
        pass  # It counts as well-formed: its arguments are too deep for this check.
    return Found(directive)


def is_title(value: object) -> bool:
    """Return whether a value is a valid `title` of a directive; others are ignored (TC-D-05)."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_TITLE


def _explain(error: ValidationError) -> str:
    """Return the first problem in one line, with its place and without the value."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    words = _RULES.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{'.'.join([META_KEY, *map(str, problem['loc'])])}: {words}"


_RULES: Final = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "dict_type": "must be an object",
}
"""What is wrong with a member, by pydantic's type of the error."""
