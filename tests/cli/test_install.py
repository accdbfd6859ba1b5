"""`banking-server install`: what is printed for each host, and that it starts the server."""

import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from ..kit.command import Cli, environment
from .support import one_line

Entry = dict[str, Any]


def _of_json(text: str) -> Entry:
    entry: Entry = json.loads(text)["mcpServers"]["bank"]
    return entry


def _of_claude(text: str) -> Entry:
    words = shlex.split(text)
    assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "bank", "--"]
    return {"command": words[7], "args": words[8:]}


def _of_vscode(text: str) -> Entry:
    code, add, entry = shlex.split(text)
    assert (code, add) == ("code", "--add-mcp")
    server: Entry = json.loads(entry)
    assert server["name"] == "bank"
    return server


def _of_codex(text: str) -> Entry:
    entry: Entry = tomllib.loads(text)["mcp_servers"]["bank"]
    assert entry["required"] is True
    return entry


def _of_goose(text: str) -> Entry:
    entry: Entry = yaml.safe_load(text)["extensions"]["bank"]
    return {"command": entry["cmd"], "args": entry["args"]}


READ: dict[str, Callable[[str], Entry]] = {
    "claude-desktop": _of_json,
    "claude-code": _of_claude,
    "codex": _of_codex,
    "vscode": _of_vscode,
    "cursor": _of_json,
    "goose": _of_goose,
    "inspector": _of_json,
}
"""How each host reads its entry."""


@pytest.mark.parametrize("host", READ)
def test_each_host_reads_full_paths_and_arguments(cli: Cli, tmp_path: Path, host: str) -> None:
    odd = tmp_path / 'a "b" \\ é.db'
    printed = cli("install", host, "--customer", "CUST002", "--database", str(odd))
    assert (printed.code, printed.err.count("\n")) == (0, 1)
    entry = READ[host](printed.out)
    proxy, in_front, server, behind = _split([entry["command"], *entry["args"]])
    assert Path(proxy).name == "tool-chaining-proxy"
    assert in_front == ["--trust-hints"]
    assert Path(server).name == "banking-server"
    assert behind == ["--customer", "CUST002", "--database", str(odd)]
    assert Path(proxy).is_file()
    assert Path(server).is_file()


def _split(words: list[str]) -> tuple[str, list[str], str, list[str]]:
    at = words.index("--")
    return words[0], words[1:at], words[at + 1], words[at + 2 :]


def test_what_is_printed_starts(cli: Cli, database: Path) -> None:
    """Read as the host does, and called as it would, with the database of the environment."""
    entry = _of_json(cli("install", "cursor", "--no-proxy", "--customer", "CUST001").out)

    async def call() -> str:
        start = StdioServerParameters(
            command=entry["command"], args=entry["args"], env=environment(PATH="/nowhere"), cwd="/"
        )
        async with Client(stdio_client(start), mode="legacy") as client:
            arguments = {"fromAccountId": "acc_checking_001", "amount": 250}
            return str(await client.call_tool("prepare_money_transfer", arguments))

    assert "is currently locked" in anyio.run(call)
    assert database.exists()


def test_an_unknown_host_is_one_line_with_the_known_ones(cli: Cli) -> None:
    assert ", ".join(READ) in one_line(cli("install", "emacs"))


def test_a_password_is_not_printed(cli: Cli) -> None:
    refused = one_line(
        cli("install", "cursor", "--database", "postgresql://ada:secret@db.example/bank")
    )
    assert "PGPASSFILE" in refused
    assert "secret" not in refused


def test_no_command_of_a_cache_is_printed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0/x"))
    assert "uv tool install" in one_line(cli("install", "cursor"))
