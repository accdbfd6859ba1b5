"""What the client's calls said about the chain they belong to."""

from collections.abc import Iterator
from typing import Any

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.checks.registry import kind
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.mock_server import Operation
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.report.judgement import Finding, Judged, Untestable
from banking_server.conformance.specification import schema_of
from banking_server.conformance.values import shown


def chain_ids(case_run: CaseRun) -> list[str]:
    """Return the chain ids that a run of the client used, as they are shown."""
    return [
        shown(provenance["chainId"])
        for provenance in map(_provenance, case_run.log.operations)
        if isinstance(provenance, dict) and isinstance(provenance.get("chainId"), str)
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
    """All provenance meets the published schema, and says which call of which chain it is."""
    carried = [call for call in case_run.log.operations if IDENTIFIER in call.meta]
    if not any(call.number > 1 for call in carried):
        return Untestable("no follow-up call carries provenance")
    fault = next(_faults(case_run, carried), None)
    expected, call = fault or (SHAPE, carried[-1])
    return Finding(
        fault is None,
        expected=expected,
        seen=f"call {call.number}: {shown(_provenance(call))}",
    )


SHAPE = (
    "an object with chainId (1 to 128 characters), level (an integer of at least 1) and, above "
    "level 1 only, previousTool"
)


def _faults(case_run: CaseRun, carried: list[Operation]) -> Iterator[tuple[str, Operation]]:
    """Yield what was expected in place of what a call carries, and the call."""
    chain_id = None
    for call in carried:
        provenance = _provenance(call)
        if not schema_of("provenance").is_valid(provenance):
            yield SHAPE, call
            return
        chain_id = chain_id or provenance["chainId"]
        if provenance["chainId"] != chain_id:
            yield f"chainId {shown(chain_id)}, as in the calls before", call
        earlier = case_run.earlier_chain_ids.get(shown(chain_id))
        if earlier is not None:
            yield f"a chainId that no other chain had; this one had {earlier}", call
        if provenance["level"] != call.number:
            yield f"level {call.number}, the number of the call", call
        previous = case_run.log.operations[call.number - 2].tool
        if call.number > 1 and provenance.get("previousTool") != previous:
            yield f"previousTool {shown(previous)}", call


def _provenance(call: Operation) -> Any:
    return call.meta.get(IDENTIFIER)
