"""A whole chain, and a call that claims to belong to one."""

from typing import Final

from banking_server.conformance.report.judgement import Finding
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import FollowedChain, Refusal
from banking_server.conformance.server.reading import (
    SeenDirective,
    ending,
    is_refused,
    key_of,
)

DEFAULT_LIMIT: Final = 5
"""Calls of a chain after which a client stops, unless it is told otherwise."""


@check("tool-chaining-server-no-cycle", on=FollowedChain)
def no_cycle(chain: FollowedChain) -> Finding | None:
    """No directive leads to a call that the chain contains already."""
    calls, directive = len(chain.calls), chain.directive
    if directive is not None and _leads_back(chain, directive):
        return Finding(
            False,
            expected="a directive to a call that the chain does not contain yet",
            seen=f"call {calls} leads back to {directive.tool} with the same arguments",
        )
    if directive is not None or calls == 1:
        return None  # There is no chain, or the scenario allows no further call.
    return Finding(True, expected="no call twice", seen=f"{calls} different calls")


@check("tool-chaining-server-chain-within-default-limit", on=FollowedChain)
def chain_within_default_limit(chain: FollowedChain) -> Finding | None:
    """A chain ends before clients give up."""
    calls, directive = len(chain.calls), chain.directive
    if directive is None:
        if calls == 1:
            return None  # There is no chain.
    elif calls <= DEFAULT_LIMIT or _leads_back(chain, directive):
        return None  # It may end in time, or it never ends, which is for `no_cycle` to say.
    return Finding(
        calls <= DEFAULT_LIMIT,
        expected=f"at most {DEFAULT_LIMIT} calls",
        seen=f"{calls} calls" + ("" if directive is None else " and a directive to another"),
    )


def _leads_back(chain: FollowedChain, directive: SeenDirective) -> bool:
    """Return whether a directive asks for a call that the chain contains already."""
    return directive.key in [key_of(call.tool, call.arguments) for call in chain.calls]


@check("tool-chaining-server-chained-call-authorized", on=Refusal)
def chained_call_authorized(refusal: Refusal) -> Finding:
    """A call that is refused stays refused, whatever chain it claims to belong to."""
    return Finding(
        is_refused(refusal.chained),
        expected=f"refused as without a chain: {ending(refusal.alone)}",
        seen=f"{refusal.claim}: {ending(refusal.chained)}",
    )
