"""The commands on PostgreSQL: the same, and a password that is never shown."""

import json
from pathlib import Path

import pytest

from banking_server.bank.location import in_full

from ..kit import postgres
from ..kit.bank import SECRET
from ..kit.command import Cli, run
from .support import at_the_bank, one_line, wait_for_an_agent

PASSWORD = "hunter2"
NOWHERE = f"postgresql://me:{PASSWORD}@127.0.0.1:1/bank"


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
        postgres.sql(url, "DROP TABLE audit_event CASCADE")
        checked = cli("database", "check")
        assert (checked.code, "the table audit_event is missing" in checked.out) == (1, True)
        assert "pg_dump" in one_line(cli("database", "backup", str(tmp_path / "copy")))
        assert "dropdb" in one_line(cli("database", "reset", "--yes"))
    assert PASSWORD not in "".join([*said, called.stdout, called.stderr])
    assert not database.exists()


def test_a_server_that_is_not_there_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_SECRET", SECRET)
    monkeypatch.setenv("BANKING_DATABASE", NOWHERE)
    for command in ((), ("serve", "--http"), ("handoffs",)):
        line = one_line(cli(*command))
        assert "postgresql://me:***@127.0.0.1:1/bank cannot be used: it cannot be reached" in line
        assert PASSWORD not in line
