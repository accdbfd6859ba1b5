"""Consent: does the host allow the call that a directive asks for? (TC-C-20, TC-C-21)"""

import inspect
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcp_types import Tool

MOVES_MONEY: Final = "com.example/moves-money"
"""A member of a tool's `_meta`: `true` says that a call may move money. MCP has no hint for that.

Like the hints, it is the server's own claim. It makes a question clearer, and decides nothing.
"""


@dataclass(frozen=True)
class Proposal:
    """A follow-up call that can be made if the host consents."""

    tool: Tool
    """The tool as the server lists it. Its annotations are the server's own claims."""
    arguments: dict[str, Any]
    """The arguments of the directive; they are valid against the tool's input schema."""
    level: int
    """The number that the call would have in the chain; the first follow-up is 2."""
    previous_tool: str
    """The tool whose result carried the directive."""
    title: str | None = None
    """The server's own words about the step, for the user who is asked. Never for a model."""


class ConsentPolicy(Protocol):
    """Decides for the host whether a follow-up call is made, as for a call of its model.

    It must refuse a call that the host would not let its model make (TC-C-20, TC-C-42). It may
    refuse for any other reason of the host (TC-C-04).

    A policy that can ask a person may have a second method, `async def allows_again(self,
    proposal)`. It is asked in place of `allows` if the effect of the tool's last call on this
    server is unknown (TC-C-55). It refuses what the host never allows; for any other call it asks
    the person and says why. Without this method such a call is not made.
    """

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the call may be made. It may ask the user."""
        ...


def check_policy(consent: object) -> None:
    """Raise `TypeError` if `consent` is not a policy; None is allowed."""
    if consent is not None and not inspect.iscoroutinefunction(getattr(consent, "allows", None)):
        raise TypeError(
            "consent must be an object with `async def allows(self, proposal)`, which "
            f"{type(consent).__name__!r} does not have"
        )


def is_harmless(tool: Tool) -> bool:
    """Return whether a tool is annotated as read-only or non-destructive; by default it is not."""
    hints = tool.annotations
    return hints is not None and (hints.read_only_hint is True or hints.destructive_hint is False)


class FollowNonDestructive:
    """Allows only tools that are annotated as read-only or non-destructive (TC-C-21).

    Annotations are the server's own claims. Use this only for a server that the user or the host
    trusts to describe its tools correctly.
    """

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the tool is annotated as read-only or non-destructive."""
        return is_harmless(proposal.tool)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether the tool is annotated as read-only: nobody can be asked."""
        hints = proposal.tool.annotations
        return hints is not None and hints.read_only_hint is True
