"""What is played of a scenario: values from its set-up reach every place that names them."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.server.scenario import Caller, ServerScenario, load_server_scenario
from banking_server.conformance.target.era import Era

from .server_mutants import SERVER_MUTANTS
from .small_server import SESSION, SmallServer
from .support import examine_server, scenario_of, statuses

NO_CYCLE = "tool-chaining-server-no-cycle"
SCENARIO = """
name: captured
description: The order is what the set-up captured.
setup:
  - id: sign-in
    call: login
    arguments: {user: alice, phrase: x}
    capture:
      password: {text: 'session is (\\S+)\\.'}
meta: {session: "${password}"}
steps:
  - id: ask
    call: ask_manager
    arguments: {order: "${password}"}
    expect: {nextTool: notify_team, arguments: {order: "${password}"}}
    follow: [{}]
"""


@pytest.fixture
def captured(tmp_path: Path) -> ServerScenario:
    path = tmp_path / "captured.yaml"
    path.write_text(SCENARIO)
    return load_server_scenario(path)


@pytest.mark.parametrize("era", Era)
def test_an_expected_argument_is_a_captured_value(era: Era, captured: ServerScenario) -> None:
    run = examine_server(SmallServer, [era], [captured])
    assert run.problems == []
    assert statuses(run.judgements)[NO_CYCLE] == "SUCCESS"


@pytest.mark.parametrize("era", Era)
def test_a_chain_that_leads_back_to_a_call_with_a_captured_value(
    era: Era, captured: ServerScenario
) -> None:
    run = examine_server(SERVER_MUTANTS["cycle"], [era], [captured])
    assert statuses(run.judgements)[NO_CYCLE] == "WARNING"


def test_what_cannot_be_judged_says_what_came_and_not_what_the_scenario_lacks() -> None:
    """The step has `repeatable: true`; its directive is malformed."""

    class ArgumentsList(SmallServer):
        def place_order(self, arguments: Any, request: Any) -> Any:
            result, _ = super().place_order(arguments, request)
            return result, {"tool": "ask_manager", "arguments": ["x"]}

    run = examine_server(ArgumentsList, [Era.MODERN])
    reasons = {
        judgement.check.id.removeprefix("tool-chaining-server-"): judgement.seen
        for judgement in run.judgements
        if judgement.untestable
    }
    assert "malformed" in reasons["names-next-tool-in-text"]
    assert not [reason for reason in reasons.values() if "`repeatable: true`" in reason]


@pytest.mark.parametrize("era", Era)
def test_what_the_scenario_says_of_its_caller_goes_with_every_request(era: Era) -> None:
    seen: dict[str, set[object]] = {}

    class Looks(SmallServer):
        def respond(self, request: Any) -> Any:
            method = request.params.get("name") or request.method
            if request.meta.get("trace") != "t-1":
                seen.setdefault("without", set()).add(method)
            seen.setdefault(method, set()).add(request.meta.get("session"))
            return super().respond(request)

    scenario = scenario_of(SmallServer)
    meta = {**scenario.meta, "trace": "t-1"}
    callers = {"stranger": Caller(meta={"trace": "t-1"})}
    examine_server(Looks, [era], [scenario.model_copy(update={"meta": meta, "callers": callers})])
    assert "without" not in seen
    # A member that the set-up captures goes with every request after that.
    for method in ("tools/list", "place_order", "ask_manager", "pick_colour"):
        assert seen[method] == {SESSION}
    assert seen["notify_team"] == {SESSION, None}
    assert seen["login"] == {None}
    if era is Era.LEGACY:
        assert seen["ping"] == {SESSION}
