"""The database's own commands."""

import io
import sys
from pathlib import Path

import pytest

from ..kit.bank import SECRET
from ..kit.command import Cli
from .support import at_the_bank, one_line, wait_for_an_agent

NOBODY = "No customer is waiting for an agent.\n"


def test_create_makes_one_only_where_there_is_none(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKING_SECRET", SECRET)
    # A server makes none where there is a secret, and other commands make none at all.
    for command in (
        *((), ("serve", "--http"), ("handoffs",), ("token", "--customer", "CUST001")),
        *(("approvals",), ("audit",), ("settle",)),
        *(("database", "backup", "copy"), ("database", "check")),
    ):
        line = one_line(cli(*command))
        assert f"There is no database at {database}. Create one with `banking-server data" in line
        assert not database.exists()
    created = cli("database", "create")
    assert (created.code, created.err) == (0, f"{database} holds the demo data.\n")
    assert cli("handoffs").code == 0
    assert "already" in one_line(cli("database", "create"))


def test_reset_needs_a_yes_and_starts_anew(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_bank(database, wait_for_an_agent)
    assert "--yes" in one_line(cli("database", "reset"))

    def type_at_a_terminal(line: str) -> None:
        stdin = io.StringIO(line)
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", stdin)

    type_at_a_terminal("n\n")
    refused = cli("database", "reset")
    assert (refused.code, refused.out.strip()) == (1, "")
    assert f"{database}" in refused.err.replace("\n", "")
    assert "open" in cli("handoffs").out
    type_at_a_terminal("y\n")
    assert cli("database", "reset").code == 0
    assert cli("handoffs").out == NOBODY
    database.write_bytes(database.read_bytes()[:2000])  # damaged
    assert "malformed" in one_line(cli("handoffs"))
    assert cli("database", "reset", "--yes").code == 0
    assert cli("handoffs").out == NOBODY


def test_backup_and_restore(cli: Cli, database: Path, tmp_path: Path) -> None:
    handoff = at_the_bank(database, wait_for_an_agent)
    copy = tmp_path / "copy.db"
    done = cli("database", "backup", str(copy))
    assert (done.code, done.out) == (0, "")
    assert "The secret is not in it" in done.err
    assert "already" in one_line(cli("database", "backup", str(copy)))

    assert cli("handoffs", "claim", handoff, "--agent", "Ada").code == 0
    assert "--yes" in one_line(cli("database", "restore", str(copy)))
    assert cli("handoffs").out == NOBODY
    done = cli("database", "restore", str(copy), "--yes")
    (kept,) = tmp_path.glob("bank.db.replaced-*")
    assert str(kept) in done.err
    assert cli("handoffs").out.startswith(handoff)
    checked = cli("database", "check")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out == f"No faults were found in {database}.\n"
    assert "There is no file" in one_line(cli("database", "restore", str(tmp_path / "x"), "--yes"))
