"""The directive: what `_meta.nextTool` holds, and how to read it (TC-D-01 to TC-D-19)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from banking_server.chaining.values import canonical

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
    `name` is read in its place (TC-D-06): a deprecated alias that early servers send. It is never
    written.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    tool: str = Field(min_length=1)
    """The exact name of a tool on the server that sent the result."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    """The complete arguments; absent means `{}` (TC-C-06)."""

    title: str | None = Field(default=None, min_length=1, max_length=MAX_TITLE)
    """What the step is for, in the server's words for the user. Never for a model (TC-C-40)."""

    @model_validator(mode="before")
    @classmethod
    def _read_alias(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "name" not in value:
            return value
        if "tool" not in value:
            return {**value, "tool": value["name"]}
        # A `tool` that is not a string is refused for its type, so only strings are compared.
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
    """The result carries something that is not a directive, so the chain ends (TC-C-08)."""

    reason: str
    """What is wrong. It repeats no value of the directive, so that it can be logged."""


@dataclass(frozen=True)
class Found:
    """The result carries a directive."""

    directive: Directive
    deprecated_alias: bool
    """The server sent the alias `name`, which is worth telling its authors."""


Reading = Absent | Malformed | Found
"""What a result's `_meta` says about the next tool."""


def read_directive(meta: object) -> Reading:
    """Read the directive from the `_meta` of a result. Never raises, whatever `meta` holds.

    `meta` is the result's `_meta` as parsed from JSON, or None if the result has none. The result
    must be the complete result of a `tools/call`: nowhere else is there a directive (TC-D-11).

    Python's parsers keep the last of two members with one name and say nothing; and they read
    integers of any length exactly, which are compared as the doubles that others read (TC-D-19).
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
        pass  # Well-formed for all we know. Its arguments are too deep to be checked.
    return Found(directive, deprecated_alias="name" in value)


def is_title(value: object) -> bool:
    """Return whether the `title` of a directive is one; any other is ignored (TC-D-05)."""
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
"""What a member must be, by pydantic's type of the mistake."""
