"""This project's own server and client pass everything, over stdio and HTTP, in both eras."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from banking_server.conformance.client_checks import ClientEnd, run_client
from banking_server.conformance.era import Era
from banking_server.packaged import packaged

from .project_client import follow
from .support import HERE, all_checks, scripts, statuses, suite

SCENARIOS = packaged("specs") / "conformance" / "server"
BANKING, EXPIRED = SCENARIOS / "banking.yaml", SCENARIOS / "banking-expired.yaml"
BANK = [sys.executable, "-m", "banking_server"]
PATIENCE = 60


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a bank with a database of its own."""
    return {"BANKING_DATABASE": str(tmp_path_factory.mktemp("bank") / "bank.db")}


def test_the_server_over_stdio(bank: dict[str, str]) -> None:
    run = suite("server", "--scenario", BANKING, "--json", "--", *BANK, environment=bank)
    assert run.code == 0, run.output
    assert run.statuses == {"SUCCESS"}
    assert run.report["spec_versions"] == list(Era)


def test_the_server_whose_transfers_expire(tmp_path: Path) -> None:
    bank = {"BANKING_DATABASE": str(tmp_path / "bank.db")}
    run = suite("server", "--scenario", EXPIRED, "--json", "--", *BANK, environment=bank)
    # This scenario asks nothing and has nothing refused: those checks do not apply.
    assert run.code == 0, run.output
    assert run.statuses == {"SUCCESS", "SKIPPED"}


@pytest.fixture(scope="module")
def bank_url(bank: dict[str, str]) -> Iterator[str]:
    """The bank over HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*BANK, "serve", "--http", "--port", str(port)],
        env={**os.environ, **bank},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        os.environ["BANKING_PORT"] = str(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        os.environ.pop("BANKING_PORT", None)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def test_the_server_over_http(bank: dict[str, str], bank_url: str) -> None:
    minted = subprocess.run(
        [*BANK, "token", "--customer", "CUST001"],
        env={**os.environ, **bank},
        capture_output=True,
        text=True,
        check=True,
    )
    arguments = ["server", "--url", bank_url, "--scenario", BANKING, "--json"]
    token = {"BANK_TOKEN": f"Bearer {minted.stdout.strip()}"}
    run = suite(*arguments, "--header", "Authorization=BANK_TOKEN", environment=token)
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    assert run.statuses == {"SUCCESS"}


@pytest.mark.parametrize("era", Era)
def test_the_client(era: Era) -> None:
    def run_once(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        return ClientEnd(0, asyncio.run(follow(url, environment)), "")

    run = run_client(run_once, scripts(), [era], all_checks("client"), 30, lambda what: None)
    judged = statuses(run.judgements)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}


def test_the_client_as_a_command() -> None:
    run = suite(
        *("client", "--check", "tool-chaining-client-passes-arguments-exactly", "--json"),
        *("--", sys.executable, HERE / "project_client.py"),
    )
    assert run.code == 0, run.output
    assert run.statuses == {"SUCCESS"}
