"""Several processes that make one database and share it. `tests/faults` kills them."""

import asyncio
import multiprocessing
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import Location
from banking_server.bank.storage import Bank

from ..kit.command import PATIENCE, end_with_the_tests
from ..kit.words import EVERYDAY, SAVINGS
from .support import check_books, confirm, open_bank, prepared, sql

pytestmark = pytest.mark.anyio

FORK = multiprocessing.get_context("fork")
"""What is forked need not import anything."""


async def one_transfer(bank: Bank, name: str, number: int) -> None:
    now = datetime.now(UTC)
    source, target = (EVERYDAY, SAVINGS) if number % 2 else (SAVINGS, EVERYDAY)
    memo = f"{name} {number}"
    outcome = await prepared(bank, "1.00", source=source, target=target, memo=memo, at=now)
    transfer_id = outcome.transfer.transfer_id
    receipts = await asyncio.gather(*(confirm(bank, transfer_id, at=now) for _ in range(2)))
    assert receipts[0] == receipts[1]
    assert receipts[0].transfer.status == "posted"


async def work(path: Location, name: str, count: int, test: Connection) -> None:
    """Make transfers, and in the middle confirm the one that all processes confirm."""
    bank = await open_bank(path, now=datetime.now(UTC))
    test.send("ready")
    shared = await asyncio.to_thread(test.recv)
    for number in range(count):
        await one_transfer(bank, name, number)
        if number == count // 2:
            test.send(repr(await confirm(bank, shared, at=datetime.now(UTC))))
    await bank.close()


def run(path: Location, name: str, count: int, test: Connection) -> None:
    end_with_the_tests()
    asyncio.run(work(path, name, count, test))


@pytest.fixture
def unmade(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Where there is no bank yet."""
    if engine == "postgresql":
        url: URL = request.getfixturevalue("empty")
        return url
    return tmp_path / "bank.db"


@pytest.mark.on_each
async def test_processes_make_and_share_one_database(
    unmade: Location, template: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = [FORK.Pipe() for _ in range(3)]
    workers = [
        FORK.Process(target=run, args=(unmade, f"w{n}", 10, theirs), daemon=True)
        for n, (_, theirs) in enumerate(ends)
    ]
    for worker in workers:
        worker.start()
    for test, _ in ends:
        assert test.poll(PATIENCE)
        assert test.recv() == "ready"
    for table in ("customer", "account", "posting", "entry"):
        count = f"SELECT count(*) FROM {table}"
        assert sql(unmade, count) == sql(template, count)
    now = datetime.now(UTC)
    bank = await open_bank(unmade)
    shared = (await prepared(bank, "7.00", at=now)).transfer.transfer_id
    await bank.close()
    for test, _ in ends:
        test.send(shared)
    # One receipt for all, whoever's confirmation it was that posted.
    receipts = [test.recv() for test, _ in ends if test.poll(PATIENCE)]
    assert (len(receipts), len(set(receipts))) == (3, 1)
    assert receipts[0].startswith("Posted(")
    for worker in workers:
        worker.join(PATIENCE)
        assert worker.exitcode == 0
    assert capfd.readouterr().err == ""
    assert sql(unmade, "SELECT status, count(*) FROM transfer GROUP BY 1") == [("posted", 31)]
    # Every call has its event: a prepare, two confirms; the shared one, and that of each worker.
    assert sql(unmade, "SELECT count(*) FROM audit_event") == [(30 * 3 + 4,)]
    check_books(unmade, now)
