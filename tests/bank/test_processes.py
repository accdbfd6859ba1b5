"""Several processes on one file, and processes that are killed in the middle."""

import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from banking_server.bank.location import Location, in_full

from ..kit.words import EVERYDAY, SAVINGS
from .support import DATA, NOW, check_books, open_bank, outcomes, posted, prepared, sql

pytestmark = pytest.mark.anyio

WORKER = Path(__file__).with_name("worker.py")


def start(path: Location, name: str, count: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKER, in_full(path), DATA, name, str(count), DATA.parent, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def let_go(workers: list[subprocess.Popen[str]]) -> None:
    """Let the workers begin at once, when all are ready."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith("ready")
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()


async def test_processes_share_one_database(path: Location) -> None:
    now = datetime.now(UTC)
    bank = await open_bank(path)
    shared = (await prepared(bank, "7.00", at=now)).transfer.transfer_id
    await bank.close()
    before = sql(path, "SELECT count(*) FROM audit_event")[0][0]
    workers = [start(path, f"w{n}", 10, shared) for n in range(3)]
    let_go(workers)
    said: list[str] = []
    for worker in workers:
        out, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")
        said += out.splitlines()
    assert sum(line.startswith("posted") for line in said) == 30
    # One receipt for all, whoever's confirmation it was that posted.
    assert len({line for line in said if line.startswith("receipt Posted(")}) == 1
    assert sum(line.startswith("receipt") for line in said) == 3
    assert sql(path, "SELECT status, count(*) FROM transfer GROUP BY 1") == [("posted", 31)]
    # Every call has its event: a prepare, two confirms; and the shared one of each worker.
    assert sql(path, "SELECT count(*) FROM audit_event") == [(before + 30 * 3 + 3,)]
    check_books(path, now)


@pytest.mark.only_on("sqlite")
def test_killed_at_every_statement(path: Location, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, WORKER.with_name("crasher.py"), path, folder, DATA.parent],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
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


LOAD = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from banking_server.bank import sqlite
from banking_server.bank.audit import Call, record
from banking_server.bank.opening import open_bank
from banking_server.bank.rules import Rules

async def load():
    sqlite.LONG_WAL_BYTES = 100_000
    path, data = Path(sys.argv[1]), Path(sys.argv[2])
    now = datetime.now(UTC)
    bank = await open_bank(path, rules=Rules(), code_key=b"k", demo_data=data, now=now,
                           may_create=False)
    log = path.with_name(path.name + "-wal")
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    longest = 0
    for number in range(300):
        await record(bank, Call(customer_id="CUST001", tool=str(number), at=now), "x")
        longest = max(longest, log.stat().st_size)
    print(longest, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await bank.close()

asyncio.run(load())
"""


@pytest.mark.only_on("sqlite")
def test_the_log_stays_short_while_two_processes_write(path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", LOAD, path, DATA, DATA.parent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    let_go(workers)
    for worker in workers:
        assert worker.stdout is not None
        # Some 2,400 pages were written.
        assert int(worker.stdout.readline()) < 200_000
    for worker in workers:
        worker.communicate("done\n", timeout=60)
        assert worker.returncode == 0
    assert sql(path, "SELECT count(*) FROM audit_event") == [(600,)]
    check_books(path, NOW)


async def test_killed_in_the_middle(path: Location) -> None:
    acknowledged: list[list[str]] = []
    for attempt in range(1):
        workers = [start(path, f"a{attempt}w{n}", 100_000) for n in range(2)]
        let_go(workers)
        for worker in workers:
            enough = random.Random(f"{attempt} {worker.pid}").randint(3, 25)
            assert worker.stdout is not None
            lines = [worker.stdout.readline() for _ in range(enough)]
            worker.kill()
            rest, errors = worker.communicate(timeout=30)
            assert (worker.returncode, errors) == (-9, "")
            # A last line may have been cut off by the kill.
            said = ("".join(lines) + rest).rpartition("\n")[0].splitlines()
            acknowledged += [line.split() for line in said]
        # Straight from the database as the kill left it, a file's write-ahead log included.
        check_books(path, datetime.now(UTC))
    status = dict(sql(path, "SELECT transfer_id, status FROM transfer"))
    events = {subject for (subject,) in sql(path, "SELECT subject FROM audit_event")}
    assert len(acknowledged) > 5
    for word, transfer_id in acknowledged:
        assert transfer_id in events
        assert status[transfer_id] == "posted" or word == "prepared"
    # Once every audit event of a posting, never without its posting, and the other way round.
    confirmed = sql(path, "SELECT DISTINCT subject FROM audit_event WHERE outcome = 'posted'")
    assert {i for (i,) in confirmed} == {i for i, state in status.items() if state == "posted"}

    bank = await open_bank(path)
    now = datetime.now(UTC)
    await posted(bank, "1.00", source=SAVINGS, target=EVERYDAY)
    await bank.close()
    check_books(path, now)
