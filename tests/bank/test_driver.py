"""The seam to aiosqlite: what `bank/driver.py` takes of its inside does what is relied on.

The first to fail if a newer aiosqlite works differently, and `pyproject.toml` names its range.
"""

import asyncio
import sqlite3
import threading
from importlib.metadata import requires, version
from pathlib import Path

import pytest

from banking_server.bank.driver import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.only_on("sqlite")]


def nothing(_: sqlite3.Connection) -> None:
    """Set nothing up."""


async def test_the_range_is_as_tested() -> None:
    """0.20, 0.21 and 0.22 pass these tests; what is private may change with any minor version."""
    assert "aiosqlite<0.23,>=0.20" in (requires("banking-server") or [])
    assert (0, 20) <= tuple(map(int, version("aiosqlite").split(".")[:2])) < (0, 23)


async def test_a_function_runs_whole_and_in_turn_on_the_connections_own_thread(path: Path) -> None:
    connection = await Connection.open(path, nothing)
    order: list[tuple[int, int]] = []

    def work(raw: sqlite3.Connection, number: int) -> int:
        # sqlite3 itself refuses any thread but the one that made the connection.
        raw.execute("SELECT 1").fetchall()
        order.append((threading.get_ident(), number))
        order.append((threading.get_ident(), number))
        return number

    numbers = range(20)
    done = await asyncio.gather(
        *(connection.run(lambda raw, n=n: work(raw, n)) for n in numbers)  # type: ignore[misc]
    )
    assert done == list(numbers)
    assert [number for _, number in order] == [n for n in numbers for _ in range(2)]
    (thread,) = {thread for thread, _ in order}
    assert thread != threading.get_ident()
    await connection.close()


async def test_what_has_begun_ends_even_if_nobody_waits_for_it(path: Path) -> None:
    connection = await Connection.open(path, nothing)
    begun, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def work(_: sqlite3.Connection) -> None:
        begun.set()
        ended.append(may_end.wait(30))

    task = asyncio.ensure_future(connection.run(work))
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    assert await connection.run(lambda _: ended) == [True]
    await connection.close()


def wait_for_threads(count: int) -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("Thread-") and thread is not threading.current_thread():
            thread.join(1)
    # This one is a thread, too.
    assert threading.active_count() <= count + 1


@pytest.mark.parametrize("there", [False, True])
async def test_a_file_is_never_made_and_a_failed_start_leaves_no_thread(
    tmp_path: Path, there: bool
) -> None:
    path = tmp_path / "odd ?#%20 name.db"
    if there:
        path.write_text("this is no database at all " * 100)
    before = threading.active_count()
    with pytest.raises(sqlite3.Error):
        await Connection.open(path, lambda raw: raw.execute("SELECT * FROM sqlite_master"))
    assert path.exists() is there
    await asyncio.to_thread(wait_for_threads, before)
