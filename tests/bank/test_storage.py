"""The file: made once, its owner's only, opened or clearly refused; and its transactions."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import psycopg
import pytest
import sqlalchemy as sa

from banking_server.bank import storage
from banking_server.bank.audit import Call, list_events, record
from banking_server.bank.backup import delete_database
from banking_server.bank.demo_data import read_demo_data
from banking_server.bank.location import Location
from banking_server.bank.models import Customer
from banking_server.bank.postgresql import CONNECTIONS
from banking_server.bank.storage import Bank, DatabaseFailed, DatabaseUnavailable
from banking_server.bank.transaction import Statement, Transaction, value
from banking_server.server.open_bank import DEMO_DATA

from .support import DAY, NOW, call, check_books, open_bank, prepare, sql

pytestmark = pytest.mark.anyio


async def test_a_new_database_is_private_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "odd name?#%20.db"
    before = os.umask(0)
    try:
        bank = await open_bank(path)
        await record(bank, call(), "x")
    finally:
        os.umask(before)
    assert len(list(path.parent.iterdir())) == 4
    assert {f.stat().st_mode & 0o777 for f in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await bank.close()
    assert {f.name for f in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}
    check_books(path, NOW)


async def test_the_demo_data_have_the_balances_as_written_and_a_history_in_the_past(
    tmp_path: Path,
) -> None:
    now = datetime(2028, 2, 29, 0, 0, tzinfo=UTC)
    path = tmp_path / "bank.db"
    bank = await open_bank(path, now=now)
    await bank.close()
    check_books(path, now)
    balances = dict(sql(path, "SELECT account_id, sum(amount_minor) FROM entry GROUP BY 1"))
    for account in read_demo_data(DEMO_DATA).accounts:
        if account.account_type != "external":
            assert balances.get(account.account_id, 0) == account.balance
    ((newest,),) = sql(path, "SELECT max(posted_at) FROM posting")
    assert now - 2 * DAY < datetime.fromisoformat(newest) <= now


async def test_every_connection_is_set_up(bank: Bank) -> None:
    names = ("foreign_keys", "synchronous", "wal_autocheckpoint", "query_only")
    pragmas = [Statement(sa.text(f"PRAGMA {name}"), value) for name in names]

    def read(tx: Transaction) -> list[int | None]:
        return [tx.first(pragma) for pragma in pragmas]

    assert await bank.write(read) == [1, 2, 0, 0]
    assert await bank.read(read) == [1, 2, 0, 1]


def add_somebody(tx: Transaction) -> None:
    tx.add(Customer(customer_id="CUST009", name="Nobody"))


@pytest.mark.on_each
async def test_a_reader_cannot_write(bank: Bank) -> None:
    with pytest.raises(DatabaseFailed, match=r"readonly|ReadOnly"):
        await bank.read(add_somebody)


@pytest.mark.on_each
async def test_an_error_does_not_leak_stored_data(bank: Bank) -> None:
    def twice(tx: Transaction) -> None:
        tx.add(Customer(customer_id="CUST001", name="A very private name"))

    with pytest.raises(DatabaseFailed, match="refused a change") as error:
        await bank.write(twice)
    assert "private" not in str(error.value)


# --- files that cannot be used


async def refusal(path: Path, **more: object) -> str:
    with pytest.raises(DatabaseUnavailable) as refused:
        await open_bank(path, **more)  # type: ignore[arg-type]
    message = str(refused.value)
    assert "\n" not in message
    assert "sqlalche.me" not in message
    return message


def a_folder(path: Path) -> None:
    path.mkdir()


def a_letter(path: Path) -> None:
    path.write_text("Dear bank, " * 500)


def another_programs(path: Path) -> None:
    sql(path, "CREATE TABLE recipe (name TEXT)")
    path.chmod(0o644)


def state(path: Path) -> tuple[int, bytes | None]:
    return path.stat().st_mode, path.read_bytes() if path.is_file() else None


@pytest.mark.parametrize(
    ("make", "opened", "deleted"),
    [
        (a_folder, "is a folder", "cannot be"),
        (
            a_letter,
            "file is not a database",
            "is not a database of this program; it was left alone",
        ),
        (another_programs, "another program", "is not a database of this program"),
    ],
)
async def test_a_foreign_file_is_refused_and_unchanged(
    tmp_path: Path, make: Callable[[Path], None], opened: str, deleted: str
) -> None:
    path = tmp_path / "bank.db"
    make(path)
    before = state(path)
    assert opened in await refusal(path)
    with pytest.raises(DatabaseUnavailable, match=deleted):
        delete_database(path)
    assert state(path) == before


@pytest.mark.parametrize("version", [0, 1, 2**31 - 1])
async def test_a_database_of_another_version_is_refused(path: Path, version: int) -> None:
    sql(path, f"PRAGMA user_version = {version}")
    assert await refusal(path) == (
        f"{path} was made by another version of this program. Use that version, or choose another "
        "database with --database or BANKING_DATABASE, or delete everything in it and start over "
        "with `banking-server database reset`."
    )


async def test_a_file_that_stays_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.1)
    path = tmp_path / "bank.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "is locked" in await refusal(path)
    await (await open_bank(path)).close()


# --- deleting it


async def test_deleting_a_database_deletes_its_side_files(path: Path) -> None:
    await (await open_bank(path)).close()
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(f"bank.db{suffix}").write_bytes(b"")
    delete_database(path)
    assert list(path.parent.iterdir()) == []
    delete_database(path)
    path.touch()  # An empty file is one that was never filled.
    delete_database(path)
    assert not path.exists()


@pytest.mark.on_each
async def test_cancelled_calls_release_the_lock_and_know_if_they_were_recorded(
    bank: Bank, path: Location
) -> None:
    calls: list[Call] = []

    async def one_call(place: int) -> None:
        await asyncio.sleep(place * 0.0002)
        this = call()
        calls.append(this)
        await record(bank, this, f"n{place}")

    for number in range(11):
        # Whoever comes first has to wait for these.
        others = [
            asyncio.ensure_future(bank.write(lambda tx: time.sleep(0.001)))
            for _ in range(CONNECTIONS)
        ]
        await asyncio.sleep(0)
        with anyio.move_on_after(2**number / 4_000):
            async with anyio.create_task_group() as group:
                for place in range(12):
                    group.start_soon(one_call, place)
        await asyncio.gather(*others)
    with anyio.fail_after(2):
        await one_call(0)
        await prepare(bank)
    recorded = sum(each.recorded for each in calls)
    assert 1 < recorded < len(calls)
    assert len(await list_events(bank)) == recorded + 1
    check_books(path, NOW)


# --- what the tables themselves refuse


REFUSED = (sqlite3.IntegrityError, psycopg.IntegrityError)


@pytest.mark.on_each
async def test_append_only_tables_cannot_be_changed(bank: Bank, path: Location) -> None:
    await record(bank, call(), "x")
    for statement in (
        "DELETE FROM posting",
        "DELETE FROM entry",
        "DELETE FROM audit_event",
        "UPDATE posting SET description = '1'",
        "UPDATE entry SET amount_minor = 1",
        "UPDATE audit_event SET outcome = '1'",
    ):
        with pytest.raises(REFUSED, match="append-only"):
            sql(path, statement)


TRANSFER = """INSERT INTO transfer VALUES
    ('tr_x', 'CUST001', 'acc_savings_001', 'acc_everyday_001', 100, 'USD', NULL, NULL,
     'pending', NULL, 'none', 0, '2026-03-04T10:00:00Z', '2026-03-04T10:10:00Z', NULL, 0)"""


@pytest.mark.on_each
def test_the_schema_refuses_an_invalid_transfer(path: Location) -> None:
    for part, instead in (
        ("'pending'", "'lost'"),
        ("'pending'", "'posted'"),
        ("100", "0"),
        ("'USD'", "'EUR'"),
        ("acc_everyday_001", "acc_savings_001"),
        ("acc_everyday_001", "acc_nobody"),
        ("CUST001", "CUST999"),
    ):
        with pytest.raises(REFUSED):
            sql(path, TRANSFER.replace(part, instead, 1))
    sql(path, TRANSFER)


ENTRY = """INSERT INTO entry (posting_id, side, account_id, amount_minor, currency, posted_at,
    debits_after_minor, credits_after_minor) VALUES ({}, '2026-03-04T10:00:00Z', 0, 0)"""
DEBIT = ENTRY.format("9001, 'debit', 'acc_savings_001', -100, 'USD'")
CREDIT = ENTRY.format("9001, 'credit', 'acc_everyday_001', 100, 'USD'")
POSTING = "INSERT INTO posting VALUES ({}, 'transfer', 'x', '2026-03-04T10:00:00Z', 'tr_x')"


@pytest.mark.on_each
def test_the_schema_refuses_invalid_entries(path: Location) -> None:
    sql(path, TRANSFER)
    sql(path, POSTING.format(9001))
    for values in (
        "9001, 'credit', 'acc_everyday_001', 100, 'USD'",  # no debit yet
        "9001, 'debit', 'acc_savings_001', 100, 'USD'",  # the wrong sign
        "9001, 'debit', 'acc_savings_001', 0, 'USD'",
        "9001, 'debit', 'acc_savings_001', -100, 'EUR'",
        "9002, 'debit', 'acc_savings_001', -100, 'USD'",  # no such posting
    ):
        with pytest.raises(REFUSED):
            sql(path, ENTRY.format(values))
    sql(path, DEBIT)
    for values in (
        "9001, 'credit', 'acc_everyday_001', 99, 'USD'",  # does not sum to zero
        "9001, 'credit', 'acc_savings_001', 100, 'USD'",  # with itself
        "9001, 'debit', 'acc_everyday_001', -100, 'USD'",  # a second debit
    ):
        with pytest.raises(REFUSED):
            sql(path, ENTRY.format(values))
    sql(path, CREDIT)
    with pytest.raises(REFUSED):  # The ledger itself knows that a transfer posts once.
        sql(path, POSTING.format(9002))
