"""The client scripts can judge what they claim to judge.

That a conforming client does what they expect, `tests/conformance/small_client.py` shows.
"""

import pytest

from tool_chaining_conformance.client.script import Case, ClientScript, load_client_scripts
from tool_chaining_conformance.requirements import load_checks
from tool_chaining_conformance.scenario_file import load

from .files import CLIENT_SCRIPTS

pytestmark = pytest.mark.quick

SCRIPTS = load_client_scripts()
CASES = [
    pytest.param(script, case, id=f"{script.scenario}-{case.name}")
    for script in SCRIPTS
    for case in script.cases
]
EVIDENCE = {
    evidence.case
    for script in SCRIPTS
    for case in script.cases
    for check in case.checks
    for evidence in check.provided
}
NEGATIVE = {"not_called", "calls_end", "call_count"}
"""Kinds of checks that something was not done."""


def test_client_scripts_load_like_users_files() -> None:
    assert [load(path, ClientScript) for path in CLIENT_SCRIPTS] == [*SCRIPTS]
    assert [script.scenario for script in SCRIPTS] == [path.stem for path in CLIENT_SCRIPTS]
    names = [f"{script.scenario}/{case.name}" for script in SCRIPTS for case in script.cases]
    assert len(names) == len(set(names))
    assert set(names) >= EVIDENCE


@pytest.mark.parametrize(("script", "case"), CASES)
def test_the_witnesses_of_a_case_precede_its_checks(script: ClientScript, case: Case) -> None:
    made = len(case.expect.calls)
    assert case.checks or f"{script.scenario}/{case.name}" in EVIDENCE
    for check in case.checks:
        assert check.id in load_checks()
        assert check.witness <= made
        assert (check.call or 0) <= made
        if check.kind in ("called", "arguments"):
            assert check.witness <= (check.call or 0)
        if check.kind == "printed_outcome":
            assert case.expect.outcome is not None
        if check.kind in NEGATIVE:
            # The witness that a directive was followed.
            assert check.witness >= 2 or any((each.calls or 0) >= 2 for each in check.provided)
        if check.kind == "not_called":
            allowed = sum(
                call.tool == check.tool and check.arguments in (None, call.arguments)
                for call in case.expect.calls
            )
            assert allowed == (check.at_most or 0) or check.other_server
            answers = script.other_server if check.other_server else script
            assert answers is not None
            answered = [*case.answers, *answers.answers]
            assert any(answer.tool == check.tool for answer in answered), "a decoy answers"
        assert set(script.eras_of(case)) & set(load_checks()[check.id].eras)
    if case.expect.calls:
        assert case.first_call == case.expect.calls[0]
    assert {call.tool for call in case.expect.calls} <= {tool.name for tool in script.tools}


def test_the_registry_agrees_with_the_cases_of_each_check() -> None:
    made: dict[str, list[tuple[bool, bool]]] = {}
    for script in SCRIPTS:
        for case in script.cases:
            for check in case.checks:
                reads_output = check.kind.startswith("printed")
                asks = bool(script.requires_client)
                made.setdefault(check.id, []).append((reads_output, asks))
    for name, cases in made.items():
        said = load_checks()[name]
        assert {reads_output for reads_output, _ in cases} == {said.reads == "printed"}
        # A check may need more than the cases show, but nothing of these that one does without.
        assert (said.needs in ("printed", "whole-result")) is (said.reads == "printed")
        if said.reads == "wire":
            asked_by_all = all(asks for _, asks in cases)
            assert (said.needs == "declares-elicitation") is asked_by_all
