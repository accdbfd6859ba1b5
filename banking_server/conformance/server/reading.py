"""What the suite reads from a reply: the directive, and how the call ended."""

from dataclasses import dataclass
from typing import Any

from banking_server.chaining.directive import META_KEY
from banking_server.conformance.message import Json
from banking_server.conformance.target.connection import Reply, ToolCall
from banking_server.conformance.values import identity, shown

CallKey = tuple[str, str]
"""What makes one call the same as another: the tool, and what its arguments come to."""


def key_of(tool: str, arguments: Json) -> CallKey:
    """Return what makes a call with these arguments the same as another."""
    return tool, identity(arguments)


@dataclass(frozen=True)
class SeenDirective:
    """A directive as a server sent it, well-formed or not."""

    value: Any

    @property
    def tool(self) -> str | None:
        """The tool that it names, by the alias if need be; None if it names none."""
        if not isinstance(self.value, dict):
            return None
        tool = self.value["tool"] if "tool" in self.value else self.value.get("name")
        return tool if isinstance(tool, str) and tool else None

    @property
    def arguments(self) -> Json | None:
        """Its arguments; None if they are not an object."""
        if not isinstance(self.value, dict):
            return None
        arguments = self.value.get("arguments", {})
        return arguments if isinstance(arguments, dict) else None

    @property
    def key(self) -> CallKey | None:
        """What makes the call that it asks for the same as another; None if it is malformed."""
        if self.tool is None or self.arguments is None:
            return None
        return key_of(self.tool, self.arguments)


def carries_directive(result: object) -> bool:
    """Return whether a result has the directive's member in its `_meta`, whatever it holds."""
    meta = result.get("_meta") if isinstance(result, dict) else None
    return isinstance(meta, dict) and META_KEY in meta


def directive_of(reply: Reply) -> SeenDirective | None:
    """Return the directive on a result, in whatever shape it is; None if there is none."""
    result = reply.result
    if result is None or not carries_directive(result):
        return None
    return SeenDirective(result["_meta"][META_KEY])


def is_error(call: ToolCall) -> bool:
    """Return whether the result of a call says that the tool failed."""
    return (call.final.result or {}).get("isError") is True


def is_refused(call: ToolCall) -> bool:
    """Return whether a call ended in a protocol error, or in a result that is an error."""
    return call.final.error is not None or is_error(call)


def ending(call: ToolCall) -> str:
    """Say in one line how a call ended, with its directive."""
    reply = call.final
    if reply.error is not None:
        return f"error {reply.error.get('code')}"
    seen = directive_of(reply)
    ended = "isError true" if is_error(call) else "a result"
    return f"{ended} with " + ("no directive" if seen is None else f"nextTool {shown(seen.value)}")


def how_refused(call: ToolCall) -> tuple[object, bool]:
    """Return the code of a call's protocol error, and whether its result has `isError`.

    It is `(None, False)` if the call was not refused.
    """
    return None if call.final.error is None else call.final.error.get("code"), is_error(call)


def ended_alike(one: ToolCall, other: ToolCall) -> bool:
    """Return whether two calls ended alike, as far as the specification is concerned."""
    return _comparable(one) == _comparable(other)


def _comparable(call: ToolCall) -> tuple[object, ...]:
    seen = directive_of(call.final)
    return how_refused(call), None if seen is None else seen.key or identity(seen.value)
