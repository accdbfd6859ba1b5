"""A bank in one SQLite file, which several processes may use.

Writes are committed in groups. What waits is run by one thread, each piece of work in a savepoint
of its own, in one `BEGIN IMMEDIATE … COMMIT`; when that is on the disk, all are told. So the price
of a commit is shared by those who wait for it. Reads have connections of their own.

SQLite before 3.51.3 can lose the end of its write-ahead log if a checkpoint and a commit of two
connections meet (https://www.sqlite.org/wal.html#walresetbug). Here they never do: nothing is
checkpointed by itself, and whoever writes or checkpoints holds the lock on the file beside it.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from sqlalchemy.dialects import sqlite as sqlite_dialect

from banking_server.bank import storage
from banking_server.bank.driver import Connection
from banking_server.bank.file_lock import FileLock
from banking_server.bank.sqlite_file import begin, identity_of, lock_path, set_up
from banking_server.bank.storage import BankBusy, DatabaseUnavailable, to_the_end
from banking_server.bank.transaction import Transaction

_T = TypeVar("_T")
_Seen = TypeVar("_Seen")

READERS: Final = 4
"""Connections that read at once, besides the one that writes."""
LARGEST_GROUP: Final = 100
"""Pieces of work that are committed together at most, so that other processes get their turn."""
LONG_WAL_BYTES: Final = 4 * 1024 * 1024
"""The length of the write-ahead log at which it is checkpointed."""

DIALECT: Final = sqlite_dialect.dialect()


class DatabaseLost(DatabaseUnavailable):
    """The file was deleted or replaced while it was open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The database {path} was deleted or replaced while it was in use. Nothing that was "
            "not acknowledged is in it. Put the file back, or restore a backup, and start again."
        )


class _Waiting(Generic[_T]):
    """A piece of work, and who waits for it."""

    __slots__ = ("committed", "error", "future", "look", "result", "seen", "work")

    def __init__(
        self,
        look: Callable[[Transaction], Any] | None,
        work: Callable[[Transaction, Any], _T],
        committed: Callable[[], None],
    ) -> None:
        self.look = look
        self.work = work
        self.committed = committed
        self.seen: Any = None
        self.result: _T | None = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()


