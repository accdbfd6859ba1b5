"""The checks of clients, by kind: each function judges one run of the client.

To find how a check is made, search for its id in the scripts (`specs/conformance/client/*.yaml`):
the word after `assert` is its kind, and `@kind("word")` stands here. The kinds are explained for
runners in other languages in `specs/conformance/README.md`.

- `calls`: which calls were made, with which arguments, and which were not, after the user cancelled
  too;
- `declaration`: what the client declared of itself, and what its calls said about the chain;
- `printed`: what it handed on in the end.
"""

from banking_server.conformance.client.checks import calls, declaration, printed
from banking_server.conformance.client.checks.registry import KINDS
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable, Untestable

__all__ = ["KINDS", "calls", "declaration", "judge_check", "printed"]


def judge_check(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Make one check of a case, if the run has what it needs."""
    if (capability := case_run.missing_capability()) is not None:
        return NotApplicable(f"the client does not declare {capability}")
    if check.kind == "not_called" and check.at_most is None:
        # A call without any justification is itself the evidence.
        judged = KINDS[check.kind](case_run, check)
        if isinstance(judged, Finding) and not judged.holds:
            return judged
    for provided in check.provided:
        if (unseen := case_run.missing_provision(provided)) is not None:
            return unseen
    if (missing := case_run.missing_witness(check.witness)) is not None:
        return missing
    judged = KINDS[check.kind](case_run, check)
    if isinstance(judged, Finding) and not judged.holds and check.excused:
        outcome = case_run.end.outcome
        if outcome in check.excused:
            return NotApplicable(f"the client ended the chain with {outcome}, and may")
        if outcome is None:
            excuse = " or ".join(check.excused)
            return Untestable(f"the client prints no outcome, and may have ended with {excuse}")
    return judged
