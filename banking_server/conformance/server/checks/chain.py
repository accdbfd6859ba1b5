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


@check("tool-chaining-server-chain-within-default-limit", on=FollowedChain)
def chain_within_default_limit(chain: FollowedChain) -> Finding | None:
    """A chain ends before clients give up, and does not lead back to a call that it contains."""
    calls, directive = len(chain.calls), chain.directive
    onward = "" if directive is None else " and a directive to another"
    if directive is not None and _leads_back(chain, directive):
        onward = f", and a directive back to {directive.tool} with the same arguments"
    elif (calls <= DEFAULT_LIMIT) if directive is not None else (calls == 1):
        return None  # There is no chain, or the scenario allows no further call.
    return Finding(
        calls <= DEFAULT_LIMIT and directive is None,
        expected=f"at most {DEFAULT_LIMIT} calls, no two of them the same",
        seen=f"{calls} calls{onward}",
    )


def _leads_back(chain: FollowedChain, directive: SeenDirective) -> bool:
    """Return whether a directive asks for a call that the chain contains already."""
    return directive.key in [key_of(call.tool, call.arguments) for call in chain.calls]


@check("tool-chaining-server-chained-call-authorized", on=Refusal)
def chained_call_authorized(refusal: Refusal) -> Finding:
    """A call that is refused stays refused, whatever chain it claims to belong to."""
    return Finding(
        is_refused(refusal.again),
        expected=f"refused as without a chain: {ending(refusal.first)}",
        seen=f"{refusal.what}: {ending(refusal.again)}",
    )
