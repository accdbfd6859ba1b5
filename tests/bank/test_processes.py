"""Several processes on one file, and processes that are killed in the middle."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import Location, in_full

from ..kit.command import end_with_the_tests
from .support import NOW, check_books, open_bank, outcomes, prepared, sql

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def start(path: Location, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.bank.worker", in_full(path), name, str(count)]
    pipe = subprocess.PIPE
    pipes = {"stdin": pipe, "stdout": pipe, "stderr": pipe}
    end = end_with_the_tests
    return subprocess.Popen(words, cwd=ROOT, text=True, preexec_fn=end, **pipes)


@pytest.fixture
def unmade(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Where there is no bank yet."""
    if engine == "postgresql":
        url: URL = request.getfixturevalue("empty")
        return url
    return tmp_path / "bank.db"


@pytest.mark.on_each
async def test_processes_make_and_share_one_database(unmade: Location, template: Path) -> None:
    workers = [start(unmade, f"w{n}", 10) for n in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith("ready")
    for table in ("customer", "account", "posting", "entry"):
        count = f"SELECT count(*) FROM {table}"
        assert sql(unmade, count) == sql(template, count)
    now = datetime.now(UTC)
    bank = await open_bank(unmade)
    shared = (await prepared(bank, "7.00", at=now)).transfer.transfer_id
    await bank.close()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"go {shared}\n")
        worker.stdin.flush()
    said: list[str] = []
    for worker in workers:
        out, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")
        said += out.splitlines()
    assert sum(line.startswith("posted") for line in said) == 30
    # One receipt for all, whoever's confirmation it was that posted.
    assert len({line for line in said if line.startswith("receipt Posted(")}) == 1
    assert sum(line.startswith("receipt") for line in said) == 3
    assert sql(unmade, "SELECT status, count(*) FROM transfer GROUP BY 1") == [("posted", 31)]
    # Every call has its event: a prepare, two confirms; the shared one, and that of each worker.
    assert sql(unmade, "SELECT count(*) FROM audit_event") == [(30 * 3 + 4,)]
    check_books(unmade, now)


def test_killed_at_one_statement_after_another(path: Path, tmp_path: Path, nightly: bool) -> None:
    step = 1 if nightly else 6
    folder = tmp_path / "killed"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.bank.crasher", path, folder, str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    runs = sorted(folder.glob("*.db"), key=lambda file: int(file.stem))
    assert len(runs) > 40 / step
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
