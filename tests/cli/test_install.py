"""`banking-server install`: what each host is given. `tests/proxy/test_hosts.py` starts it."""

import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..kit.command import Cli
from .support import one_line


def _of(entry: dict[str, Any], command: str = "command") -> list[str]:
    return [entry[command], *entry["args"]]


def _of_json(text: str) -> list[str]:
    return _of(json.loads(text)["mcpServers"]["bank"])


READ: dict[str, Callable[[str], list[str]]] = {
    "claude-desktop": _of_json,
    "claude-code": lambda text: _of(json.loads(shlex.split(text)[-1])),
    "codex": lambda text: _of(tomllib.loads(text)["mcp_servers"]["bank"]),
    "vscode": lambda text: _of(json.loads(shlex.split(text)[2])),
    "cursor": _of_json,
    "goose": lambda text: _of(yaml.safe_load(text)["extensions"]["bank"], "cmd"),
    "inspector": _of_json,
}
"""How each host reads the command in its entry."""


@pytest.mark.parametrize("host", READ)
def test_each_host_reads_full_paths_and_arguments(cli: Cli, tmp_path: Path, host: str) -> None:
    chosen = ["--customer", "CUST002", "--database", str(tmp_path / 'a "b" \\ é.db')]
    chosen += ["--codes", "desk"]
    printed = cli("install", host, *chosen)
    assert (printed.code, printed.err.count("\n")) == (0, 1)
    proxy, trust, dashes, server, *behind = READ[host](printed.out)
    assert (Path(proxy).name, Path(server).name) == ("tool-chaining-proxy", "banking-server")
    assert Path(proxy).is_file()
    assert Path(server).is_file()
    assert (trust, dashes) == ("--trust-hints", "--")
    assert behind == chosen
    assert ("required = true" in printed.out) is (host == "codex")
    assert ("alwaysLoad" in printed.out) is (host == "claude-code")


def test_the_environment_says_what_the_entry_has(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANKING_DATABASE", "my.db")
    monkeypatch.setenv("BANKING_CUSTOMER", "CUST002")
    args = json.loads(cli("install", "cursor").out)["mcpServers"]["bank"]["args"]
    assert args[-4:] == ["--customer", "CUST002", "--database", str(tmp_path / "my.db")]


def test_an_entry_that_cannot_be_printed_is_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ", ".join(READ) in one_line(cli("install", "emacs"))
    assert cli("install").out.split() == [*READ]
    url = "postgresql://ada:secret@db.example/bank"
    refused = one_line(cli("install", "cursor", "--database", url))
    assert "PGPASSFILE" in refused
    assert "secret" not in refused
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0/x"))
    assert "uv tool install" in one_line(cli("install", "cursor"))
