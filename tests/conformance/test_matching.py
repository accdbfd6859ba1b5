"""Calls of a client are counted by their content, whatever is missing, doubled or out of order."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tool_chaining_conformance.client.checks import judge_check
from tool_chaining_conformance.client.evidence import CaseRun, ClientEnd
from tool_chaining_conformance.client.mock_server import Log, Operation
from tool_chaining_conformance.client.run import name_of
from tool_chaining_conformance.client.script import load_client_scripts
from tool_chaining_conformance.report.judgement import NotApplicable, Untestable
from tool_chaining_conformance.target.era import Era

pytestmark = pytest.mark.quick

CASES = {
    name_of(script, case): (script, case)
    for script in load_client_scripts()
    for case in script.cases
}
CALLS = {
    "begin": ("begin", {"story": "told"}),
    "again": ("begin", {"story": "told"}),
    "other": ("begin", {"story": "another"}),
    "pay": ("pay", {"bill": "no. 17"}),
    "by-user": ("pay", {"bill": "no. 17"}),
    "pay16": ("pay", {"bill": "no. 16"}),
    "relay": ("relay", {"to": "next"}),
    "look": ("look", {}),
    "erase": ("erase", {}),
    "paid": ("pay", {}),
}
"""The calls of the logs below, each as tool and arguments."""

BEGINS = ("again", "other", "by-user")
"""Those that begin another chain."""


def log(names: Sequence[str], provenance: bool) -> Log:
    """Return the log of a client that made these calls one after the other."""
    operations, chain, level = [], 0, 0
    before = ""
    for number, name in enumerate(names, 1):
        tool, arguments = CALLS[name]
        if name in BEGINS:
            chain, level = chain + 1, 0
        level += name != before
        before = name
        shown = {"chainId": f"chain-{chain}", "level": level}
        meta = {"com.example/tool-chaining": shown} if provenance else {}
        operation = Operation(number, tool, arguments, meta, answered=True, result={"content": []})
        operations.append(operation)
    return Log(operations)


def run(
    name: str,
    era: Era,
    names: Sequence[str],
    provenance: bool,
    outcome: str = "",
    others: Mapping[str, CaseRun] | None = None,
) -> CaseRun:
    script, case = CASES[name]
    end = ClientEnd(0, f'{{"content": [], "outcome": "{outcome}"}}' if outcome else "{}", "")
    calls = log(names, provenance)
    return CaseRun(script, case, era, calls, None, end, others=others or {})


PAYS = {"doubt/paid-twice": ["begin", "pay", "again", "pay"]}
DOUBLES = {"doubt/paid-twice": ["begin", "pay", "pay", "again", "pay", "pay"]}
ASKS = {"doubt/paid-twice": ["begin", "again"]}
DENIES: dict[str, list[str]] = {"consent/model-may-not-erase": []}
LETS = {"consent/model-may-not-erase": ["erase"]}
TWICE = "doubt/error"
EQUAL = "doubt/lost-and-an-equal-payment"
ONCE = "failures/error-result"
CONSENT = "consent/destructive-tool"
LISTED = "lists/last-page"
Row = tuple[str, int, list[str], str, dict[str, list[str]], str]

LOGS: list[Row] = [
    # The case, which of its checks, the calls, the printed outcome, other runs, the judgement;
    # a second one is that without provenance.
    (TWICE, 0, ["begin", "pay16", "again"], "declined", PAYS, "PASS"),
    (TWICE, 0, ["begin", "pay16", "again", "pay"], "completed", PAYS, "FAIL"),
    # Twice in the first chain: what looks like the second chain is missing by place.
    (TWICE, 0, ["begin", "pay16", "pay16", "again"], "declined", PAYS, "FAIL"),
    (TWICE, 0, ["begin", "pay16", "pay16"], "declined", PAYS, "FAIL"),
    # Who makes every call twice has paid twice as often in the other run, too.
    (TWICE, 0, ["begin", "pay16", "pay16", "again"], "declined", DOUBLES, "FAIL"),
    (TWICE, 0, ["begin", "pay16", "again"], "declined", ASKS, "SKIP"),
    (TWICE, 0, ["begin", "pay16", "again", "pay"], "declined", ASKS, "FAIL"),
    (TWICE, 0, ["begin", "pay16"], "completed", PAYS, "UNTESTABLE"),
    (TWICE, 0, ["begin", "begin", "pay16", "again"], "declined", PAYS, "PASS"),
    # Only provenance shows that the second one is no other chain.
    (TWICE, 0, ["begin", "begin", "pay16"], "completed", PAYS, "UNTESTABLE PASS"),
    (EQUAL, 0, ["begin", "pay", "by-user", "again", "pay"], "completed", PAYS, "PASS"),
    # A payment is missing. Who pays unasked elsewhere has no reason to decline it here.
    (EQUAL, 0, ["begin", "pay", "by-user", "again"], "declined", PAYS, "FAIL"),
    (EQUAL, 0, ["begin", "pay", "by-user", "again"], "declined", ASKS, "SKIP"),
    (EQUAL, 0, ["begin", "pay", "by-user", "again", "relay"], "declined", PAYS, "FAIL"),
    (ONCE, 0, ["begin", "relay", "paid"], "completed", {}, "PASS"),
    (ONCE, 0, ["begin", "relay", "paid", "paid"], "completed", {}, "FAIL"),
    (ONCE, 0, ["begin", "paid", "paid"], "declined", {}, "FAIL"),
    (ONCE, 0, ["relay", "begin", "paid"], "completed", {}, "PASS"),
    (ONCE, 0, ["begin", "relay"], "declined", {}, "SKIP"),
    (LISTED, 0, ["begin", "relay"], "declined", {}, "UNTESTABLE"),
    (LISTED, 0, ["begin", "relay", "look"], "declined", {}, "FAIL"),
    (CONSENT, 0, ["begin", "relay"], "declined", {}, "PASS"),
    (CONSENT, 0, ["begin", "relay", "erase"], "declined", {}, "FAIL"),
    # The first directive was not followed, and a call was made that nobody asked for.
    (CONSENT, 0, ["begin", "erase"], "declined", {}, "FAIL"),
    (CONSENT, 0, ["begin"], "declined", {}, "SKIP"),
    (CONSENT, 1, ["begin", "relay", "erase"], "declined", DENIES, "FAIL"),
    (CONSENT, 1, ["begin", "relay", "erase"], "completed", LETS, "SKIP"),
]


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("provenance", [True, False], ids=["provenance", "bare"])
@pytest.mark.parametrize("row", LOGS, ids=lambda row: f"{row[0]}-{'-'.join(row[2])}-{row[5]}")
def test_a_log_is_judged_by_its_calls(row: Row, provenance: bool, era: Era) -> None:
    name, which, calls, outcome, others, expected = row
    runs = {each: run(each, era, names, provenance) for each, names in others.items()}
    case_run = run(name, era, calls, provenance, outcome, runs)
    judged: Any = judge_check(case_run, case_run.case.checks[which])
    kinds = {Untestable: "UNTESTABLE", NotApplicable: "SKIP"}
    seen = kinds.get(type(judged)) or ("PASS" if judged.holds else "FAIL")
    with_provenance, _, bare = expected.partition(" ")
    assert seen == (with_provenance if provenance else bare or with_provenance), judged
