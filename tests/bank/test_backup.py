"""Copies of the database: whole, checked, their owner's only; and put back without losing any."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from banking_server.bank import backup
from banking_server.bank.audit import list_events, record
from banking_server.bank.backup import back_up, restore
from banking_server.bank.file_watch import beside
from banking_server.bank.storage import Bank, DatabaseUnavailable

from .support import NOW, call, check_books, open_bank, outcomes, posted, sql

pytestmark = pytest.mark.anyio


def said(path: Path) -> list[str]:
    return [outcome for _, outcome, _ in outcomes(path)]


async def post_in(path: Path) -> None:
    bank = await open_bank(path, may_create=False)
    await posted(bank)
    await bank.close()


def refusal(do: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(DatabaseUnavailable) as refused:
        do(*arguments, **options)
    message = str(refused.value)
    assert "\n" not in message
    return message


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


FAULT = "UPDATE account SET debits_pending_minor = 1 WHERE currency = 'EUR'"


# --- backup


async def test_a_backup_under_load_is_consistent(bank: Bank, path: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    stop = asyncio.Event()

    async def go_on() -> None:
        while not stop.is_set():
            await posted(bank, "1.00")

    work = asyncio.ensure_future(go_on())
    before = os.umask(0)
    try:
        for number in range(3):
            await asyncio.to_thread(back_up, path, copies / f"{number}")
    finally:
        os.umask(before)
        stop.set()
        await work
    assert names(copies) == {"0", "1", "2"}
    for copy in copies.iterdir():
        assert copy.read_bytes()[18:20] == b"\1\1"  # It needs no log beside it.
        assert copy.stat().st_mode & 0o777 == 0o600
        check_books(copy, NOW)
        assert said(copy) == said(path)[: len(said(copy))]
    assert names(copies) == {"0", "1", "2"}  # Nothing lies beside a copy, even when it is read.


def test_a_backup_to_a_missing_folder_is_refused(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "no folder" / "copy"
    assert refusal(back_up, path, copy).startswith(f"{copy} cannot be written: ")
    log = path.with_name(f"{path.name}-wal")
    before = names(path.parent)
    assert refusal(back_up, path, log).startswith(f"The file {log} would belong to another")
    assert names(path.parent) == before


# --- restore


@pytest.fixture
def copy(path: Path, tmp_path: Path) -> Path:
    """A copy of the bank as it is before anything happens."""
    (tmp_path / "copies").mkdir()
    back_up(path, tmp_path / "copies" / "copy")
    return tmp_path / "copies" / "copy"


async def test_restore_keeps_the_database_it_replaces(path: Path, copy: Path) -> None:
    await post_in(path)
    before = copy.read_bytes()
    kept = restore(path, copy, now=NOW)
    assert kept == path.with_name("bank.db.replaced-20260304T100000Z")
    assert (said(path), said(kept)) == ([], ["prepared", "posted"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert copy.read_bytes() == before
    assert names(copy.parent) == {"copy"}
    for database in (path, kept):
        await post_in(database)
        check_books(database, NOW)
    assert "cannot be written" in refusal(restore, path, copy, now=NOW)  # It is kept still.
    assert said(path) == ["prepared", "posted"]


async def test_restore_keeps_the_write_ahead_log_of_a_killed_bank(
    bank: Bank, path: Path, tmp_path: Path, copy: Path
) -> None:
    await posted(bank)
    killed = tmp_path / "killed.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(beside(path, suffix), beside(killed, suffix))
    with killed.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 2000)
    kept = restore(killed, copy, now=NOW)
    assert kept is not None
    assert said(killed) == []
    check_books(killed, NOW)
    # Its last page is in the log even though the file was damaged: it is all there to be mended.
    assert beside(kept, "-wal").exists()
    assert not beside(killed, "-wal").exists()


async def test_restore_works_without_an_earlier_database(tmp_path: Path, copy: Path) -> None:
    path = tmp_path / "new" / "bank.db"
    assert restore(path, copy, now=NOW) is None
    assert names(path.parent) == {"bank.db"}
    await post_in(path)


async def test_restore_is_refused_while_the_database_is_in_use(
    bank: Bank, path: Path, copy: Path
) -> None:
    await record(bank, call(), "x")
    before = names(path.parent)
    refused = refusal(restore, path, copy, now=NOW)
    assert refused == f"{path} is in use; stop the server first. `lsof {path}` names the process."
    assert names(path.parent) == before
    await record(bank, call(), "y")
    assert [event.outcome for event in await list_events(bank)] == ["x", "y"]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (FAULT, "has faults"),
        ("DROP TRIGGER entry_balances", "the trigger entry_balances is missing"),
        ("CREATE VIEW rich AS SELECT 1", "the view rich does not belong to this program"),
        ("PRAGMA user_version = 1", "was made by another version"),
        ("PRAGMA application_id = 1", "of another program"),
    ],
)
async def test_a_damaged_or_foreign_backup_is_refused(
    path: Path, copy: Path, damage: str, why: str
) -> None:
    await post_in(path)
    sql(copy, damage)
    before = names(path.parent)
    message = refusal(restore, path, copy, now=NOW)
    assert why in message
    assert str(copy) in message
    assert names(path.parent) == before
    assert said(path) == ["prepared", "posted"]


def test_a_file_that_is_no_backup_is_refused(path: Path, tmp_path: Path) -> None:
    assert "is the database itself" in refusal(restore, path, path, now=NOW)
    other = tmp_path / "other"
    assert "There is no file" in refusal(restore, path, other, now=NOW)
    other.write_text("Dear bank, " * 500)
    assert "is not a database" in refusal(restore, path, other, now=NOW)
    other.write_bytes(path.read_bytes()[:20_000])
    assert refusal(restore, path, other, now=NOW).endswith("database disk image is malformed.")


async def test_a_restore_interrupted_at_any_step_leaves_a_whole_database(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post_in(path)
    steps = [(os, "link"), (backup, "sync"), (os, "replace")]
    for holder, name in steps:
        with monkeypatch.context() as patch:

            def fail(*_: object, **__: object) -> None:
                raise OSError(5, "Input/output error")

            patch.setattr(holder, name, fail)
            assert "input/output error" in refusal(restore, path, copy, now=NOW)
        assert said(path) == ["prepared", "posted"]
        check_books(path, NOW)
        for kept in path.parent.glob("*.replaced-*"):
            kept.unlink()
    assert not list(path.parent.glob("*.draft"))
