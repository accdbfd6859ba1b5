"""The client scripts can judge what they claim to judge.

That a conforming client does what they expect, `tests/conformance/small_client.py` shows.
"""

import pytest

from tool_chaining_conformance.client.script import ClientScript, load_client_scripts
from tool_chaining_conformance.requirements import load_checks
from tool_chaining_conformance.scenario_file import load

from .files import CLIENT_SCRIPTS

pytestmark = pytest.mark.quick

SCRIPTS = load_client_scripts()
EVIDENCE = {
    evidence.case
    for script in SCRIPTS
    for case in script.cases
    for check in case.checks
    for evidence in check.provided
}


def test_client_scripts_load_like_users_files() -> None:
    assert [load(path, ClientScript) for path in CLIENT_SCRIPTS] == [*SCRIPTS]
    assert [script.scenario for script in SCRIPTS] == [path.stem for path in CLIENT_SCRIPTS]
    names = [f"{script.scenario}/{case.name}" for script in SCRIPTS for case in script.cases]
    assert len(names) == len(set(names))
    assert set(names) >= EVIDENCE


def test_the_registry_agrees_with_the_cases_of_each_check() -> None:
    made: dict[str, set[bool]] = {}
    for script in SCRIPTS:
        for case in script.cases:
            for check in case.checks:
                made.setdefault(check.id, set()).add(check.kind.startswith("printed"))
    for name, read_output in made.items():
        assert read_output == {load_checks()[name].reads == "printed"}
