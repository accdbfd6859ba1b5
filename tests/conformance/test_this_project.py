"""This project's own server and client pass everything, over stdio and HTTP, in both eras."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import mcp
import pytest

from tool_chaining_conformance.server.scenario import load_server_scenario
from tool_chaining_conformance.specification import SPECS
from tool_chaining_conformance.target.era import Era

from ..kit.command import command
from ..kit.pages import ROOT
from ..kit.servers import bank_server
from . import project_client
from .support import HERE, OF_INTERMEDIARIES, Ended, examine_program, statuses, suite

SCENARIOS = SPECS / "conformance" / "server"
BANKING, EXPIRED = SCENARIOS / "banking.yaml", SCENARIOS / "banking-expired.yaml"

INTERIM = "tool-chaining-server-no-directive-on-interim-result"
"""On 2025-11-25 only tasks are interim, and the bank has none."""


def in_eras(eras: Sequence[Era]) -> list[str]:
    return [part for era in eras for part in ("--spec-version", era)]


@pytest.mark.ci
def test_the_server_over_stdio(nightly: bool, tmp_path: Path) -> None:
    """In one era, if something may be left out: the other takes a process for each declaration.

    The customer is an option, which the scenario's stranger has to win over.
    """
    eras = list(Era) if nightly else [Era.MODERN]
    bank = {"BANKING_DATABASE": str(tmp_path / "bank.db")}
    arguments = ("--scenario", BANKING, *in_eras(eras), "--json")
    run = suite("server", *arguments, "--", *command("--customer", "CUST001"), environment=bank)
    assert run.code == 0, run.output
    assert run.statuses == {"SUCCESS", "SKIPPED"}
    assert run.skipped == OF_INTERMEDIARIES | ({INTERIM} if nightly else set())
    assert run.report["spec_versions"] == eras


def test_the_scenarios_exercise_the_four_escalations() -> None:
    scenarios = [load_server_scenario(path) for path in (BANKING, EXPIRED)]
    named = [step.expect.next_tool for scenario in scenarios for step in scenario.steps]
    assert set(named) - {"none", ("request_agent_handoff", "none")} == {
        *("request_agent_handoff", "request_manager_approval"),
        *("prepare_money_transfer", "record_compliance_report"),
    }


def over_http(folder: Path, scenario: Path) -> Ended:
    """Judge a bank over HTTP that is started with the variables that the scenario names."""
    with bank_server(folder / "bank.db", **load_server_scenario(scenario).environment) as bank:
        return suite(
            *("server", "--url", bank.url, "--scenario", scenario, *in_eras(list(Era)), "--json"),
            *("--header", "Authorization=BANK_TOKEN"),
            environment={
                "BANK_TOKEN": f"Bearer {bank.token()}",
                "BANKING_STRANGER": f"Bearer {bank.token('CUST002')}",
            },
        )


def test_the_server_over_http(tmp_path: Path) -> None:
    run = over_http(tmp_path, BANKING)
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    assert run.statuses == {"SUCCESS", "SKIPPED"}
    assert run.skipped == {*OF_INTERMEDIARIES, INTERIM}


@pytest.mark.ci
def test_the_server_whose_transfers_expire(tmp_path: Path) -> None:
    run = over_http(tmp_path, EXPIRED)
    # This scenario asks nothing and has nothing refused: those checks do not apply.
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    assert run.statuses == {"SUCCESS", "SKIPPED"}


@pytest.mark.parametrize("era", [Era.MODERN, pytest.param(Era.LEGACY, marks=pytest.mark.nightly)])
def test_the_client(era: Era) -> None:
    run = examine_program(project_client.run_once, [era])
    judged = statuses(run.judgements)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}


@pytest.mark.nightly
def test_the_client_on_the_hook_of_the_sdk(tmp_path: Path) -> None:
    """On a copy of the installed SDK with the patch."""
    shutil.copytree(Path(mcp.__file__).parent, tmp_path / "mcp")
    [patch] = (ROOT / "specs" / "upstream" / "python-sdk").glob("*.patch")
    words = ("git", "apply", "-p2", "--include=mcp/*", patch)
    subprocess.run(words, cwd=tmp_path, check=True)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    client = ("--", sys.executable, HERE / "hooked_client.py")
    run = suite("client", "--one-process", "--json", *client, environment={"PYTHONPATH": path})
    assert (run.code, run.statuses) == (0, {"SUCCESS"}), run.output
