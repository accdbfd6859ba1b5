"""`banking-server install`: what is shown, asked and written, and that it starts."""

import io
import json
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from ..kit.command import Cli, environment
from .support import one_line

FOREIGN = '{"mcpServers": {"bank": {"command": "other", "env": {"KEY": "k"}}}}'


class Person(io.StringIO):
    """Somebody at a terminal, who types this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any host."""
    for name in ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def test_what_is_written_starts(
    cli: Cli, home: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown and asked, written, read as the host does, and called as it would."""
    folder = home / "a b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    written = cli("install", "vscode", "--project", "--customer", "CUST001")
    assert written.out.startswith(f"{folder}/.vscode/mcp.json (new)\n+{{\n")
    assert "mcp.json? [y/N]:" in written.err
    assert "In VS Code" in written.err
    entry = json.loads((folder / ".vscode/mcp.json").read_text())["servers"]["bank"]
    assert entry["type"] == "stdio"

    async def call() -> str:
        start = StdioServerParameters(
            command=entry["command"], args=entry["args"], env=environment(PATH="/nowhere"), cwd="/"
        )
        async with Client(stdio_client(start), mode="legacy") as client:
            arguments = {"fromAccountId": "acc_checking_001", "amount": 250}
            done = await client.call_tool("prepare_money_transfer", arguments)
            return str(done)

    assert "Your reference is" in anyio.run(call)


def test_a_file_is_changed_and_changed_back(cli: Cli, home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {}}')
    written = cli("install", "cursor", "--yes", "--no-proxy")
    assert written.code == 0
    assert written.out.startswith(f"{path}\n-{{")
    assert ".cursor/mcp.json.replaced-" in written.err
    assert "switched on" in written.err
    entry = json.loads(path.read_text())["mcpServers"]["bank"]
    assert Path(entry["command"]).is_file()
    again = cli("install", "cursor", "--no-proxy")
    assert (again.code, again.out) == (0, "")
    assert "Nothing is to be done" in again.err
    assert cli("install", "cursor", "--remove", "--yes").code == 0
    assert path.read_text() == '{"mcpServers": {}}'
    assert "Nothing is to be done" in cli("install", "cursor", "--remove").err


def test_a_no_writes_nothing(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Person("n\n"))
    asked = cli("install", "claude-code", "--project")
    assert asked.code == 1
    assert '+    "bank": {' in asked.out
    assert list(Path().iterdir()) == []


def test_another_server_of_that_name(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xef\xbb\xbf" + FOREIGN.encode())
    where = ("install", "inspector", "--file", str(path))
    assert "--yes does not cover" in one_line(cli(*where, "--yes"))
    assert "--yes does not cover" in one_line(cli(*where, "--yes", "--remove"))
    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    replaced = cli(*where)
    assert replaced.code == 0
    assert 'Replace "bank", which is another server?' in replaced.err
    assert "byte order mark" in replaced.err
    assert "--config" in replaced.err
    assert '"KEY"' in replaced.out
    assert list(json.loads(path.read_text())["mcpServers"]["bank"]) == ["type", "command", "args"]


def test_a_long_line_is_shown_where_it_changes(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"history": "x" * 5_000, "mcpServers": {}, "more": "y" * 5_000}))
    shown = cli("install", "claude-code", "--file", str(path), "--yes").out
    assert '"bank": {' in shown
    assert len(shown) < 2_000


def test_nobody_to_ask(cli: Cli, home: Path) -> None:
    assert "Nobody is here to be asked" in one_line(cli("install", "vscode", "--project"))
    assert list(Path().iterdir()) == []


def test_what_belongs_in_the_file_is_printed_in_any_case(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BANKING_DATABASE")
    assert "Goose does not seem to be installed" in one_line(cli("install", "goose"))
    printed = cli("install", "goose", "--print", "--name", "my-bank")
    assert printed.code == 0
    assert printed.out.startswith("extensions:\n  my-bank:\n    enabled: true\n")
    assert "config.yaml" in printed.err
    assert "--database" not in printed.out
    assert not home.exists()


def test_a_broken_file_is_named_and_left(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{")
    left = one_line(cli("install", "cursor", "--file", str(path), "--yes"))
    assert f"{path} is left as it is: line 1 is no JSON" in left
    assert "--print" in left


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("goose", "--project"), "one configuration"),
        (("cursor", "--project", "--database", "postgresql://ada:secret@db/bank"), "PGPASSFILE"),
    ],
)
def test_what_cannot_be_installed(
    cli: Cli, home: Path, arguments: tuple[str, ...], why: str
) -> None:
    line = one_line(cli("install", *arguments))
    assert why in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("vscode", "--project", "--name", "a b"),
        ("vscode", "--project", "--name", ""),
        ("vscode", "--project", "--file", "x"),
        ("vscode", "--print", "--remove"),
        ("emacs",),
        (),
    ],
)
def test_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli("install", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("created")
def test_a_customer_whom_the_bank_does_not_have(cli: Cli, home: Path) -> None:
    arguments = ("install", "cursor", "--project", "--print", "--customer")
    assert "no customer 'CUST999'" in one_line(cli(*arguments, "CUST999"))
    assert cli(*arguments, "CUST002").code == 0


@pytest.mark.parametrize("database", ["new.db", "x" * 300])
def test_a_customer_whom_a_new_bank_would_not_have(cli: Cli, home: Path, database: str) -> None:
    """There is no database, or none that can be looked at: the first start makes it."""
    arguments = ("install", "cursor", "--project", "--print", "--database", database, "--customer")
    assert "no customer 'CUST999'" in one_line(cli(*arguments, "CUST999"))
    assert cli(*arguments, "CUST002").code == 0


def test_no_command_would_start_tomorrow(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".cache/pipx/x"))
    assert "uv tool install" in one_line(cli("install", "cursor", "--print"))
