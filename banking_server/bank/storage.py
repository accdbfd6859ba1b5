"""The bank's database: reads, and writes that are on disk before anybody learns of them.

The bank's functions work on a `Bank`. It is kept in a `Store`: one SQLite file (`sqlite`), or a
PostgreSQL database that several servers share (`postgresql`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from sqlmodel import SQLModel

from banking_server.bank.location import Location
from banking_server.bank.models import Account, Approval, Handoff, Transfer, is_id
from banking_server.bank.rules import Rules
from banking_server.bank.transaction import Transaction
from tool_chaining.errors import ForPeople

_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=SQLModel)
_Owned = TypeVar("_Owned", Account, Approval, Handoff, Transfer)

MAX_WAITING = 1_000
"""Calls that may wait for the database at once; one more gets "the bank is busy"."""
WAIT_SECONDS = 5.0
"""Seconds that a call waits for the database before it gets "the bank is busy"."""


class DatabaseUnavailable(ForPeople):
    """The database cannot be used; the message is one line for people."""


class DatabaseFailed(ForPeople):
    """The database reported an error. The message says which, and contains no stored data."""


class MaybeDone(DatabaseFailed):
    """The database could not say whether it has committed. Calling again is safe."""


class DatabaseMissing(DatabaseUnavailable):
    """There is no database, and this command may not create one."""

    def __init__(self, where: Location) -> None:
        super().__init__(
            f"There is no database at {where}. Create one with `banking-server database create`, "
            "or restore a backup with `banking-server database restore FILE`."
            if isinstance(where, Path)
            else f"The database {where} is empty. Fill it with `banking-server database create`."
        )


class OtherVersion(DatabaseUnavailable):
    """Another version of this program made the database."""

    def __init__(self, where: object) -> None:
        reset = ", or delete everything in it and start over with `banking-server database reset`"
        super().__init__(
            f"{where} was made by another version of this program. Use that version, or choose "
            "another database with --database or BANKING_DATABASE"
            f"{reset if isinstance(where, Path) else ''}."
        )


class BankBusy(ForPeople):
    """Too many calls wait for the database. Nothing was done: the call may be repeated."""

    def __init__(self) -> None:
        super().__init__("The bank is busy: nothing was done. Please try again in a moment.")


class Store(Protocol):
    """Where a bank is kept.

    `work` is synchronous and runs whole on a thread of the store's. If the connection breaks before
    anything can have been committed, it runs once more. If the caller is cancelled, work that has
    not begun is skipped, and work that has begun runs to its end before the cancellation is raised.
    Waiting longer than `WAIT_SECONDS` raises `BankBusy`. Errors of the database are raised as
    `DatabaseFailed`, or as `BankBusy` if they pass with time.
    """

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        ...

    async def write(
        self,
        work: Callable[[Transaction], _T],
        *,
        committed: Callable[[], None],
        snapshot: bool = False,
    ) -> _T:
        """Run `work` in a write transaction; commit it, or roll back if it raises.

        `snapshot`: it reads one state of the database, and locks nothing. A commit is on the disk
        before `committed` is called, on any thread, and this returns. A failure from the commit on
        raises `MaybeDone`.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class Bank:
    """An open database with the rules that apply to it."""

    def __init__(
        self, store: Store, *, rules: Rules, code_key: bytes, other_code_keys: Sequence[bytes] = ()
    ) -> None:
        self.rules = rules
        self.code_key = code_key
        """Secret from which confirmation codes are derived; the same in every process."""
        self.code_keys = (code_key, *other_code_keys)
        """The keys whose codes are accepted: more than one while the secret changes."""
        self.store = store

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        return await self.store.read(work)

    async def write(
        self,
        work: Callable[[Transaction], _T],
        *,
        committed: Callable[[], None] = lambda: None,
        snapshot: bool = False,
    ) -> _T:
        """Run `work` in a write transaction; commit it, or roll back if it raises.

        Before reading what you will change, lock the customer's data: `Transaction.lock`.
        `committed` is called as soon as the commit is on disk, even if nobody waits any more.
        `snapshot`: `work` reads one state of the database, and locks nothing.
        """
        return await self.store.write(work, committed=committed, snapshot=snapshot)

    async def close(self) -> None:
        """Close every connection."""
        await self.store.close()


def find_record(tx: Transaction, model: type[_Record], record_id: str) -> _Record | None:
    """Return the record with this id, of any customer; for the bank's own desks.

    The id may be any text a caller sent. Every look-up by such an id goes through here.
    """
    return tx.find(model, record_id) if is_id(record_id) else None


def find_owned(
    tx: Transaction, model: type[_Owned], record_id: str, customer_id: str
) -> _Owned | None:
    """Return the customer's own record with this id; None if unknown or somebody else's."""
    record = find_record(tx, model, record_id)
    return record if record is not None and record.customer_id == customer_id else None


class ConcurrencyLimit:
    """Limits concurrent work; the rest waits its turn, for `WAIT_SECONDS` at most."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a place until the end of the block. Raises `BankBusy`."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise BankBusy from None
        try:
            yield
        finally:
            self._free.release()


async def to_the_end(work: Awaitable[_T]) -> _T:
    """Wait for the end of `work` even if the caller is cancelled; then raise the cancellation.

    A driver that is interrupted loses its connection.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()
