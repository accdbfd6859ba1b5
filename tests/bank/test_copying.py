"""From a SQLite file to PostgreSQL: everything, as it was, and numbered on from there."""

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from banking_server.bank import copying, opening, postgresql
from banking_server.bank.audit import list_events
from banking_server.bank.audit_archive import archive_events, find_archivable
from banking_server.bank.copying import copy_bank
from banking_server.bank.models import TABLES
from banking_server.bank.storage import DatabaseUnavailable
from banking_server.bank.transfers import Posted

from ..kit import postgres
from ..kit.words import EVERYDAY, PAYEE, SAVINGS, wrong
from .support import DAY, NOW, check_books, confirm, open_bank, posted, prepared, sql
from .test_migrations import FORMAT_1

pytestmark = [pytest.mark.anyio, pytest.mark.needs_program(postgres.MISSING)]


MEMO = r"it's ü, \N or \t, \\."
"""What COPY has words of its own for."""


@pytest.fixture
async def file(template: Path, tmp_path: Path) -> Path:
    """A bank that has been at work, and whose first audit events are in an archive."""
    path = tmp_path / "bank.db"
    path.write_bytes(template.read_bytes())
    bank = await open_bank(path)
    await posted(bank, "3000.00", source=SAVINGS, target=PAYEE, memo=MEMO)
    later = NOW + 2 * DAY
    events = await find_archivable(bank, later.date(), later)
    await archive_events(bank, events, tmp_path / "old", as_line=repr, now=later)
    waiting = await prepared(bank, "1.00", memo="waits")
    await confirm(bank, waiting.transfer.transfer_id, code=wrong(waiting.code), agreed=False)
    await bank.close()
    return path


def stored(location: Path | URL, table: str) -> list[tuple[Any, ...]]:
    return sql(location, f"SELECT count(*), min(t), max(t) FROM (SELECT 1 AS t FROM {table}) AS x")


async def test_everything_arrives_and_goes_on_from_there(file: Path, empty: URL) -> None:
    said = copy_bank(file, empty)
    assert said.endswith(f"records in {len(TABLES)} tables")
    for table in (each.name for each in TABLES.values()):
        assert stored(empty, table) == stored(file, table), table
    check_books(empty, NOW)
    memo = "SELECT memo FROM transfer WHERE status = 'posted'"
    assert sql(empty, memo) == sql(file, memo) == [(MEMO,)]
    highest = "SELECT max(event_id) FROM audit_event"
    ((before,),) = sql(file, highest)

    bank = await open_bank(empty, may_create=False)
    ((waiting,),) = sql(empty, "SELECT transfer_id FROM transfer WHERE status = 'pending'")
    assert isinstance(await confirm(bank, waiting), Posted)
    await posted(bank, "1.00", source=SAVINGS, target=EVERYDAY)
    assert (await list_events(bank))[-1].event_id == before + 3
    await bank.close()
    check_books(empty, NOW)


async def test_no_number_of_an_archived_event_is_given_again(file: Path, empty: URL) -> None:
    sql(file, "INSERT INTO audit_archive SELECT 9, at, 1000, 1, '' FROM audit_event LIMIT 1")
    sql(file, "UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'audit_event'")
    sql(file, "DELETE FROM audit_event")
    copy_bank(file, empty)
    bank = await open_bank(empty)
    await prepared(bank, "2.00")
    (event,) = await list_events(bank)
    assert event.event_id == 1001
    await bank.close()


async def test_a_file_of_an_older_format_is_brought_up_first(tmp_path: Path, empty: URL) -> None:
    file = tmp_path / "bank.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(FORMAT_1.read_text(encoding="utf-8"))
    connection.close()
    copy_bank(file, empty)
    check_books(empty, NOW)


async def refusal(file: Path, url: URL) -> str:
    with pytest.raises(DatabaseUnavailable) as refused:
        copy_bank(file, url.set(password="hunter2"))
    assert "hunter2" not in str(refused.value)
    return str(refused.value)


def tables(url: URL) -> Sequence[Any]:
    return sql(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")


async def test_a_target_that_is_not_empty_stays_as_it_is(file: Path, database: Any) -> None:
    url = database.reset()
    before = sql(url, "SELECT * FROM account ORDER BY 1")
    assert "is not empty, and stays as it is" in await refusal(file, url)
    assert sql(url, "SELECT * FROM account ORDER BY 1") == before


async def test_a_file_that_is_open_is_refused(file: Path, empty: URL) -> None:
    bank = await open_bank(file)
    assert "is in use; stop the server first" in await refusal(file, empty)
    assert tables(empty) == []
    await bank.close()


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, empty: URL) -> None:
    with pytest.raises(DatabaseUnavailable, match="There is no file"):
        copy_bank(tmp_path / "bank.db", empty)
    assert list(tmp_path.iterdir()) == []


async def test_a_server_that_is_not_there(file: Path) -> None:
    url = URL.create("postgresql", "me", host="127.0.0.1", port=1, database="b")
    assert "it cannot be reached" in await refusal(file, url)


async def test_what_arrives_as_something_else_is_noticed(
    file: Path, empty: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_in = postgresql.copy_in

    def lose_one(connection: Any, table: Any, rows: Any) -> None:
        copy_in(connection, table, list(rows)[: -1 if table.name == "handoff" else None])

    def change_one(connection: Any, table: Any, rows: Any) -> None:
        changed = [(*row[:-1], "Eve") if table.name == "customer" else row for row in rows]
        copy_in(connection, table, changed)

    for wrong_copy, name in ((lose_one, "handoff"), (change_one, "customer")):
        sql(
            file,
            "INSERT OR IGNORE INTO handoff VALUES ('ho_1', 'CUST001', 'r', NULL, 'open', "
            "'2026-03-04T10:00:00.000000Z', NULL, NULL)",
        )
        with monkeypatch.context() as patch:
            patch.setattr(postgresql, "copy_in", wrong_copy)
            message = await refusal(file, empty)
        assert message == (f"Nothing was copied: of {name}, something arrived as something else.")
        assert tables(empty) == []


async def test_a_bank_with_faults_is_not_copied(file: Path, empty: URL) -> None:
    sql(file, "UPDATE account SET debits_pending_minor = 77 WHERE currency = 'EUR'")
    assert "the bank has faults, such as: account" in await refusal(file, empty)
    assert tables(empty) == []


async def test_what_postgresql_refuses_is_said_in_our_words(file: Path, empty: URL) -> None:
    sql(file, "UPDATE customer SET name = 'A' || char(0) || 'B' WHERE customer_id = 'CUST001'")
    message = await refusal(file, empty)
    assert message.startswith(f"Nothing was copied to {empty.set(password='x')}. The database")
    assert tables(empty) == []


async def test_the_extra_that_is_missing_is_named(
    file: Path, empty: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "banking_server.bank.postgresql", None)
    monkeypatch.delattr("banking_server.bank.postgresql", raising=False)
    for needing in (copying.load_postgresql, opening.load_postgresql):
        with pytest.raises(DatabaseUnavailable, match=r"pip install '\.\[postgres\]'"):
            needing()
