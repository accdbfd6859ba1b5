"""Checks of a whole chain, and of a call repeated in ways that must not change its result."""

from dataclasses import replace
from typing import Final

from tool_chaining_conformance.report.judgement import Finding, NotApplicable
from tool_chaining_conformance.server.checks.registry import check
from tool_chaining_conformance.server.evidence import FollowedChain, Repetition
from tool_chaining_conformance.server.reading import (
    content_of,
    directive_of,
    ending,
    is_refused,
    key_of,
    member_names,
)
from tool_chaining_conformance.server.ways import (
    EMITS,
    EXPERIMENTAL,
    LATER,
    MALFORMED,
    PROVENANCE,
    REFUSED,
    UNKNOWN,
)
from tool_chaining_conformance.target.connection import ToolCall
from tool_chaining_conformance.values import quote

DEFAULT_LIMIT: Final = 5
"""The most calls of a chain that a client makes by default."""


@check("tool-chaining-server-chain-within-default-limit", on=FollowedChain)
def chain_within_default_limit(chain: FollowedChain) -> Finding | None:
    """A chain ends within the default limit of clients, and has no cycle."""
    calls, directive = len(chain.calls), chain.directive
    onward = "" if directive is None else ", and a directive to another call"
    made = [key_of(call.tool, call.arguments) for call in chain.calls]
    if directive is not None and directive.key in made:
        onward = f", and a directive back to {directive.tool} with the same arguments"
    elif (calls <= DEFAULT_LIMIT) if directive is not None else (calls == 1):
        return None  # There is no chain, or the scenario allows no further call.
    return Finding(
        calls <= DEFAULT_LIMIT and directive is None,
        expected=f"at most {DEFAULT_LIMIT} calls, no two of them the same",
        seen=f"{calls} calls{onward}",
    )


@check(EMITS, on=Repetition)
def emits_to_undeclared_client(repetition: Repetition) -> Finding | None:
    """A directive is for every client, declared or not."""
    if directive_of(repetition.first.final) is None:
        return None
    kept = directive_of(repetition.again.final) is None or any(
        member[0] == "refusal" for member in repetition.differs
    )
    return _alike(repetition if kept else replace(repetition, differs=frozenset()))


@check(LATER, on=Repetition)
@check(UNKNOWN, on=Repetition)
@check(
    EXPERIMENTAL,
    on=Repetition,
    unseen=NotApplicable("the server answers every client alike, whatever it declares"),
)
def same_result_with_directive(repetition: Repetition) -> Finding | None:
    """What a client declares, and where, changes nothing but what the sentence says."""
    if directive_of(repetition.first.final) is None and not repetition.differs:
        return None  # Two calls without a directive show nothing.
    return _alike(repetition)


@check(
    REFUSED,
    on=Repetition,
    unseen=NotApplicable(
        "no step has `refused: true`, so the scenario has no call that is refused"
    ),
)
def chained_call_authorized(repetition: Repetition) -> Finding:
    """A call that is refused is also refused with the provenance of any chain."""
    return Finding(
        is_refused(repetition.again),
        expected=f"refused, as without provenance: {ending(repetition.first)}",
        seen=f"{repetition.way.what}: {ending(repetition.again)}",
    )


@check(MALFORMED, on=Repetition)
@check(PROVENANCE, on=Repetition)
def same_result(repetition: Repetition) -> Finding:
    """Provenance, and malformed settings, have no effect on a call."""
    return _alike(repetition)


def _alike(repetition: Repetition) -> Finding:
    first, again, differs = repetition.first, repetition.again, repetition.differs
    expected = f"{ending(first)}, and the same result again {repetition.way.what}"
    if not differs:
        return Finding(True, expected=expected, seen=ending(again))
    parts = {member[0] for member in differs}
    return Finding(
        False,
        expected=expected + _beside(first, parts),
        seen=f"every time a difference in {member_names(differs)}: {ending(again)}"
        + _beside(again, parts),
    )


def _beside(call: ToolCall, parts: set[str]) -> str:
    """Return the other parts of the result that differ, as text."""
    result = call.final.result or {}
    content = f"; content {quote(content_of(call.final))}" if parts & {"content", "words"} else ""
    structured = f"; structuredContent {quote(result.get('structuredContent'))}"
    return content + (structured if "structured" in parts else "")
