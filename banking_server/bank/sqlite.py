"""A bank in one SQLite file, which several processes may use.

Writes are committed in groups. What waits is run by one thread, each piece of work in a savepoint
of its own, in one `BEGIN IMMEDIATE … COMMIT`; when that is on the disk, all are told. So the price
of a commit is shared by those who wait for it. Reads have connections of their own.

SQLite before 3.51.3 can lose committed transactions if a commit begins the write-ahead log anew
while another connection checkpoints it (https://www.sqlite.org/wal.html#walresetbug). Here no
commit and no checkpoint ever meet, whatever the version, and however many processes there are:

- No connection checkpoints by itself (`sqlite_file.set_up`).
- Who commits or checkpoints holds the lock on the file beside the database (`FileLock`).
- SQLite checkpoints once more when the last connection closes, and when the journal mode is
  changed. Both happen under its exclusive lock on the whole file, for which no other connection
  may be open: who opens one meanwhile waits.

That holds for this program, where the system has locks on files: on Windows one process at a time
should use a database. Another program that writes to the file, such as SQLite's own shell, should
do so only while no server runs.
"""

import asyncio
import logging
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from banking_server.bank import storage
from banking_server.bank.driver import Connection
from banking_server.bank.file_lock import FileLock
from banking_server.bank.sqlite_file import (
    DIALECT,
    begin,
    beside,
    identity_of,
    in_our_words,
    last_writing,
    set_up,
)
from banking_server.bank.storage import BankBusy, DatabaseUnavailable, Places, to_the_end
from banking_server.bank.transaction import Transaction

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_Seen = TypeVar("_Seen")

READERS: Final = 4
"""Connections that read at once, besides the one that writes."""
LARGEST_GROUP: Final = 100
"""Pieces of work that are committed together at most, so that other processes get their turn."""
LONG_WAL_BYTES: Final = 4 * 1024 * 1024
"""The length of the write-ahead log at which it is checkpointed."""

LOOK_EVERY_SECONDS: Final = 1.0
"""How often it is looked whether the files are still there while nobody asks for anything."""


class DatabaseLost(DatabaseUnavailable):
    """A file of the database was deleted, replaced or overwritten while it was open."""

    def __init__(self, database: Path, file: Path) -> None:
        what = f"The database {database}" if file == database else f"{file}, of the database,"
        super().__init__(
            f"{what} was deleted, replaced or overwritten while it was in use. Nothing was "
            "acknowledged after that. Put the file back, or restore a backup, and start again."
        )
        self.file = file


