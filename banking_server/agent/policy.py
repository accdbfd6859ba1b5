"""Consent to calls: to those that the model asks for, and to the same calls by a directive."""

from typing import Any, Protocol

from banking_server.agent.toolbox import OfferedTool


class CallPolicy(Protocol):
    """Decides for the host whether a call is made that the model, or a directive, asks for.

    A policy that can ask the user may have a second method, `async def allows_again(self, tool,
    arguments)`. It is asked in place of `allows` about a call that was started before and whose
    effect is unknown. Without the method such a call is not made.
    """

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the call may be made. It may ask the user."""
        ...


async def consents(
    policy: CallPolicy | None, tool: OfferedTool, arguments: dict[str, Any], *, again: bool
) -> bool:
    """Return what the host says to a call, whoever asks for it (TC-C-20).

    A tool that only reads is called without asking, and where there is no policy no other is.
    `again` says that the call was started before, and that its effect is unknown.
    """
    if again:
        asked = getattr(policy, "allows_again", None)
        return asked is not None and bool(await asked(tool, arguments))
    return tool.read_only or (policy is not None and await policy.allows(tool, arguments))
