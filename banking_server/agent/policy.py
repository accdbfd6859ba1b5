"""Consent to calls: to those that the model asks for, and to the same calls by a directive."""

from typing import Any, Protocol

from banking_server.agent.toolbox import OfferedTool


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
    """Allows calls of tools that only read, and no others, since nobody can be asked.

    The annotations of a server that the host does not trust decide nothing.
    """

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the tool's annotations say that it changes nothing."""
        return tool.read_only


async def consents(
    policy: CallPolicy, tool: OfferedTool, arguments: dict[str, Any], *, again: bool
) -> bool:
    """Return what the host says to a call, whoever asks for it (TC-C-20).

    Of a tool that is read-only the policy is asked only `again`: about a call whose effect is
    unknown.
    """
    if again:
        asked = getattr(policy, "allows_again", None)
        return asked is not None and bool(await asked(tool, arguments))
    return tool.read_only or await policy.allows(tool, arguments)
