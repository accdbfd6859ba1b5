"""Where the kinds of client checks are registered: each is a function under its word.

The word stands after `assert` in a script, which also says the full id of the check.
"""

from collections.abc import Callable
from typing import Final

from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.report.judgement import Judged, NotApplicable, Untestable

Kind = Callable[[CaseRun, ScriptCheck], Judged]

KINDS: Final[dict[str, Kind]] = {}
"""Every kind by its word, once the modules of this package are imported."""


def kind(word: str) -> Callable[[Kind], Kind]:
    """Register a function for the checks with `assert: word` in a script.

    The function reads one run of the client and changes nothing.
    """

    def register(judge: Kind) -> Kind:
        KINDS[word] = judge
        return judge

    return register


def absence_unproven(case_run: CaseRun) -> Untestable | NotApplicable | None:
    """Return why this run cannot prove that the client leaves something undone; None if it can.

    Only a client that ended by itself decided not to do it. A client that reached its own limit did
    not decide it either.
    """
    if not case_run.end.went_on:
        return Untestable(f"{case_run.end}, so what it did not do says nothing")
    if case_run.ended_at_own_limit:
        return NotApplicable("the client ended the chain at its limit")
    return None
