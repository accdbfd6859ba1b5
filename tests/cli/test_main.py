"""The program as a whole: usage, a light start, and output that cannot go where it should."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from banking_server import __version__
from banking_server import cli as cli_package

from ..kit.command import PATIENCE, Cli, environment

HEAVY = (
    "aiosqlite",
    "mcp",
    "pydantic",
    "pydantic_ai",
    "sqlalchemy",
    "sqlmodel",
    "starlette",
    "uvicorn",
)


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "9000"),
        ("serve", "--http", "--customer", "CUST001"),
        ("call", "tool", "--url", "http://127.0.0.1:1/mcp", "--", "some-server"),
        ("call", "tool", "--customer", "CUST001", "--", "some-server"),
        ("settle", "--as-of", "tomorrow"),
        ("no-such-command",),
    ],
)
def test_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


def test_the_version_is_said_with_a_light_start() -> None:
    program = (
        "import sys\n"
        "from banking_server.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        f"    print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
    )
    assert said.stdout.splitlines() == [f"banking-server {__version__}", "[]"], said.stderr


def ended(monkeypatch: pytest.MonkeyPatch, output: Any) -> object:
    """Return the exit code of a server that writes more than a pipe holds."""

    def serves(**_: Any) -> None:
        try:
            print("something" * 10_000)
        except OSError as error:
            raise ExceptionGroup("the tasks of a server", [error]) from None

    monkeypatch.setattr(cli_package, "app", serves)
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(SystemExit) as exit_:
        cli_package.main()
    return exit_.value.code


def test_a_client_that_goes_away_is_not_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as nobody:
        assert ended(monkeypatch, nobody) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no device that is full.")
def test_output_that_cannot_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        assert ended(monkeypatch, full) == 2
    said = "banking-server: Output cannot be written: No space left on device.\n"
    assert capsys.readouterr().err == said