class SqliteStore:
    """A `Store` in a SQLite file. Made by `SqliteStore.open`."""

    def __init__(self, path: Path, writer: Connection) -> None:
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._identity = identity_of(path)
        self._lock = FileLock(lock_path(path))
        self._writer = writer
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(READERS)
        self._reading = 0
        # What waits to look at the database, and what waits to write. A piece of work is in one
        # of them until the writer's thread takes it out; who takes it out has it.
        self._to_look: deque[_Waiting[Any]] = deque()
        self._to_write: deque[_Waiting[Any]] = deque()
        self._at_work: asyncio.Task[None] | None = None
        self._checkpoint_at = LONG_WAL_BYTES
        self._closed = False
        self._lost = asyncio.Event()

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """Open a file that is there and is ours. Raises `OSError` or `sqlite3.Error`."""
        writer = await Connection.open(path, lambda connection: set_up(connection))
        try:
            return cls(path, writer)
        except BaseException:
            await writer.close()
            raise

    async def until_lost(self) -> str:
        """Wait until the file was deleted or replaced, and return that in words."""
        await self._lost.wait()
        return str(DatabaseLost(self._path))

    async def close(self) -> None:
        """Finish what has begun, and close every connection."""
        if self._closed:
            return
        self._closed = True
        for waiting in (*self._to_look, *self._to_write):
            waiting.future.cancel()
        self._to_look.clear()
        self._to_write.clear()
        if self._at_work is not None:
            await to_the_end(self._at_work)
        for connection in (*self._idle, self._writer):
            await to_the_end(connection.close())
        self._lock.close()

    # --- reading

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        await self._wait_to_read()
        try:
            connection = self._idle.pop() if self._idle else await self._open_reader()
            try:
                return await to_the_end(connection.run(lambda raw: _on_one_state(raw, work)))
            finally:
                self._idle.append(connection)
        finally:
            self._free.release()

    async def _wait_to_read(self) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._reading >= storage.MAX_WAITING:
            raise BankBusy
        self._reading += 1
        try:
            await asyncio.wait_for(self._free.acquire(), storage.WAIT_SECONDS)
        except TimeoutError:
            raise BankBusy from None
        finally:
            self._reading -= 1

    async def _open_reader(self) -> Connection:
        return await Connection.open(
            self._path, lambda connection: set_up(connection, read_only=True)
        )

    # --- writing

    async def write(
        self,
        work: Callable[[Transaction, _Seen], _T],
        *,
        look: Callable[[Transaction], _Seen] | None,
        committed: Callable[[], None],
    ) -> _T:
        """Run `look` before a group's transaction begins, and `work` in it."""
        return await self._done(_Waiting(look, work, committed))

    async def _done(self, waiting: _Waiting[_T]) -> _T:
        """Let it be done, and return what came of it when that is on the disk."""
        if self._lost.is_set():
            raise DatabaseLost(self._path)
        if self._closed:
            raise DatabaseUnavailable("The database is closed.")
        if len(self._to_look) + len(self._to_write) >= storage.MAX_WAITING:
            raise BankBusy
        (self._to_write if waiting.look is None else self._to_look).append(waiting)
        if self._at_work is None:
            self._at_work = asyncio.ensure_future(self._take_turns())
        timer = asyncio.get_running_loop().call_later(storage.WAIT_SECONDS, self._give_up, waiting)
        try:
            return await self._to_its_end(waiting)
        finally:
            timer.cancel()

    async def _to_its_end(self, waiting: _Waiting[_T]) -> _T:
        cancelled: asyncio.CancelledError | None = None
        while not waiting.future.done():
            try:
                await asyncio.shield(waiting.future)
            except asyncio.CancelledError as error:
                cancelled = error
                if self._take_out(waiting):
                    raise
            except Exception:
                break  # It is the work's own; it is raised below.
        if cancelled is not None:
            raise cancelled from waiting.future.exception()
        return waiting.future.result()

    def _take_out(self, waiting: _Waiting[Any]) -> bool:
        """Take it back; False if the writer's thread has it already."""
        for queue in (self._to_look, self._to_write):
            try:
                queue.remove(waiting)
            except ValueError:
                continue
            return True
        return False

    def _give_up(self, waiting: _Waiting[Any]) -> None:
        if self._take_out(waiting):
            waiting.future.set_exception(BankBusy())

    async def _take_turns(self) -> None:
        """Let the writer's thread do what waits, group after group."""
        try:
            while self._to_look or self._to_write:
                for waiting in await self._writer.run(self._one_group):
                    self._tell(waiting)
                if self._wal_is_long():
                    await self._writer.run(self._checkpoint)
        finally:
            self._at_work = None

    def _tell(self, waiting: _Waiting[Any]) -> None:
        if waiting.error is None:
            waiting.committed()
            waiting.future.set_result(waiting.result)
            return
        waiting.future.set_exception(waiting.error)
        if isinstance(waiting.error, DatabaseLost):
            self._lost.set()

    # --- on the writer's thread

    def _one_group(self, connection: sqlite3.Connection) -> list[_Waiting[Any]]:
        """Do what waits; return what is finished, one way or the other."""
        finished: list[_Waiting[Any]] = []
        try:
            self._look(connection, finished)
            with self._lock.held(lambda: self._to_write) as held:
                if held and begin(connection, lambda: self._to_write):
                    group = _taken(self._to_write)
                    finished += group
                    self._commit(connection, group)
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for waiting in _taken(self._to_write) + _taken(self._to_look):
                finished.append(waiting)
            for waiting in finished:
                waiting.error = waiting.error or error
        return finished

    def _look(self, connection: sqlite3.Connection, finished: list[_Waiting[Any]]) -> None:
        """Run what is to be looked at first, without the lock."""
        if not self._to_look:
            return
        connection.execute("BEGIN")
        tx = Transaction(connection.execute, DIALECT, lock_rows=False)
        for waiting in _taken(self._to_look):
            try:
                waiting.seen = waiting.look(tx) if waiting.look else None
            except BaseException as error:
                waiting.error = error
                finished.append(waiting)
            else:
                self._to_write.append(waiting)
        connection.execute("COMMIT")

    def _commit(self, connection: sqlite3.Connection, group: list[_Waiting[Any]]) -> None:
        """Run the group in the transaction that has begun, and commit it."""
        self._check_identity()
        tx = Transaction(connection.execute, DIALECT, lock_rows=False)
        for waiting in group:
            connection.execute("SAVEPOINT one")
            try:
                waiting.result = waiting.work(tx, waiting.seen)
            except BaseException as error:
                if not connection.in_transaction:
                    raise  # SQLite itself has given up the whole group: a full disk, for one.
                waiting.error = error
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        connection.execute("COMMIT")
        # What was written to a file that nobody will find again was not done.
        self._check_identity()

    def _check_identity(self) -> None:
        if identity_of(self._path) != self._identity:
            raise DatabaseLost(self._path)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Bring the log into the file. Whoever reads meanwhile hinders it; it is tried again."""
        with self._lock.held(lambda: False) as held:
            if held:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._checkpoint_at = self._wal_bytes() + LONG_WAL_BYTES

    def _wal_is_long(self) -> bool:
        return self._wal_bytes() >= self._checkpoint_at

    def _wal_bytes(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0


def _taken(queue: deque[_Waiting[Any]]) -> list[_Waiting[Any]]:
    """Take out what waits, the oldest first; nobody can take it back after that."""
    taken: list[_Waiting[Any]] = []
    while queue and len(taken) < LARGEST_GROUP:
        try:
            taken.append(queue.popleft())
        except IndexError:  # It was taken back in this instant.
            break
    return taken


def _on_one_state(connection: sqlite3.Connection, work: Callable[[Transaction], _T]) -> _T:
    connection.execute("BEGIN")
    try:
        return work(Transaction(connection.execute, DIALECT, lock_rows=False))
    finally:
        connection.execute("ROLLBACK")
