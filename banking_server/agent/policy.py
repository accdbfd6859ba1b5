"""Consent to the calls that the model asks for.

Follow-up calls, which a directive asks for, have a policy of their own in `chaining.consent`.
"""

from typing import Any, Protocol

from banking_server.agent.toolbox import OfferedTool


class CallPolicy(Protocol):
    """Decides for the host whether a call that the model asks for is made."""

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the call may be made. It may ask the user."""
        ...


class AllowReadOnly:
    """Allows calls of tools annotated as read-only, and no others, since nobody can be asked."""

    async def allows(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        """Return whether the tool's annotations say that it changes nothing."""
        return tool.read_only
