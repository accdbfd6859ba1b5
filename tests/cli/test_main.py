"""The program as a whole: usage, a light start, and output that cannot go where it should."""

import subprocess
import sys
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
def test_invalid_usage_ends_with_code_2(cli: Cli, arguments: tuple[str, ...]) -> None:
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


def test_a_client_that_goes_away_is_not_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serves(**_: Any) -> None:
        raise ExceptionGroup("the tasks of a server", [BrokenPipeError()])

    monkeypatch.setattr(cli_package, "app", serves)
    with pytest.raises(SystemExit) as ended:
        cli_package.main()
    assert (ended.value.code, capsys.readouterr().err) == (1, "")
