"""What the client's calls said about the chain they belong to."""

import re
from collections.abc import Callable
from typing import Any, Final

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.checks.registry import kind
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.mock_server import Operation
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.message import Json
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from banking_server.conformance.specification import schema_of
from banking_server.conformance.values import same, shown

_RANDOM_UUID: Final = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)

Carried = list[tuple[Operation, Json]]
"""Calls that carry provenance which is an object, each with it."""


def chain_ids(case_run: CaseRun) -> list[str]:
    """Return the chain ids that a run of the client used, as they are shown."""
    return [
        shown(provenance["chainId"])
        for _, provenance in _carried(case_run)
        if isinstance(provenance.get("chainId"), str)
    ]


@kind("provenance_present")
def provenance_present(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Every call after the first carried provenance."""
    without = [call.number for call in case_run.log.operations[1:] if IDENTIFIER not in call.meta]
    return Finding(
        not without,
        expected=f"_meta.{IDENTIFIER} on every follow-up call",
        seen=f"none on call {', '.join(map(str, without))}" if without else "on all of them",
    )


@kind("provenance_well_formed")
def provenance_well_formed(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """All provenance meets the published schema."""
    carried = [call for call in case_run.log.operations if IDENTIFIER in call.meta]
    if not any(call.number > 1 for call in carried):
        return Untestable("no follow-up call carries provenance")
    wrong = [call for call in carried if not schema_of("provenance").is_valid(_provenance(call))]
    call = wrong[0] if wrong else carried[-1]
    return Finding(
        not wrong,
        expected="an object with chainId (1 to 128 characters), level (an integer of at least 1) "
        "and, above level 1 only, previousTool",
        seen=f"call {call.number}: {shown(_provenance(call))}",
    )


@kind("provenance_one_chain_id")
def provenance_one_chain_id(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """All provenance of the run has one `chainId`."""

    def compare(carried: Carried) -> Finding:
        ids = [shown(provenance.get("chainId")) for _, provenance in carried]
        return Finding(
            len(set(ids)) == 1, expected="one chainId in the whole chain", seen=", ".join(ids)
        )

    return _compared(case_run, compare)


@kind("provenance_new_chain_id")
def provenance_new_chain_id(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """No provenance of the run has a `chainId` seen in an earlier run of the client."""
    earlier = case_run.earlier_chain_ids

    def compare(carried: Carried) -> Finding:
        ids = {shown(provenance.get("chainId")) for _, provenance in carried}
        known = sorted(ids & earlier.keys())
        seen = f"{known[0]}, as in {earlier[known[0]]}" if known else ", ".join(sorted(ids))
        return Finding(not known, expected="a chainId that no other chain had", seen=seen)

    judged = _compared(case_run, compare)
    if isinstance(judged, Finding) and not earlier:
        return NotApplicable("this is the first chain of the run")
    return judged


@kind("provenance_random_chain_id")
def provenance_random_chain_id(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The `chainId` of all provenance is a random UUID: version 4, or 7 of RFC 9562."""

    def compare(carried: Carried) -> Finding:
        ids = [provenance.get("chainId") for _, provenance in carried]
        return Finding(
            all(isinstance(one, str) and _RANDOM_UUID.fullmatch(one) for one in ids),
            expected="a random UUID as chainId",
            seen=", ".join(map(shown, ids)),
        )

    return _compared(case_run, compare)


@kind("provenance_level")
def provenance_level(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The `level` of all provenance is the number of its call."""

    def compare(carried: Carried) -> Finding:
        levels = [(call.number, provenance.get("level")) for call, provenance in carried]
        return Finding(
            all(same(number, level) for number, level in levels),
            expected="level equal to the number of the call",
            seen=", ".join(f"call {number}: level {shown(level)}" for number, level in levels),
        )

    return _compared(case_run, compare)


@kind("provenance_previous_tool")
def provenance_previous_tool(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The `previousTool` of all provenance after call 1 is the tool of the call before."""

    def compare(carried: Carried) -> Finding:
        operations = case_run.log.operations
        pairs = [
            (operations[call.number - 2].tool, provenance.get("previousTool"))
            for call, provenance in carried
            if call.number > 1
        ]
        return Finding(
            all(named == tool for tool, named in pairs),
            expected="previousTool " + ", ".join(tool for tool, _ in pairs),
            seen=", ".join(shown(named) for _, named in pairs),
        )

    return _compared(case_run, compare)


def _provenance(call: Operation) -> Any:
    return call.meta.get(IDENTIFIER)


def _carried(case_run: CaseRun) -> Carried:
    return [
        (call, provenance)
        for call in case_run.log.operations
        if isinstance(provenance := _provenance(call), dict)
    ]


def _compared(case_run: CaseRun, compare: Callable[[Carried], Finding]) -> Judged:
    """Compare all provenance that is an object, if a follow-up call carries any."""
    carried = _carried(case_run)
    if not any(call.number > 1 for call, _ in carried):
        return Untestable("no follow-up call carries provenance that is an object")
    return compare(carried)
