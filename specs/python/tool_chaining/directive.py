"""The directive in `_meta.nextTool`, and how to read it (TC-D-01 to TC-D-19)."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

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
"""The most characters of a directive's `title`."""

_NOT_IN_A_TITLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, line ends, and characters that control the direction of text (TC-S-27)."""


@dataclass(frozen=True)
class Directive:
    """Call `tool` next, with exactly `arguments`.

    Raises ValueError if it is malformed (TC-D-01).
    """

    tool: str
    """The exact name of a tool on the server that sent the result."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """The complete arguments; absent means `{}` (TC-C-06)."""

    title: str | None = None
    """The server's text for the user about this step. Never for a model (TC-C-53)."""

    def __post_init__(self) -> None:
        if not isinstance(self.tool, str):
            raise ValueError(f"{META_KEY}.tool: must be a string")
        if not self.tool:
            raise ValueError(f"{META_KEY}.tool: must not be empty")
        if not isinstance(self.arguments, dict):
            raise ValueError(f"{META_KEY}.arguments: must be an object")
        if self.title is not None and not is_title(self.title):
            raise ValueError(
                f"{META_KEY}.title: must be plain text of 1 to {MAX_TITLE} characters on one line"
            )

    def to_wire(self) -> dict[str, Any]:
        """Return the directive as the JSON value of `_meta.nextTool`."""
        title = {} if self.title is None else {"title": self.title}
        return {"tool": self.tool, "arguments": self.arguments, **title}


@dataclass(frozen=True)
class Absent:
    """The result carries no directive: the chain is complete."""


@dataclass(frozen=True)
class Malformed:
    """The result's `nextTool` is not a directive, so the chain ends (TC-D-19)."""

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
    if not isinstance(meta, dict) or META_KEY not in meta:
        return Absent()
    value = meta[META_KEY]
    if not isinstance(value, dict):
        return Malformed(f"{META_KEY} must be an object")
    if "tool" not in value and "name" not in value:
        return Malformed(f"{META_KEY}.tool: is missing")
    # The origin's text calls the member `name`.
    tool, title = value["tool" if "tool" in value else "name"], value.get("title")
    try:
        directive = Directive(tool, value.get("arguments", {}), title if is_title(title) else None)
    except ValueError as error:
        return Malformed(str(error))
    try:
        canonical(value)
    except ValueError as error:
        return Malformed(f"{META_KEY}: {error}")
    except RecursionError:
        pass  # It counts as well-formed: its arguments are too deep for this check.
    return Found(directive)


def is_title(value: object) -> bool:
    """Return whether a value is a valid `title` (TC-S-27). Readers ignore others (TC-D-05)."""
    fits = isinstance(value, str) and 1 <= len(value) <= MAX_TITLE
    return fits and _NOT_IN_A_TITLE.search(str(value)) is None
