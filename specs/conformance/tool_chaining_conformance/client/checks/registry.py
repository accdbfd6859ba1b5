"""The registry of the kinds of client checks: each kind is a function with a name.

A script has the name after `assert`, and the full id of the check.
"""

from collections.abc import Callable
from typing import Final

from tool_chaining_conformance.client.evidence import CaseRun
from tool_chaining_conformance.client.script import ScriptCheck
from tool_chaining_conformance.report.judgement import Finding, Judged, Untestable

Kind = Callable[[CaseRun, ScriptCheck], Judged]

KINDS: Final[dict[str, Kind]] = {}
"""Every kind by its name, after the modules of this package are imported."""


FORBIDDING: Final[set[str]] = set()
"""The kinds that a call too many breaks, whatever else is missing."""


def kind(name: str, *, forbids: bool = False) -> Callable[[Kind], Kind]:
    """Register a function for the checks with `assert: name` in a script.

    The function reads one run of the client and changes nothing.
    """

    def register(judge: Kind) -> Kind:
        KINDS[name] = judge
        FORBIDDING.update([name] * forbids)
        return judge

    return register


def if_proven(case_run: CaseRun, absent: bool, finding: Finding) -> Judged:
    """Return a finding. If the client did not do something, return why this run cannot prove it.

    Only a client that ended by itself chose not to do it. `absent`: the client did not do it.
    """
    if absent and not case_run.end.ended_well:
        return Untestable(f"{case_run.end}, so a call that it did not make proves nothing")
    return finding
