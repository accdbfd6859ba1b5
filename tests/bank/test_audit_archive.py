"""Old events are moved to a file: whatever happens in between, none is lost and none twice."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from banking_server.bank import audit_archive
from banking_server.bank.audit import list_events, record
from banking_server.bank.audit_archive import (
    Archivable,
    ArchiveFailed,
    archive_events,
    find_archivable,
)
from banking_server.bank.models import AuditEvent
from banking_server.bank.storage import Bank

from .support import DAY, HOUR, MINUTE, NOW, call, sql

pytestmark = pytest.mark.anyio

TODAY = NOW.date()


def as_line(event: AuditEvent) -> str:
    return f"{event.event_id} {event.tool} é"


@pytest.fixture
async def bank(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Bank:
    """Ten events of the day before yesterday and five of today, read and deleted by threes."""
    monkeypatch.setattr(audit_archive, "_AT_ONCE", 3)
    for number in range(15):
        at = NOW - 2 * DAY if number < 10 else NOW - 2 * HOUR
        await record(bank, call(f"n{number}", at=at + number * MINUTE), "x")
    return bank


async def archive(bank: Bank, path: Path, found: Archivable | None = None) -> Archivable:
    found = found or await find_archivable(bank, TODAY, NOW)
    await archive_events(bank, found, path, as_line=as_line, now=NOW)
    return found


async def tools(bank: Bank) -> list[str]:
    return [event.tool for event in await list_events(bank)]


OLD = "".join(f"{number + 1} n{number} é\n" for number in range(10))
LEFT = [f"n{number}" for number in range(10, 15)]


@pytest.mark.on_each
async def test_old_events_are_in_the_file_and_nowhere_else(
    bank: Bank, path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    found = await archive(bank, file)
    assert found == Archivable(after=0, up_to=10, events=10)
    assert file.read_text(encoding="utf-8") == OLD
    assert file.stat().st_mode & 0o777 == 0o600
    assert await tools(bank) == [*LEFT, "audit archive"]
    act = (await list_events(bank))[-1]
    assert (act.customer_id, act.outcome, act.at) == ("(the bank)", "archived", NOW)
    assert sql(path, "SELECT up_to_event_id, events, sha256 FROM audit_archive") == [
        (10, 10, hashlib.sha256(OLD.encode()).hexdigest())
    ]
    # Nothing is left to do; and the next one goes on from there.
    assert (await archive(bank, tmp_path / "none")).events == 0
    assert not (tmp_path / "none").exists()
    rest = await find_archivable(bank, TODAY + DAY, NOW + DAY)
    await archive(bank, tmp_path / "rest", rest)
    assert await tools(bank) == ["audit archive"]


async def test_what_is_under_way_stays_and_so_does_what_came_after_it(bank: Bank) -> None:
    # Of the last hour nothing is archived, whatever day is given.
    found = await find_archivable(bank, TODAY + DAY, NOW - 2 * HOUR + 72 * MINUTE)
    assert found == Archivable(after=0, up_to=12, events=12)
    # A late event of an earlier time stands after one that stays.
    await record(bank, call("late", at=NOW - 3 * DAY), "x")
    assert (await find_archivable(bank, TODAY, NOW)).up_to == 10


class Killed(BaseException):
    """Ends everything on its way."""


@pytest.mark.parametrize("killed", ["publish", "_note", "_delete_some"])
async def test_killed_in_between_it_can_be_repeated(
    bank: Bank, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    file = tmp_path / "old.jsonl"
    left = {"_delete_some": 1}.get(killed, 0)
    step = getattr(audit_archive, killed)

    def kill(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(audit_archive, killed, kill)
        with pytest.raises(Killed):
            await archive(bank, file)
    # Every event is in the database or in the file.
    there = await tools(bank)
    in_file = file.read_text(encoding="utf-8") if file.exists() else ""
    assert all(f"n{n}" in there or f" n{n} " in in_file for n in range(15))
    assert (in_file == OLD) is (killed != "publish")

    await archive(bank, file)
    assert file.read_text(encoding="utf-8") == OLD
    assert await tools(bank) == [*LEFT, "audit archive"]
    assert sql(path, "SELECT count(*) FROM audit_archive") == [(1,)]


async def test_another_file_stays_as_it_is(bank: Bank, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text("mine")
    with pytest.raises(ArchiveFailed, match="nothing was deleted"):
        await archive(bank, file)
    assert file.read_text() == "mine"
    with pytest.raises(ArchiveFailed, match="cannot be written"):
        await archive(bank, tmp_path / "no folder" / "file")
    assert len(await tools(bank)) == 15
    assert {each.name for each in tmp_path.glob("*.draft")} == set()


async def test_only_one_of_two_at_once(bank: Bank, tmp_path: Path) -> None:
    found = await find_archivable(bank, TODAY, NOW)
    await archive(bank, tmp_path / "one", found)
    # What the other one found is gone meanwhile.
    with pytest.raises(ArchiveFailed, match="by somebody else meanwhile"):
        await archive(bank, tmp_path / "two", found)
    assert await tools(bank) == [*LEFT, "audit archive"]
