"""The client scripts can judge what they claim to judge.

That a conforming client does what they expect, `tests/conformance/small_client.py` shows.
"""

from typing import Any

import pytest

from tool_chaining_conformance.client.script import Case, ClientScript, load_client_scripts
from tool_chaining_conformance.requirements import load_checks
from tool_chaining_conformance.scenario_file import load
from tool_chaining_conformance.target.era import Era

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


def test_a_script_is_read_as_a_file_of_somebody_else_would_be() -> None:
    assert [load(path, ClientScript) for path in CLIENT_SCRIPTS] == [*SCRIPTS]
    assert [script.scenario for script in SCRIPTS] == [path.stem for path in CLIENT_SCRIPTS]
    names = [f"{script.scenario}/{case.name}" for script in SCRIPTS for case in script.cases]
    assert len(names) == len(set(names))
    assert set(names) >= EVIDENCE


@pytest.mark.parametrize(("script", "case"), CASES)
def test_a_case_can_judge_what_it_claims_to(script: ClientScript, case: Case) -> None:
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


def test_every_client_check_is_made_by_some_case_in_every_era_that_it_has() -> None:
    made: dict[str, set[Era]] = {}
    for script in SCRIPTS:
        for case in script.cases:
            for check in case.checks:
                made.setdefault(check.id, set()).update(script.eras_of(case))
    wanted = {
        check.id: set(check.eras) for check in load_checks().values() if check.side == "client"
    }
    assert {name: eras & wanted[name] for name, eras in made.items()} == wanted


def test_the_registry_says_which_checks_need_what_is_printed_or_an_elicitation() -> None:
    needs: dict[str, set[Any]] = {}
    for script in SCRIPTS:
        asks = "declares-elicitation" if script.requires_client else None
        for case in script.cases:
            for check in case.checks:
                printed = "printed" if check.kind.startswith("printed") else None
                needs.setdefault(check.id, set()).add(printed or asks)
    # What one case shows without it does not need it; a check may need more than that.
    said = {name: load_checks()[name].needs for name in needs}
    for name, need in needs.items():
        expected = None if None in need else need.pop()
        if expected is None:
            assert said[name] not in ("printed", "whole-result", "declares-elicitation")
        elif expected == "printed":
            assert said[name] in ("printed", "whole-result")
        else:
            assert said[name] == expected
