"""Servers that several tests use, and an environment that holds nobody's settings."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from banking_server.cli import main

from ..kit.any_server import any_server
from ..kit.bank import copy_of
from ..kit.command import PATIENCE, Cli, Ended
from ..kit.servers import HttpServer, http_server


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("BANKING_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "bank.db"


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> Path:
    """A database that is there already, with the demo data."""
    return copy_of(filled, tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: Path) -> Cli:
    """Run a command in this process, without a terminal, on a database of the test's own."""
    monkeypatch.setenv("BANKING_DATABASE", str(database))
    # As in a new process; and what a command changes is undone.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("mcp"), "propagate", True)

    def invoke(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["banking-server", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return invoke


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[str]:
    """Somebody else's server, over HTTP; its URL."""
    with any_server() as url:
        yield url


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """An HTTP server as it is by default, but for its log: it says as much as it can."""
    with http_server(tmp_path_factory.mktemp("bank"), BANKING_LOG_LEVEL="DEBUG") as server:
        yield server
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0, "Ctrl-C ends it"
        assert "Traceback" not in server.logged()
