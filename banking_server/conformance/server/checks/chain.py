"""A whole chain, and a call that claims to belong to one."""

from typing import Final

from banking_server.conformance.report.judgement import Finding
from banking_server.conformance.server.checks.registry import check
from banking_server.conformance.server.evidence import FollowedChain, Refusal
from banking_server.conformance.server.reading import ending, is_refused

DEFAULT_LIMIT: Final = 5
"""Calls of a chain after which a client stops, unless it is told otherwise."""


@check("tool-chaining-server-no-cycle", on=FollowedChain)
def no_cycle(chain: FollowedChain) -> Finding | None:
    """No directive leads to a call that the chain contains already."""
    if chain.leads_back_to is not None:
        return Finding(
            False,
            expected="a directive to a call that the chain does not contain yet",
            seen=f"call {chain.calls} leads back to {chain.leads_back_to} with the same arguments",
        )
    if not chain.ended or chain.calls == 1:
        return None  # There is no chain, or the scenario allows no further call.
    return Finding(True, expected="no call twice", seen=f"{chain.calls} different calls")


@check("tool-chaining-server-chain-within-default-limit", on=FollowedChain)
def chain_within_default_limit(chain: FollowedChain) -> Finding | None:
    """A chain ends before clients give up."""
    known = chain.ended or chain.calls > DEFAULT_LIMIT
    if chain.leads_back_to is not None or not known or chain.calls == 1:
        return None
    return Finding(
        chain.ended and chain.calls <= DEFAULT_LIMIT,
        expected=f"at most {DEFAULT_LIMIT} calls",
        seen=f"{chain.calls} calls" + ("" if chain.ended else " and a directive to another"),
    )


@check("tool-chaining-server-chained-call-authorized", on=Refusal)
def chained_call_authorized(refusal: Refusal) -> Finding:
    """A call that is refused stays refused, whatever chain it claims to belong to."""
    return Finding(
        is_refused(refusal.chained),
        expected=f"refused as without a chain: {ending(refusal.alone)}",
        seen=ending(refusal.chained),
    )
