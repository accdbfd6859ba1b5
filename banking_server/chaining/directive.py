"""The directive: what `_meta.nextTool` holds, and how to read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

IDENTIFIER: Final = "com.example/tool-chaining"
"""The extension's identifier. Provisional: `com.example` belongs to nobody, so it can be
replaced here, in one place, once the extension has a home."""

META_KEY: Final = "nextTool"
"""The member of a result's `_meta` that holds the directive."""

SETTINGS: Final[dict[str, Any]] = {"version": 1}
"""What both halves declare at `capabilities.extensions[IDENTIFIER]`."""


class Directive(BaseModel):
    """Call `tool` next, with exactly `arguments`.

    Types are strict and members it does not know are ignored. Built from JSON it reads `name`
    where `tool` is absent, a deprecated alias that early servers emit; it is never written.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    tool: str = Field(min_length=1)
    """The exact name of a tool on the server that sent the result."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, complete; absent means `{}`."""

    @model_validator(mode="before")
    @classmethod
    def _read_alias(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "name" not in value:
            return value
        if "tool" not in value:
            return {**value, "tool": value["name"]}
        # A tool that is no string is refused by its type, so only strings need comparing.
        if isinstance(value["tool"], str) and value["tool"] != value["name"]:
            raise ValueError("both 'tool' and its deprecated alias 'name' are present, and differ")
        return value

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON value of `_meta.nextTool`."""
        return {"tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True)
class Absent:
    """The result carries no directive: it is final."""


@dataclass(frozen=True)
class Malformed:
    """The result carries something that is no directive: it is final, and the server is wrong."""

    reason: str
    """What is wrong, without repeating values."""


@dataclass(frozen=True)
class Found:
    """The result carries a directive."""

    directive: Directive
    deprecated_alias: bool
    """The server sent the alias `name`: worth telling its authors."""


Reading = Absent | Malformed | Found


def read_directive(meta: object) -> Reading:
    """Read the directive of a result from its `_meta`; never raises, whatever `meta` holds.

    `meta` is the result's `_meta` as parsed from JSON, or None where the result has none.
    """
    if not isinstance(meta, Mapping) or META_KEY not in meta:
        return Absent()
    value = meta[META_KEY]
    if not isinstance(value, Mapping):
        return Malformed(f"{META_KEY} must be an object")
    try:
        directive = Directive.model_validate(value)
    except ValidationError as error:
        return Malformed(
            "; ".join(
                f"{'.'.join([META_KEY, *map(str, problem['loc'])])}: {problem['msg']}"
                for problem in error.errors(
                    include_url=False, include_context=False, include_input=False
                )[:3]
            )
        )
    return Found(directive, deprecated_alias="name" in value)
