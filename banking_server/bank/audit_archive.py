"""Moving old audit events to a file: written first, then noted, and only then deleted.

Killed at any moment, nothing is lost, and the same command goes on from there. The database itself
refuses to delete an event that no archive has (`models`).
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from banking_server.bank.audit import THE_BANK, Call, add_event
from banking_server.bank.models import TABLES, AuditArchive, AuditEvent
from banking_server.bank.new_file import draft_of, publish
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement, Transaction, command, reading, value

UNDER_WAY: Final = timedelta(hours=1)
"""Events that are no older stay: a call that is still under way may yet add an earlier one."""
_AT_ONCE: Final = 5_000
"""Events that are read, or deleted, at once: nobody has to wait for long."""


class ArchiveFailed(Exception):
    """The events could not be archived, and none was deleted; the message is one line."""


@dataclass(frozen=True)
class Archivable:
    """The events with ids above `after`, up to `up_to`."""

    after: int
    up_to: int
    events: int


async def find_archivable(bank: Bank, before: date, now: datetime) -> Archivable:
    """Return the events that came before the first one of the day `before`, in UTC."""
    end = min(datetime.combine(before, time(), UTC), now - UNDER_WAY)

    def look(tx: Transaction) -> Archivable:
        tx.take_time()
        after = _archived_up_to(tx)
        stays = tx.first(_FIRST_TO_STAY, after=after, end=end)
        up_to = (tx.first(_LAST) or 0) if stays is None else stays - 1
        up_to = max(up_to, after)
        return Archivable(after, up_to, _count(tx, after, up_to))

    return await bank.read(look)


async def archive_events(
    bank: Bank,
    events: Archivable,
    path: Path,
    *,
    as_line: Callable[[AuditEvent], str],
    now: datetime,
) -> None:
    """Write these events to the file `path`, one on each line, and delete them.

    A file that is there already stays as it is, and will do if it holds just them. Deletes what an
    interrupted run left, too. Raises `ArchiveFailed`.
    """
    if events.events:
        try:
            sha256 = await _write(bank, events, path, as_line)
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise ArchiveFailed(f"{path} cannot be written: {problem}.") from error
        await _note(bank, events, sha256, now)
    while await bank.write(_delete_some):
        pass


async def _write(
    bank: Bank, events: Archivable, path: Path, as_line: Callable[[AuditEvent], str]
) -> str:
    """Let the events appear as the file `path`, or find them there; return its SHA-256."""

    def read(tx: Transaction) -> list[AuditEvent]:
        return tx.all(_PAGE, after=last, up_to=events.up_to)

    last = events.after
    with draft_of(path) as draft:
        while page := await bank.read(read):
            _append(draft, map(as_line, page))
            last = page[-1].event_id
        sha256 = _sha256(draft)
        try:
            publish(draft, path)
        except FileExistsError:
            if _sha256(path) != sha256:
                raise ArchiveFailed(
                    f"There is another file {path} already; nothing was deleted."
                ) from None
    return sha256


async def _note(bank: Bank, events: Archivable, sha256: str, now: datetime) -> None:
    """Record the archive; from then on its events can be deleted."""

    def work(tx: Transaction) -> None:
        tx.take_time()
        count = _count(tx, events.after, events.up_to)
        if (_archived_up_to(tx), count) != (events.after, events.events):
            raise ArchiveFailed(
                "The audit trail was archived by somebody else meanwhile; nothing was deleted."
            )
        archive = AuditArchive(
            at=now, up_to_event_id=events.up_to, events=events.events, sha256=sha256
        )
        tx.add(archive)
        call = Call(customer_id=THE_BANK, tool="audit archive", at=now)
        add_event(tx, call, "archived", str(archive.archive_id))

    await bank.write(work)


def _delete_some(tx: Transaction) -> bool:
    """Delete some archived events; False if there are none."""
    up_to, first = _archived_up_to(tx), tx.first(_FIRST)
    if first is None or first > up_to:
        return False
    tx.run(_DELETE, up_to=min(up_to, first + _AT_ONCE - 1))
    return True


def _append(draft: Path, lines: Iterable[str]) -> None:
    with draft.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_events, _archives = TABLES[AuditEvent], TABLES[AuditArchive]
_id: Any = _events.c.event_id
_within = sa.and_(_id > sa.bindparam("after"), _id <= sa.bindparam("up_to"))

_ARCHIVED = Statement(sa.select(sa.func.max(_archives.c.up_to_event_id)), value)
_FIRST = Statement(sa.select(sa.func.min(_id)), value)
_LAST = Statement(sa.select(sa.func.max(_id)), value)
_FIRST_TO_STAY = Statement(
    sa.select(sa.func.min(_id)).where(
        _id > sa.bindparam("after"), _events.c.at >= sa.bindparam("end")
    ),
    value,
)
_COUNT = Statement(sa.select(sa.func.count()).select_from(_events).where(_within), value)
_PAGE = Statement(
    sa.select(_events).where(_within).order_by(_id).limit(_AT_ONCE), reading(AuditEvent)
)
_DELETE = command(sa.delete(_events).where(_id <= sa.bindparam("up_to")))


def _archived_up_to(tx: Transaction) -> int:
    return int(tx.first(_ARCHIVED) or 0)


def _count(tx: Transaction, after: int, up_to: int) -> int:
    return int(tx.first(_COUNT, after=after, up_to=up_to) or 0)
