"""A bank in one SQLite file, which several processes may use.

Writes are committed in groups: what waits is run by one thread, each piece of work in a savepoint
of its own, in one `BEGIN IMMEDIATE … COMMIT`. Reads have connections of their own.

The threads are aiosqlite's, one a connection. Its own methods cross to the thread for each
statement, and a call has some ten: its private `_execute` sends a whole function.

SQLite before 3.51.3 can lose committed transactions if a commit begins the write-ahead log anew
while another connection checkpoints it (https://www.sqlite.org/wal.html#walresetbug). Here no
connection checkpoints by itself (`connect`), and who commits or checkpoints holds the lock on the
file beside the database. SQLite checkpoints once more when the last connection closes or the
journal mode changes, under its exclusive lock on the whole file. Another program should write to
the file only while no server runs; on Windows, one process at a time should use a database.
"""

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite

from banking_server.bank import storage
from banking_server.bank.file_watch import DatabaseLost, WatchedFiles, identity_of
from banking_server.bank.sqlite_file import DIALECT, connect, translate_error
from banking_server.bank.storage import BankBusy, DatabaseUnavailable, MaybeDone, to_the_end
from banking_server.bank.transaction import Transaction

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

READERS: Final = 4
"""Connections that read at once, besides the one that writes."""
LONG_WAL_BYTES: Final = 4 * 1024 * 1024
"""The length of the write-ahead log at which it is checkpointed."""
CHECKPOINT_WAIT_MILLISECONDS: Final = 50
"""How long a checkpoint waits for those who read; it is tried again when the log is longer."""
LOOK_EVERY_SECONDS: Final = 1.0
"""How often it is looked whether the files are still there while nobody asks for anything."""


@dataclass(eq=False)
class _Waiting:
    """A piece of work, and what came of it."""

    work: Callable[[Transaction], Any]
    committed: Callable[[], None]
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """A `Store` in a SQLite file. Made by `SqliteStore.open`."""

    def __init__(self, path: Path, files: WatchedFiles, writer: aiosqlite.Connection) -> None:
        self._path, self._files, self._writer = path, files, writer
        self._checkpoint_at = LONG_WAL_BYTES
        self._idle: list[aiosqlite.Connection] = []
        self._readers = storage.ConcurrencyLimit(READERS)
        self._queue: deque[_Waiting] = deque()
        self._next: asyncio.Task[None] | None = None
        """The group that will take what is in the queue; None if there is none."""
        self._closed = False

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """Open a file that is there and is ours.

        Raises `DatabaseUnavailable`, `OSError`, `TimeoutError` or `sqlite3.Error`.
        """
        identity = identity_of(path)
        writer = await aiosqlite.Connection(partial(connect, path), iter_chunk_size=1)
        try:
            return cls(path, await _run(writer, lambda _: WatchedFiles(path, identity)), writer)
        except BaseException:
            await writer.close()
            raise

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        async with self._readers.one():
            self._check_open()
            try:
                opens = partial(connect, self._path, reads=True)
                reader = self._idle.pop() if self._idle else await aiosqlite.Connection(opens, 1)
                try:
                    return await to_the_end(_run(reader, partial(_on_one_state, work)))
                finally:
                    if self._closed:
                        await to_the_end(reader.close())
                    else:
                        self._idle.append(reader)
            except sqlite3.Error as error:
                raise translate_error(error) from error

    async def write(
        self,
        work: Callable[[Transaction], _T],
        *,
        committed: Callable[[], None],
        one_state: bool = False,
    ) -> _T:
        """Run `work` in the next group's transaction, which is on one state in any case."""
        self._check_open()
        if len(self._queue) >= storage.MAX_WAITING:
            raise BankBusy
        waiting = _Waiting(work, committed)
        self._queue.append(waiting)
        group = self._next
        if group is None:
            group = self._next = asyncio.ensure_future(_run(self._writer, self._run_group))
        try:
            await asyncio.shield(group)
        except asyncio.CancelledError:
            try:
                self._queue.remove(waiting)
            except ValueError:  # It has begun.
                await to_the_end(group)
            raise
        if isinstance(waiting.error, sqlite3.Error):
            raise translate_error(waiting.error) from waiting.error
        if waiting.error is not None:
            raise waiting.error
        result: _T = waiting.result
        return result

    async def until_lost(self) -> str:
        """Wait until one of the files was deleted or replaced, and return that in words."""
        while self._files.lost is None:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            with suppress(DatabaseLost, TimeoutError):
                await _run(self._writer, lambda _: self._files.look())
        return str(self._files.lost)

    async def close(self) -> None:
        """Finish what has begun, and close every connection."""
        if self._closed:
            return
        self._closed = True
        for connection in (*self._idle, self._writer):
            await to_the_end(connection.close())
        self._files.lock.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable("The database is closed.")
        if self._files.lost is not None:
            raise self._files.lost

    # --- on the writer's thread

    def _run_group(self, connection: sqlite3.Connection) -> None:
        """Run all that waits in one transaction, and commit it."""
        self._next = None  # First: who comes after the queue was emptied needs another group.
        group: list[_Waiting] = []
        with suppress(IndexError):
            while True:
                group.append(self._queue.popleft())
        try:
            with self._files.lock.held(storage.WAIT_SECONDS):
                self._check_open()
                self._files.check()
                self._checkpoint_if_long(connection)
                connection.execute("BEGIN IMMEDIATE")
                self._run_each(group, connection)
                try:
                    connection.execute("COMMIT")
                    self._files.check()
                except (sqlite3.Error, OSError, DatabaseLost) as error:
                    raise MaybeDone(f"This may be committed or not. {error}") from error
            for waiting in group:
                if waiting.error is None:
                    waiting.committed()
        except BaseException as error:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            failed = BankBusy() if isinstance(error, TimeoutError) else error
            for waiting in group:
                waiting.error = waiting.error or failed

    def _run_each(self, group: list[_Waiting], connection: sqlite3.Connection) -> None:
        tx = Transaction(connection.execute, DIALECT, lock_rows=False)
        for waiting in group:
            connection.execute("SAVEPOINT one")
            try:
                waiting.result = waiting.work(tx)
            except BaseException as error:
                if not connection.in_transaction:
                    raise  # SQLite itself has given up the whole group: a full disk, for one.
                waiting.error = error
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")

    def _checkpoint_if_long(self, connection: sqlite3.Connection) -> None:
        """Bring the log into the file, if it has become long; the lock is held."""
        if self._files.log_bytes < self._checkpoint_at:
            return
        self._files.lock.write_down(b"")  # Should this process end here, others see a checkpoint.
        try:
            connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_WAIT_MILLISECONDS}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            logger.warning("The write-ahead log could not be checkpointed", exc_info=True)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {storage.WAIT_SECONDS * 1000:.0f}")
            self._files.take_note()
        self._checkpoint_at = self._files.log_bytes + LONG_WAL_BYTES


async def _run(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    """Run `work` on the connection's thread, as one piece."""
    result: _T = await connection._execute(work, connection._conn)  # type: ignore[no-untyped-call]
    return result


def _on_one_state(work: Callable[[Transaction], _T], connection: sqlite3.Connection) -> _T:
    connection.execute("BEGIN")
    try:
        return work(Transaction(connection.execute, DIALECT, lock_rows=False))
    finally:
        connection.execute("ROLLBACK")
