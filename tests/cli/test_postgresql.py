"""The commands on PostgreSQL: the same, and a password that is never shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import in_full
from banking_server.server.settings import SettingsError, load_settings

from ..kit import postgres
from ..kit.command import Cli, run
from .support import at_the_bank, one_line, wait_for_an_agent

SECRET = "for-tests-only-0123456789abcdef0123456789abcdef"
PASSWORD = "hunter2"
NOWHERE = f"postgresql://me:{PASSWORD}@127.0.0.1:1/bank"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[URL]:
    """An empty database that the environment names."""
    with postgres.empty_database() as empty:
        url = empty.set(password=PASSWORD)
        monkeypatch.setenv("BANKING_DATABASE", in_full(url))
        monkeypatch.setenv("BANKING_SECRET", SECRET)
        yield url


@pytest.mark.needs_program(postgres.MISSING)
def test_the_commands_of_the_database(cli: Cli, url: URL, database: Path, tmp_path: Path) -> None:
    said = []

    def do(*arguments: str) -> str:
        ended = cli(*arguments)
        said.append(ended.out + ended.err)
        assert ended.code == 0, ended
        return said[-1]

    assert "is empty. Fill it with `banking-server database create`" in one_line(cli("handoffs"))
    assert f"problem  database: {url} is empty: create one with `bank" in cli("doctor").out
    assert do("database", "create") == f"{url} holds the demo data.\n"
    assert f"ok       database: {url}\n" in do("--customer", "CUST001", "doctor")
    assert f"{url} has no customer 'CUST9'" in cli("--customer", "CUST9", "doctor").out
    assert "already" in one_line(cli("database", "create"))
    assert do("database", "check") == f"No faults were found in {url}.\n"
    at_the_bank(url, wait_for_an_agent)  # type: ignore[arg-type]
    assert "open" in do("handoffs")
    assert "request_agent_handoff" in do("audit")
    postgres.sql(url, "DROP TABLE audit_event CASCADE")
    assert "UndefinedTable" in one_line(cli("audit"))
    checked = cli("database", "check")
    assert (checked.code, "the table audit_event is missing" in checked.out) == (1, True)
    assert do("token", "--customer", "CUST001").count(".") == 2
    assert "pg_dump" in one_line(cli("database", "backup", str(tmp_path / "copy")))
    assert "dropdb" in one_line(cli("database", "reset", "--yes"))
    assert PASSWORD not in "".join(said)
    assert not database.exists()


@pytest.mark.needs_program(postgres.MISSING)
def test_the_programs_own_client_reaches_it(cli: Cli, url: URL) -> None:
    assert cli("database", "create").code == 0
    called = run(
        *("--database", in_full(url), "call", "list_accounts", "--json"), BANKING_SECRET=SECRET
    )
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["outcome"] == "completed"
    assert PASSWORD not in called.stdout + called.stderr


def test_another_server_is_not_told_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    from banking_server.cli.client import started_by

    monkeypatch.setenv("BANKING_DATABASE", NOWHERE)
    assert "BANKING_DATABASE" not in (started_by(["x"]).env or {})
    monkeypatch.setenv("BANKING_DATABASE", "bank.db")
    assert (started_by(["x"]).env or {})["BANKING_DATABASE"] == "bank.db"


def test_a_server_that_is_not_there_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_SECRET", SECRET)
    monkeypatch.setenv("BANKING_DATABASE", NOWHERE)
    for command in ((), ("serve", "--http"), ("handoffs",)):
        line = one_line(cli(*command))
        assert "postgresql://me:***@127.0.0.1:1/bank cannot be used: it cannot be reached" in line
        assert PASSWORD not in line


def test_settings_keep_the_password_to_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(database=NOWHERE)
    assert PASSWORD not in f"{settings!r} {settings} {settings.database}"
    # But for the worker processes, which need it.
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings
    with pytest.raises(SettingsError) as refused:
        load_settings(database=f"mysql://me:{PASSWORD}@h/b")
    assert PASSWORD not in str(refused.value)
