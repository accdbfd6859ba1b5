"""Writes are committed in groups: together, each for itself, and in bounds."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from banking_server.bank import storage
from banking_server.bank.file_watch import FileLock, beside
from banking_server.bank.models import Customer
from banking_server.bank.storage import Bank, BankBusy, DatabaseUnavailable
from banking_server.bank.transaction import Transaction

from .support import open_bank, sql

pytestmark = pytest.mark.anyio

T = TypeVar("T")

PATIENCE = 30
"""Seconds after which something hangs."""


def adds(name: str) -> Callable[[Transaction], None]:
    return lambda tx: tx.add(Customer(customer_id=name, name=name))


def fails(tx: Transaction) -> None:
    adds("never")(tx)
    raise RuntimeError("no")


def added(path: Path) -> set[str]:
    return {name for (name,) in sql(path, "SELECT name FROM customer WHERE name = customer_id")}


@asynccontextmanager
async def at_work(do: Callable[[Callable[[Any], None]], Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """While the block lasts, a piece of work has begun and has not ended."""
    begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(_: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert may_end.wait(PATIENCE)

    task = asyncio.ensure_future(do(wait))
    try:
        await asyncio.wait_for(begun.wait(), PATIENCE)
        yield task
    finally:
        may_end.set()


async def queued(*work: Any) -> list[asyncio.Task[Any]]:
    """Let these wait for their turn."""
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.sleep(0)
    return tasks


async def ended(*tasks: asyncio.Task[Any]) -> list[Any]:
    with anyio.fail_after(PATIENCE):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_failing_write_is_rolled_back_alone(bank: Bank, path: Path) -> None:
    async with at_work(bank.write):
        tasks = await queued(
            bank.write(adds("before")), bank.write(fails), bank.write(adds("after"))
        )
    before, failed, after = await ended(*tasks)
    assert (before, after) == (None, None)
    assert isinstance(failed, RuntimeError)
    assert added(path) == {"before", "after"}


# --- in bounds


async def test_waiting_writes_are_limited(
    bank: Bank, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_WAITING", 2)
    async with at_work(bank.write):
        tasks = await queued(bank.write(adds("a")), bank.write(adds("b")))
        with pytest.raises(BankBusy) as busy:
            await bank.write(adds("c"))
    assert "try again" in str(busy.value)
    await ended(*tasks)
    await bank.write(adds("d"))
    assert added(path) == {"a", "b", "d"}


@pytest.mark.parametrize("held", ["the database", "the turn"])
async def test_waiting_for_another_program_times_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.1)
    bank = await open_bank(path)
    lock = FileLock(beside(path, ".lock"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other, closing(lock):
        if held == "the database":
            other.execute("BEGIN IMMEDIATE")
        with lock.held(0) if held == "the turn" else closing(other):
            tasks = await queued(*(bank.write(adds(f"n{n}")) for n in range(4)))
            assert [type(each) for each in await ended(*tasks)] == [BankBusy] * 4
    await bank.write(adds("afterwards"))
    assert added(path) == {"afterwards"}
    await bank.close()


async def test_close_finishes_running_writes_and_refuses_waiting_ones(path: Path) -> None:
    bank = await open_bank(path)

    def begin(wait: Callable[[Any], None]) -> Any:
        def work(tx: Transaction) -> str:
            adds("begun")(tx)
            wait(tx)
            return "done"

        return bank.write(work)

    def read(wait: Callable[[Any], None]) -> Any:
        return bank.read(lambda tx: (tx.find(Customer, "CUST001"), wait(tx))[1])

    async with at_work(read) as reading:
        async with at_work(begin) as begun:
            waiting = await queued(bank.write(adds("a")), bank.write(adds("b")))
            (closing_,) = await queued(bank.close())
        assert await ended(begun, closing_) == ["done", None]
    assert await ended(reading) == [None]
    assert [type(each) for each in await ended(*waiting)] == [DatabaseUnavailable] * 2
    for late in (bank.write(adds("late")), bank.read(lambda _: None)):
        with pytest.raises(DatabaseUnavailable, match="closed"):
            await late
    assert added(path) == {"begun"}
    await bank.close()
    # The last one who closes leaves nothing beside the file but the lock.
    assert {file.name for file in path.parent.iterdir()} == {"bank.db", "bank.db.lock"}