class _Waiting(Generic[_T]):
    """A piece of work, and who waits for it."""

    __slots__ = (
        *("committed", "end", "error", "future", "is_over"),
        *("look", "result", "seen", "timer", "work"),
    )

    timer: asyncio.TimerHandle

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
        self.is_over = False
        self.end: asyncio.Future[None] | None = None
        """For whoever was cancelled while it was at work, and waits until it is over."""

    def tell(self) -> None:
        """Tell whoever waits what came of it."""
        self.is_over = True
        if self.end is not None:
            self.end.set_result(None)
        if self.future.cancelled():
            return
        if self.error is None:
            self.future.set_result(self.result)  # type: ignore[arg-type]
        elif isinstance(self.error, sqlite3.Error):
            told = in_our_words(self.error)
            told.__cause__ = self.error
            self.future.set_exception(told)
        else:
            self.future.set_exception(self.error)

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits that nothing was done."""
        self.error = error
        self.tell()


class SqliteStore:
    """A `Store` in a SQLite file. Made by `SqliteStore.open`."""

    def __init__(self, path: Path, writer: Connection) -> None:
        self._path = path
        real = path.resolve()  # SQLite's own files are beside the one that a link leads to.
        self._wal = beside(real, "-wal")
        self._lock = FileLock(beside(real, ".lock"))
        # A connection is open: as long as one is, SQLite itself replaces none of its files.
        self._files = {
            file: identity_of(file)
            for file in (path, self._wal, beside(real, "-shm"), beside(real, ".lock"))
        }
        # Only a checkpoint writes to the file itself. Who makes one writes down when.
        self._written = b""
        self._writer = writer
        self._idle: list[Connection] = []
        self._readers = Places(READERS)
        # What waits to look at the database, and what waits to write. A piece of work is in one
        # of them until the writer's thread takes it out; who takes it out has it.
        self._to_look: deque[_Waiting[Any]] = deque()
        self._to_write: deque[_Waiting[Any]] = deque()
        self._at_work: asyncio.Task[None] | None = None
        self._checkpoint_at = LONG_WAL_BYTES
        self._closed = False
        self._lost: Path | None = None
        self._is_lost = asyncio.Event()

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """Open a file that is there and is ours.

        Raises `DatabaseUnavailable`, `OSError` or `sqlite3.Error`.
        """
        before = identity_of(path)
        writer = await Connection.open(path, set_up)
        try:
            store = cls(path, writer)
        except BaseException:
            await writer.close()
            raise
        if store._files[path] != before:
            # It was replaced in this moment: which of the two is open cannot be told.
            await store.close()
            raise DatabaseLost(path, path)
        try:
            await writer.run(store._begin_to_watch)
        except BaseException:
            await store.close()
            raise
        return store

    async def until_lost(self) -> str:
        """Wait until one of the files was deleted or replaced, and return that in words."""
        while True:
            try:
                self._check_files()
            except DatabaseLost as lost:
                self._take_note(lost)
                return str(lost)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_lost.wait(), LOOK_EVERY_SECONDS)

    async def close(self) -> None:
        """Finish what has begun, and close every connection."""
        if self._closed:
            return
        self._closed = True
        for waiting in (*self._to_look, *self._to_write):
            if self._take_out(waiting):
                waiting.fail(_closed())
        if self._at_work is not None:
            await to_the_end(self._at_work)
        for connection in (*self._idle, self._writer):
            await to_the_end(connection.close())
        self._lock.close()
        if self._lost is not None:
            self._put_log_aside()

    # --- files that are gone

    def _check_files(self) -> None:
        """Raise `DatabaseLost` unless every file is the one that was opened.

        What is written to a file that nobody will find again has not been done.
        """
        if self._lost is not None:
            raise DatabaseLost(self._path, self._lost)
        for file, identity in self._files.items():
            if identity_of(file) != identity:
                raise DatabaseLost(self._path, file)

    def _begin_to_watch(self, _: sqlite3.Connection) -> None:
        end = time.monotonic() + storage.WAIT_SECONDS
        with self._lock.held(lambda: time.monotonic() < end) as held:
            if held:
                self._write_down()
            else:
                self._written = self._lock.note()

    def _write_down(self) -> None:
        """Note when the file was last written to, for every process; the lock is held."""
        self._written = last_writing(self._path)
        self._lock.write_down(self._written)

    def _check_writing(self) -> None:
        """Raise `DatabaseLost` if another program wrote to the file itself; the lock is held.

        That is how a copy over it looks: the file is the same one, and nothing in it is.
        """
        written = last_writing(self._path)
        if written == self._written:
            return
        if written != self._lock.note():
            raise DatabaseLost(self._path, self._path)
        self._written = written  # Another process of ours has made a checkpoint.

    def _take_note(self, lost: DatabaseLost) -> None:
        self._lost = lost.file
        self._is_lost.set()

    def _put_log_aside(self) -> None:
        """Keep our log from a database that was put in the place of ours.

        SQLite would take it for that database's own, and ruin it. Where nothing was put in its
        place, the log stays: it is needed if the file is put back.
        """
        replaced = identity_of(self._path) not in (None, self._files[self._path])
        if replaced and identity_of(self._wal) == self._files[self._wal]:
            aside = self._wal.with_name(f"{self._wal.name}.lost-{secrets.token_hex(4)}")
            with suppress(OSError):
                self._wal.rename(aside)
                beside(self._path.resolve(), "-shm").unlink(missing_ok=True)

    # --- reading

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        async with self._readers.one():
            self._check_open()
            try:
                connection = self._idle.pop() if self._idle else await self._open_reader()
            except sqlite3.Error as error:
                raise in_our_words(error) from error
            try:
                return await to_the_end(connection.run(lambda raw: self._on_one_state(raw, work)))
            except sqlite3.Error as error:
                raise in_our_words(error) from error
            except DatabaseLost as lost:
                self._take_note(lost)
                raise
            finally:
                if self._closed:
                    await to_the_end(connection.close())
                else:
                    self._idle.append(connection)

    async def _open_reader(self) -> Connection:
        return await Connection.open(self._path, lambda raw: set_up(raw, read_only=True))

    def _on_one_state(
        self, connection: sqlite3.Connection, work: Callable[[Transaction], _T]
    ) -> _T:
        connection.execute("BEGIN")
        try:
            result = work(Transaction(connection.execute, DIALECT, lock_rows=False))
        finally:
            connection.execute("ROLLBACK")
        self._check_files()
        return result

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()
        if self._lost is not None:
            raise DatabaseLost(self._path, self._lost)

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
        self._check_open()
        if len(self._to_look) + len(self._to_write) >= storage.MAX_WAITING:
            raise BankBusy
        (self._to_write if waiting.look is None else self._to_look).append(waiting)
        if self._at_work is None:
            self._at_work = asyncio.ensure_future(self._take_turns())
        self._set_timer(waiting)
        try:
            return await self._to_its_end(waiting)
        finally:
            waiting.timer.cancel()

    async def _to_its_end(self, waiting: _Waiting[_T]) -> _T:
        try:
            return await waiting.future
        except asyncio.CancelledError:
            if not (waiting.is_over or self._take_out(waiting)):
                waiting.end = asyncio.get_running_loop().create_future()
                await to_the_end(waiting.end)
            raise

    def _take_out(self, waiting: _Waiting[Any]) -> bool:
        """Take it back; False if the writer's thread has it already."""
        for queue in (self._to_look, self._to_write):
            try:
                queue.remove(waiting)
            except ValueError:
                continue
            return True
        return False

    def _set_timer(self, waiting: _Waiting[Any]) -> None:
        loop = asyncio.get_running_loop()
        waiting.timer = loop.call_later(storage.WAIT_SECONDS, self._give_up, waiting)

    def _give_up(self, waiting: _Waiting[Any]) -> None:
        if self._take_out(waiting):
            waiting.fail(BankBusy())
        else:  # It is at work; but perhaps only looking, and will wait again.
            self._set_timer(waiting)

    async def _take_turns(self) -> None:
        """Let the writer's thread do what waits, group after group."""
        try:
            while self._to_look or self._to_write:
                for waiting in await self._writer.run(self._one_group):
                    self._tell(waiting)
        finally:
            self._at_work = None

    def _tell(self, waiting: _Waiting[Any]) -> None:
        if waiting.error is None:
            waiting.committed()
        elif isinstance(waiting.error, DatabaseLost):
            self._take_note(waiting.error)
        waiting.tell()

    # --- on the writer's thread

    def _one_group(self, connection: sqlite3.Connection) -> list[_Waiting[Any]]:
        """Do what waits; return what is finished, one way or the other."""
        finished: list[_Waiting[Any]] = []
        try:
            self._look(connection, finished)
            with self._lock.held(lambda: self._to_write) as held:
                if held:
                    self._check_writing()
                    self._checkpoint_if_long(connection)
                    if begin(connection, lambda: self._to_write):
                        group = _taken(self._to_write)
                        finished += group
                        self._commit(connection, group)
        except BaseException as error:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            # Who still waits would fare no better.
            finished += _taken(self._to_write) + _taken(self._to_look)
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
        self._check_files()
        self._check_writing()

    def _checkpoint_if_long(self, connection: sqlite3.Connection) -> None:
        """Bring the log into the file, if it has become long; the lock is held.

        Whoever reads meanwhile, or a full disk, hinders it; it is tried again when the log has
        become longer still.
        """
        length = self._wal_bytes()
        if length < LONG_WAL_BYTES:
            self._checkpoint_at = LONG_WAL_BYTES
        if length < self._checkpoint_at:
            return
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            logger.warning("The write-ahead log could not be checkpointed", exc_info=True)
        finally:
            self._write_down()
        self._checkpoint_at = self._wal_bytes() + LONG_WAL_BYTES

    def _wal_bytes(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0


def _closed() -> DatabaseUnavailable:
    return DatabaseUnavailable("The database is closed.")


def _taken(queue: deque[_Waiting[Any]]) -> list[_Waiting[Any]]:
    """Take out what waits, the oldest first; nobody can take it back after that."""
    taken: list[_Waiting[Any]] = []
    while queue and len(taken) < LARGEST_GROUP:
        try:
            taken.append(queue.popleft())
        except IndexError:  # It was taken back in this instant.
            break
    return taken
