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


def _of(entry: dict[str, Any], command: str = "command") -> list[str]:
    return [entry[command], *entry["args"]]


def _of_json(text: str) -> list[str]:
    return _of(json.loads(text)["mcpServers"]["bank"])


READ: dict[str, Callable[[str], list[str]]] = {
    "claude-desktop": _of_json,
    "claude-code": lambda text: shlex.split(text.partition(" bank -- ")[2]),
    "codex": lambda text: _of(tomllib.loads(text)["mcp_servers"]["bank"]),
    "vscode": lambda text: _of(json.loads(shlex.split(text)[2])),
    "cursor": _of_json,
    "goose": lambda text: _of(yaml.safe_load(text)["extensions"]["bank"], "cmd"),
    "inspector": _of_json,
}
"""How each host reads the command in its entry."""


@pytest.mark.parametrize("host", READ)
def test_each_host_reads_full_paths_and_arguments(cli: Cli, tmp_path: Path, host: str) -> None:
    odd = tmp_path / 'a "b" \\ é.db'
    printed = cli("install", host, "--customer", "CUST002", "--database", str(odd))
    assert (printed.code, printed.err.count("\n")) == (0, 1)
    proxy, trust, dashes, server, *behind = READ[host](printed.out)
    assert (Path(proxy).name, Path(server).name) == ("tool-chaining-proxy", "banking-server")
    assert Path(proxy).is_file()
    assert Path(server).is_file()
    assert (trust, dashes) == ("--trust-hints", "--")
    assert behind == ["--customer", "CUST002", "--database", str(odd)]
    assert ("required = true" in printed.out) is (host == "codex")


def test_what_is_printed_starts(cli: Cli, database: Path) -> None:
    """Read as the host does, and called as it would, with the database of the environment."""
    printed = cli("install", "cursor", "--no-proxy", "--customer", "CUST001").out
    command, *arguments = _of_json(printed)

    async def call() -> str:
        start = StdioServerParameters(
            command=command, args=arguments, env=environment(PATH="/nowhere"), cwd="/"
        )
        async with Client(stdio_client(start), mode="legacy") as client:
            locked = {"fromAccountId": "acc_checking_001", "amount": 250}
            return str(await client.call_tool("prepare_money_transfer", locked))

    assert "is currently locked" in anyio.run(call)
    assert database.exists()


def test_what_is_not_printed_is_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ", ".join(READ) in one_line(cli("install", "emacs"))
    url = "postgresql://ada:secret@db.example/bank"
    refused = one_line(cli("install", "cursor", "--database", url))
    assert "PGPASSFILE" in refused
    assert "secret" not in refused
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0/x"))
    assert "uv tool install" in one_line(cli("install", "cursor"))
