"""PostgreSQL: whom a lock keeps out, what a broken connection does, and what is said of it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import anyio
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL

from banking_server.bank import postgresql, storage
from banking_server.bank.audit import list_events, record
from banking_server.bank.models import Customer
from banking_server.bank.rules import Refused
from banking_server.bank.storage import (
    Bank,
    BankBusy,
    DatabaseFailed,
    DatabaseUnavailable,
    MaybeDone,
)
from banking_server.bank.transaction import Statement, Transaction, value

from ..kit import postgres
from ..kit.words import EVERYDAY
from .support import call, confirm, open_bank, prepared, sql

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.only_on("postgresql"),
    pytest.mark.needs_program(postgres.MISSING),
]


# --- the session


# --- the lock


class Elsewhere:
    """Another server's transaction, which holds a customer's lock until it is let go."""

    def __init__(self, url: URL) -> None:
        self.connection = postgresql.connect(url)
        self.connection.execute("BEGIN")
        self.connection.execute(
            "SELECT * FROM customer WHERE customer_id = 'CUST001' FOR NO KEY UPDATE"
        )

    def commit(self, statement: str = "SELECT") -> None:
        self.connection.execute(statement)
        self.connection.execute("COMMIT")
        self.connection.close()


async def until_it_waits(url: URL) -> None:
    with anyio.fail_after(10):
        while not sql(url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)


async def test_reads_after_the_lock_see_the_last_commit(bank: Bank, path: URL) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    elsewhere = Elsewhere(path)
    confirming = asyncio.ensure_future(confirm(bank, transfer_id))
    await until_it_waits(path)
    # Somebody else spends it all meanwhile.
    elsewhere.commit(
        f"UPDATE account SET debits_posted_minor = credits_posted_minor "
        f"WHERE account_id = '{EVERYDAY}'"
    )
    assert isinstance(await confirming, Refused)


async def test_a_lock_timeout_is_reported_as_busy(
    path: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgresql._SESSION, "lock_timeout", "50")  # type: ignore[index]
    bank = await open_bank(path)
    elsewhere = Elsewhere(path)
    with pytest.raises(BankBusy):
        await prepared(bank)
    elsewhere.commit()
    await prepared(bank)


async def test_waiting_for_a_connection_times_out(
    bank: Bank, path: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.05)
    go_on = threading.Event()
    at_work = [
        asyncio.ensure_future(bank.read(lambda tx: go_on.wait(10)))
        for _ in range(postgresql.CONNECTIONS)
    ]
    await asyncio.sleep(0)
    with pytest.raises(BankBusy):
        await record(bank, call(), "too late")
    go_on.set()
    assert await asyncio.gather(*at_work) == [True] * postgresql.CONNECTIONS
    assert await list_events(bank) == []


# --- connections that break

PID = Statement(sa.text("SELECT pg_backend_pid()"), value)


def broken_at(
    url: URL, times: int, then: Callable[[Transaction], None]
) -> tuple[list[int], object]:
    """Return a piece of work whose connection breaks in the middle, so many times."""
    tried: list[int] = []

    def work(tx: Transaction) -> None:
        tx.add(Customer(customer_id="CUST009", name="Nobody"))
        tried.append(1)
        if len(tried) <= times:
            with psycopg.connect(url.render_as_string(hide_password=False)) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (tx.first(PID),))
        then(tx)

    return tried, work


def look_again(tx: Transaction) -> None:
    tx.first(PID)


async def test_a_transaction_cut_off_by_a_broken_connection_is_retried_once(
    bank: Bank, path: URL
) -> None:
    tried, work = broken_at(path, 1, look_again)
    await bank.write(work)  # type: ignore[arg-type]
    assert len(tried) == 2
    assert sql(path, "SELECT count(*) FROM customer WHERE customer_id = 'CUST009'") == [(1,)]


async def test_a_connection_broken_during_the_commit_is_not_retried(bank: Bank, path: URL) -> None:
    committed: list[int] = []
    tried, work = broken_at(path, 1, lambda tx: None)
    with pytest.raises(MaybeDone):
        await bank.write(work, committed=lambda: committed.append(1))  # type: ignore[arg-type]
    assert (tried, committed) == ([1], [])


async def test_waiting_for_an_unreachable_server_times_out(
    bank: Bank, path: URL, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await bank.read(lambda tx: None)
    bank.store._close_idle()  # type: ignore[attr-defined]
    refused: list[int] = []
    connect = postgresql.connect

    def away(url: URL) -> object:
        refused.append(1)
        raise psycopg.OperationalError("connection to server at 10.0.0.1\nfailed: refused")

    monkeypatch.setattr(postgresql, "connect", away)
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.3)
    with pytest.raises(BankBusy):
        await record(bank, call(), "x")
    assert len(refused) > 1

    monkeypatch.setattr(postgresql, "connect", connect)
    await record(bank, call(), "x")
    assert [each.message.split()[-1] for each in caplog.records] == ["refused", "again."]


async def test_a_swallowed_database_error_is_not_acknowledged(bank: Bank, path: URL) -> None:
    def swallow(tx: Transaction) -> None:
        tx.add(Customer(customer_id="CUST009", name="Nobody"))
        with suppress(psycopg.Error):
            tx.add(Customer(customer_id="CUST001", name="There already"))

    with pytest.raises(DatabaseFailed, match="nothing could be committed"):
        await bank.write(swallow)
    assert sql(path, "SELECT count(*) FROM customer WHERE customer_id = 'CUST009'") == [(0,)]


# --- databases that cannot be used


async def refusal(url: URL) -> str:
    with pytest.raises(DatabaseUnavailable) as refused:
        await open_bank(url.set(password="hunter2"))  # type: ignore[arg-type]
    message = str(refused.value)
    assert "\n" not in message
    assert "hunter2" not in message
    return message


async def test_a_database_that_is_not_there_is_refused(path: URL) -> None:
    message = await refusal(path.set(database="nothing"))
    assert message.endswith('database "nothing" does not exist')


async def test_another_programs_database_is_refused_and_left_alone(empty: URL) -> None:
    postgres.run(empty, "CREATE TABLE recipe (name TEXT)")
    assert "another program" in await refusal(empty)
    assert postgres.run(empty, "SELECT * FROM recipe") == []


async def test_a_database_of_another_version_is_refused(empty: URL) -> None:
    await (await open_bank(empty)).close()
    postgres.run(empty, "COMMENT ON TABLE customer IS 'banking-server, schema 99'")
    postgres.run(empty, "ALTER TABLE handoff RENAME TO waiting")
    assert "The database was made by another version of this program" in await refusal(empty)


async def test_append_only_tables_cannot_be_truncated(path: URL) -> None:
    for table in ("posting", "entry", "audit_event"):
        with pytest.raises(psycopg.IntegrityError, match="append-only"):
            sql(path, f"TRUNCATE {table} CASCADE")
