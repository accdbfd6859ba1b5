"""Files that are deleted or replaced while the bank is open: nothing is acknowledged after that."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from banking_server.bank.audit import record
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
