"""What is played of a scenario: values from its set-up reach every place that names them."""

from pathlib import Path

import pytest

from banking_server.conformance.server.scenario import ServerScenario, load_server_scenario
from banking_server.conformance.target.era import Era

from .server_mutants import SERVER_MUTANTS
from .small_server import SmallServer
from .support import examine_server, statuses

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
