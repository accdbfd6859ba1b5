"""Files that are deleted or replaced while the bank is open: nothing is acknowledged after that."""

import asyncio
import shutil
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banking_server.bank import sqlite
from banking_server.bank.audit import list_events, record
from banking_server.bank.file_watch import DatabaseLost, beside
from banking_server.bank.storage import Bank, MaybeDone

from .support import NOW, call, check_books, open_bank, outcomes

pytestmark = pytest.mark.anyio


def delete(file: Path) -> None:
    file.unlink()


def replace(file: Path) -> None:
    other = Path(shutil.copy(file, file.with_name("copy")))
    other.rename(file)


def move_away(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


@pytest.fixture
async def bank(path: Path, anyio_backend: str) -> Bank:
    """Closed by the test: how it closes is of interest."""
    bank = await open_bank(path)
    await record(bank, call(), "acknowledged")
    return bank


@pytest.mark.parametrize(
    ("suffix", "way"),
    [("", delete), ("", replace), ("-wal", replace), ("-shm", move_away), (".lock", delete)],
)
async def test_a_write_to_a_deleted_or_replaced_file_is_refused(
    bank: Bank, path: Path, suffix: str, way: Callable[[Path], None]
) -> None:
    lost = beside(path, suffix)
    way(lost)
    told: list[bool] = []
    with pytest.raises(DatabaseLost) as error:
        await bank.write(lambda tx: None, committed=lambda: told.append(True))
    assert told == []
    message = str(error.value)
    assert f"{lost}" in message
    assert "was deleted or replaced while it was in use" in message
    assert "\n" not in message
    # Nor does anything that comes later get through, even if the file comes back.
    with pytest.raises(DatabaseLost):
        await record(bank, call(), "later")
    with pytest.raises(DatabaseLost):
        await bank.read(lambda tx: None)
    await bank.close()
    if suffix:  # What was acknowledged is in the file itself.
        await (await open_bank(path, may_create=False)).close()
        assert [outcome for _, outcome, _ in outcomes(path)] == ["acknowledged"]
        check_books(path, NOW)


async def test_a_commit_to_a_deleted_file_is_not_acknowledged(bank: Bank, path: Path) -> None:
    told: list[str] = []

    def deleted_meanwhile(_: object) -> None:
        path.unlink()

    outcomes = await asyncio.gather(
        bank.write(lambda tx: None, committed=lambda: told.append("one")),
        bank.write(deleted_meanwhile, committed=lambda: told.append("two")),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes] == [MaybeDone] * 2
    assert told == []
    await bank.close()


async def test_a_write_queued_as_a_group_begins_gets_that_group_s_outcome(
    bank: Bank, path: Path
) -> None:
    """It may still be taken into that group, and then waits for the next one."""
    loop, late = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    async def come() -> None:
        late.append(asyncio.create_task(bank.write(lambda tx: None)))
        while len(queue) < 2:
            await asyncio.sleep(0)

    class Queue(deque[Any]):
        def __len__(self) -> int:
            if threading.current_thread() is not threading.main_thread() and not late:
                asyncio.run_coroutine_threadsafe(come(), loop).result()
            return super().__len__()

    queue = bank.store._queue = Queue()  # type: ignore[attr-defined]
    with pytest.raises(MaybeDone):
        await bank.write(lambda tx: path.unlink())
    with pytest.raises(MaybeDone):
        await late[0]
    await bank.close()


async def test_checkpoints_of_another_process_lose_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LONG_WAL_BYTES", 1)
    bank = await open_bank(path)
    other = await open_bank(path)  # It has a lock, and a memory, of its own, as a process has.
    for number in range(10):
        await record(bank if number % 2 else other, call(), f"n{number}")
    assert [event.outcome for event in await list_events(bank)][-1] == "n9"
    await other.close()
    await record(bank, call(), "on")
    await bank.close()
    check_books(path, NOW)
