"""What the client did while an answer was held, and after the user cancelled."""

from banking_server.conformance.client.checks.registry import absence_unproven, kind
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable


@kind("gives_up")
def gives_up(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The client gave up call number `witness`, the last one, while its answer was held."""
    calls = case_run.log.operations
    gave_up = len(calls) == check.witness and calls[-1].gave_up
    return Finding(
        gave_up,
        expected=f"call {check.witness} is given up, its answer being held",
        seen="it was given up" if gave_up else f"it was not; {case_run.calls_made()}",
    )


@kind("ends_when_cancelled")
def ends_when_cancelled(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """No call was made after call number `witness`, during which the user cancelled."""
    if not case_run.log.waits_for_cancel:
        return NotApplicable("the client does not use the cancelUrl of the context")
    holds = len(case_run.log.operations) <= check.witness
    if holds and (unproven := absence_unproven(case_run)) is not None:
        return unproven
    return Finding(
        holds,
        expected=f"no call after call {check.witness}, during which the user cancelled",
        seen=case_run.calls_made(),
    )


@kind("ends_in_time")
def ends_in_time(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """The run ended by itself within the time of the case."""
    return Finding(
        case_run.end.exit_code is not None,
        expected=f"the client ends within {case_run.case.time_limit} seconds",
        seen=str(case_run.end),
    )
