"""The database's own commands."""

import io
import json
import sys
from pathlib import Path

import pytest

from banking_server.bank.location import in_full

from ..kit import postgres
from ..kit.bank import SECRET
from ..kit.command import Cli, run
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


# --- on PostgreSQL: the same, and a password that is never shown ----------------------------------

PASSWORD = "hunter2"


@pytest.mark.needs_program(postgres.MISSING)
def test_the_commands_of_the_database(
    cli: Cli, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []

    def do(*arguments: str) -> str:
        ended = cli(*arguments)
        said.append(ended.out + ended.err)
        assert ended.code == 0, ended
        return said[-1]

    with postgres.empty_database() as empty:
        url = empty.set(password=PASSWORD)
        monkeypatch.setenv("BANKING_DATABASE", in_full(url))
        monkeypatch.setenv("BANKING_SECRET", SECRET)
        assert "is empty. Fill it with `banking-server database create`" in one_line(
            cli("handoffs")
        )
        assert f"problem  database: {url} is empty: create one with `bank" in cli("doctor").out
        assert do("database", "create") == f"{url} holds the demo data.\n"
        assert f"ok       database: {url}\n" in do("--customer", "CUST001", "doctor")
        assert "already" in one_line(cli("database", "create"))
        assert do("database", "check") == f"No faults were found in {url}.\n"
        at_the_bank(url, wait_for_an_agent)  # type: ignore[arg-type]
        assert "open" in do("handoffs")
        assert "request_agent_handoff" in do("audit")
        assert do("token", "--customer", "CUST001").count(".") == 2
        # The program's own client reaches it, too.
        listed = ("--database", in_full(url), "call", "list_accounts", "--json")
        called = run(*listed, BANKING_SECRET=SECRET)
        assert json.loads(called.stdout)["outcome"] == "completed", called.stderr
        assert "pg_dump" in one_line(cli("database", "backup", str(tmp_path / "copy")))
        assert "dropdb" in one_line(cli("database", "reset", "--yes"))
    assert PASSWORD not in "".join([*said, called.stdout, called.stderr])
    assert not database.exists()
