"""Consent to calls: to those that the model asks for, and to the same calls by a directive."""

from typing import Any, Protocol

from banking_server.agent.toolbox import OfferedTool
from banking_server.chaining.values import canonical


class CallPolicy(Protocol):
    """Decides for the host whether a call is made that the model, or a directive, asks for."""

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the call may be made. It may ask the user."""
        ...


class AllowReadOnly:
    """Allows calls of tools annotated as read-only, and no others, since nobody can be asked.

    The annotations of a server that the host does not trust decide nothing.
    """

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the tool's annotations say that it changes nothing."""
        return tool.read_only


class Consent:
    """What the host says to the calls of one conversation, whoever asks for them.

    One policy holds for the model's calls and for the same calls by a directive (TC-C-20). A
    follow-up call whose answer was lost is not made again, by whomever, unless its tool can be
    called twice without harm (TC-C-39).

    Args:
        policy: Asked before each call of a tool that is not read-only.
    """

    def __init__(self, policy: CallPolicy) -> None:
        self._policy = policy
        self._unanswered: set[tuple[str, str]] = set()

    def may_have_been_made(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether this was a follow-up call that brought no answer, and must not be made
        twice."""
        return not tool.repeatable and call_key(tool, arguments) in self._unanswered

    async def to_call(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether a call may be made, whoever asks for it."""
        if self.may_have_been_made(tool, arguments):
            return False
        return tool.read_only or await self._policy.allows(tool, arguments)

    def begun(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Take note that a follow-up call is made; until it is answered, its effect is unknown."""
        self._unanswered.add(call_key(tool, arguments))

    def answered(self, tool: OfferedTool, arguments: dict[str, Any]) -> None:
        """Take note that a call brought its result, or was not made after all."""
        self._unanswered.discard(call_key(tool, arguments))


def call_key(tool: OfferedTool, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return what two equal calls have in common, whether or not they write out a default."""
    properties = tool.tool.input_schema.get("properties")
    defaults = {
        name: schema["default"]
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(schema, dict) and "default" in schema
    }
    try:
        return tool.name, canonical({**defaults, **arguments})
    except ValueError:  # A default that nobody can send.
        return exact_key(tool, arguments)


def exact_key(tool: OfferedTool, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return what two calls have in common that say the same: the one is agreed to as the other."""
    return tool.name, canonical(arguments)
