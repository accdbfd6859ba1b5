"""Consent to calls: to those that the model asks for, and to the same calls by a directive."""

from typing import Any, Protocol

from banking_server.agent.toolbox import OfferedTool
from banking_server.chaining.values import canonical


class CallPolicy(Protocol):
    """Decides for the host whether a call is made that the model, or a directive, asks for.

    A policy that can ask the user may have a second method, `async def allows_again(self, tool,
    arguments)`. It is asked in place of `allows` about a call that was started before and whose
    effect is unknown. It has to ask the user, and to say so, unless it denies the call anyway.
    Without the method such a call is not made.
    """

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


async def consents(
    policy: CallPolicy, tool: OfferedTool, arguments: dict[str, Any], *, again: bool
) -> bool:
    """Return what the host says to a call, whoever asks for it.

    One policy holds for the model's calls and for the same calls by a directive (TC-C-20). Of a
    tool that is read-only it is asked only `again`: about a call whose effect is unknown.
    """
    if again:
        asked = getattr(policy, "allows_again", None)
        return asked is not None and bool(await asked(tool, arguments))
    return tool.read_only or await policy.allows(tool, arguments)


def may_have_been_made(tool: OfferedTool, arguments: dict[str, Any]) -> bool:
    """Return whether an equal call has an unknown effect, and a second one may do harm."""
    return not tool.repeatable and (tool.tool.name, canonical(arguments)) in tool.in_doubt


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
