"""Consent: does the host allow the call that a directive asks for? (TC-C-20, TC-C-21)"""

import inspect
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcp_types import Tool

MOVES_MONEY: Final = "com.example/moves-money"
"""A member of a tool's `_meta`: `true` says that a call may move money, as no hint of MCP's can.

Like the hints, it is the server's own claim. It makes a question clearer, and decides nothing.
"""


@dataclass(frozen=True)
class Proposal:
    """A follow-up call that can be made, and that the host has yet to consent to."""

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
    """Decides for the host whether a follow-up call is made, as the host does for a model's.

    It is to say no wherever the host would not let its model make the call (TC-C-20, TC-C-42), and
    may say no for any reason of the host's own (TC-C-04).

    A policy that can ask a person may have a second method, `async def allows_again(self,
    proposal)`. It is asked in place of `allows` where an equal call was started before and nobody
    knows whether it took effect (TC-C-55). It says no to what the host denies anyway; for any other
    call it asks the person, and says why. Without the method such a call is not made.
    """

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the call may be made. It may ask the user."""
        ...


def check_policy(consent: object) -> None:
    """Raise `TypeError` if `consent` cannot be asked; None stands for nobody to ask."""
    if consent is not None and not inspect.iscoroutinefunction(getattr(consent, "allows", None)):
        raise TypeError(
            "consent must be an object with `async def allows(self, proposal)`, which "
            f"{type(consent).__name__!r} has not"
        )


class FollowNonDestructive:
    """Allows calls of tools annotated as read-only or non-destructive, and no others (TC-C-21).

    Annotations are the server's own claims. Use this only for a server that the user or the host
    trusts to tell what its tools do. A tool without annotations counts as destructive, since these
    are the defaults that MCP defines.
    """

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the tool's annotations say that it destroys nothing."""
        hints = proposal.tool.annotations
        return hints is not None and (
            hints.read_only_hint is True or hints.destructive_hint is False
        )
