"""Several processes on one file, and processes that are killed in the middle."""

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
from .crasher import play
from .support import NOW, check_books, confirm, open_bank, outcomes, prepared, sql

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


def test_killed_at_one_statement_after_another(
    path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    crashing = FORK.Process(target=play, args=(path, folder), daemon=True)
    crashing.start()
    crashing.join(2 * PATIENCE)
    assert (crashing.exitcode, capfd.readouterr().err) == (0, "")
    runs = sorted(folder.glob("*.db"), key=lambda file: int(file.stem))
    assert len(runs) > 40
    rank = {"pending": 0, "scheduled": 1, "posted": 2}
    for run in runs:
        check_books(run, NOW)
        status = dict(sql(run, "SELECT transfer_id, status FROM transfer"))
        for line in run.with_suffix(".acknowledged").read_text().splitlines():
            said, transfer_id = line.split()
            assert rank[status[transfer_id]] >= rank[said], (run, line)
        # What happened and the event that says so are there together, or neither is.
        events: dict[str, set[str]] = {"prepared": set(), "scheduled": set(), "posted": set()}
        for _, outcome, subject in outcomes(run):
            events[outcome].add(subject)
        assert events["prepared"] == set(status)
        assert events["posted"] == {i for i, state in status.items() if state == "posted"}
        assert events["scheduled"] >= {i for i, state in status.items() if state == "scheduled"}
        # A posting that has to be reported has its report from the first.
        reported = {i for (i,) in sql(run, "SELECT transfer_id FROM compliance_report")}
        assert reported == {i for i, state in status.items() if state == "posted"}
    # The last run was not killed, and what was done side by side was one commit.
    assert set(status.values()) == {"posted"}
    groups = (folder / "statements").read_text().split("BEGIN IMMEDIATE")[1:]
    assert [group.count("SAVEPOINT one") for group in groups] == [2, 2, 1]
