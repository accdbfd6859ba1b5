"""Consent: does the host allow the call that a directive asks for? (TC-C-20, TC-C-21, TC-C-55)"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tool_chaining.tools import Tool

if TYPE_CHECKING:
    from tool_chaining.rules import Rule


@dataclass(frozen=True)
class Proposal:
    """A follow-up call that waits for the host's consent."""

    tool: Tool
    """The tool as the server lists it. Its hints are the server's own claims."""
    arguments: dict[str, Any]
    """The arguments of the directive, validated unless the follower's `validate` is False."""
    level: int
    """The number that the call would have in the chain; the first follow-up is 2."""
    previous_tool: str
    """The tool whose result carried the directive."""
    title: str | None = None
    """The server's own words about the step, for the user who is asked. Never for a model."""
    rule: "Rule | None" = None
    """The user's rule that asks for the call; None if the server's directive does. The title is
    then the rule's."""


class NobodyToAsk(Exception):
    """Raised by a policy if only a person could decide, and nobody can be asked.

    The call is not made. The merged result then suggests it to the model, so that the model can ask
    for the call and the host decides as for any other.
    """


class ConsentPolicy:
    """Decides for the host whether to make a follow-up call, as for its model's calls (TC-C-20).

    Only `True` is a yes. Any other answer is a no, and one that is not `False` is logged as a
    mistake of the policy. A method may raise `NobodyToAsk`::

        class AskUser(ConsentPolicy):
            async def allows(self, proposal):
                return await my_dialog(f"Call {proposal.tool.name}?")

            async def allows_again(self, proposal):
                return await my_dialog(f"{proposal.tool.name} may have run before. Call it again?")
    """

    trusts_hints: bool = False
    """Whether the user or the host trusts the hints of this server. Then a tool marked as
    read-only is never in doubt (TC-C-55)."""

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the host makes this call."""
        raise NotImplementedError(f"{type(self).__name__} has no method allows")

    async def forbids(self, proposal: Proposal) -> bool:
        """Return whether the host never makes this call, though the user's rule has `ask = false`.

        Such a rule is consent in advance, so `allows` is not asked. The default is no.
        """
        return False

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether the user agrees to this call although its tool is in doubt.

        It replaces `allows` here (TC-C-55), so it also refuses what the host never allows. The
        answer must come from a person who knows about the doubt. The default is no.
        """
        return False

    async def may_repeat(self, proposal: Proposal) -> bool:
        """Return whether the user agreed beforehand that this tool may be called again (TC-C-55).

        Then it is never in doubt, and `allows` is asked as usual. That suits a tool which does no
        harm twice, such as one that gets a new token. The default is no.
        """
        return False


class TrustHints(ConsentPolicy):
    """Allows what the server's hints call harmless, for a client without a person (TC-C-21).

    Hints are the server's own claims. Use this only for a server that the user or the host trusts
    to describe its tools correctly.
    """

    trusts_hints = True

    async def allows(self, proposal: Proposal) -> bool:
        """Return True for a tool that is read-only, or neither destructive nor open to the world.

        Raises NobodyToAsk for any other tool, and for a step whose rule requires asking.
        """
        if proposal.rule is not None or not proposal.tool.harmless:
            raise NobodyToAsk
        return True


def check_policy(consent: object) -> None:
    """Raise TypeError if `consent` is neither None nor a `ConsentPolicy`."""
    if consent is not None and not isinstance(consent, ConsentPolicy):
        kind = consent.__name__ if isinstance(consent, type) else type(consent).__name__
        instead = " itself: pass an instance" if isinstance(consent, type) else ""
        raise TypeError(f"consent must be a tool_chaining.ConsentPolicy, not {kind}{instead}")
