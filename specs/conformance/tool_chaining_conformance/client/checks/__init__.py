"""The checks of clients, by kind: each function judges one run of the client.

To find the code of a check, search for its id in the scripts (`specs/conformance/client/*.yaml`):
the name after `assert` is its kind, and the function with `@kind("name")` is here.

- `calls`: which calls the client made, with which arguments, and which it did not make, also after
  the user cancelled;
- `declaration`: what the client declared, and the provenance of its calls;
- `printed`: the merged result that it printed.
"""

from tool_chaining_conformance.client.checks import calls, declaration, printed
from tool_chaining_conformance.client.checks.registry import FORBIDDING, KINDS
from tool_chaining_conformance.client.evidence import CaseRun
from tool_chaining_conformance.client.script import ScriptCheck
from tool_chaining_conformance.report.judgement import Finding, Judged, NotApplicable

__all__ = ["KINDS", "calls", "declaration", "judge_check", "printed"]


def judge_check(case_run: CaseRun, check: ScriptCheck) -> Judged:
    """Make one check of a case, if the run has what it needs."""
    if (capability := case_run.missing_capability()) is not None:
        return NotApplicable(f"the client does not declare {capability}")
    if (ignored := case_run.missing_context()) is not None:
        return ignored
    judge = KINDS[check.kind]
    # A call too many needs no witness, and nothing excuses it.
    judged = judge(case_run, check) if check.kind in FORBIDDING else None
    too_many = judged if isinstance(judged, Finding) and not judged.holds else None
    if too_many is not None and check.kind == "not_called":
        return too_many
    for provided in check.provided:
        if (unseen := case_run.missing_provision(provided)) is not None:
            return unseen
    missing = None if too_many else case_run.missing_witness(check.witness)
    return missing or judged or judge(case_run, check)
