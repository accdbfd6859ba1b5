"""The kinds of client checks: the words after `assert` in a script, and what judges each."""

from collections.abc import Callable

from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.script import Assert, ScriptCheck
from banking_server.conformance.report.judgement import Finding, NotApplicable, NotTestable

Judged = Finding | NotTestable | NotApplicable
Kind = Callable[[CaseRun, ScriptCheck], Judged]

KINDS: dict[Assert, Kind] = {}
"""Every kind, by its word; the modules of this package add theirs."""


def kind(word: Assert) -> Callable[[Kind], Kind]:
    """Let a function judge the checks that say `assert: word` in a script.

    It looks at one run of the client, and changes nothing.
    """

    def register(judge: Kind) -> Kind:
        KINDS[word] = judge
        return judge

    return register


def nothing_to_say(case_run: CaseRun) -> NotTestable | None:
    """Return why it says nothing that the client did not do something, or None if it does.

    Only a client that came to its own end chose not to do it.
    """
    if case_run.end.went_on:
        return None
    return NotTestable(f"{case_run.end}, so what it did not do says nothing")
