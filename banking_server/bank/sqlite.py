"""A bank in one SQLite file, which several processes may use: the file, and the `Store` in it.

Writes are committed in groups: one thread runs all work that waits, each piece in a savepoint of
its own, in one `BEGIN IMMEDIATE … COMMIT`. Reads have connections of their own.

The threads are aiosqlite's, one for each connection. Its own methods cross to the thread for each
statement, and a call has some ten: its private `_execute` sends a whole function.

SQLite before 3.51.3 can lose committed transactions if a commit begins the write-ahead log anew
while another connection checkpoints it (https://www.sqlite.org/wal.html#walresetbug). Here no
connection makes a checkpoint by itself (`connect`), and whoever commits or makes one holds the lock
on the file beside the database. SQLite checkpoints once more when the last connection closes or the
journal mode changes, under its exclusive lock on the whole file. Another program should write to
the file only while no server runs; on Windows, one process at a time should use a database.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiosqlite
from sqlalchemy.dialects import sqlite as sqlite_dialect

from banking_server.bank import storage
from banking_server.bank.file_watch import DatabaseLost, FileLock, WatchedFiles, beside, identity_of
from banking_server.bank.models import fingerprint
from banking_server.bank.storage import BankBusy, DatabaseFailed, DatabaseUnavailable, MaybeDone
from banking_server.bank.transaction import Transaction

_T = TypeVar("_T")

APPLICATION_ID: Final = 0x42414E4B
"""`PRAGMA application_id` of our files, which tells them from other programs' ("BANK")."""
DIALECT: Final = sqlite_dialect.dialect()
READERS: Final = 4
"""Concurrent read connections, besides the one that writes."""
LONG_WAL_BYTES: Final = 4 * 1024 * 1024
"""How much the write-ahead log grows before it is checkpointed."""
CHECKPOINT_WAIT_MILLISECONDS: Final = 50
"""How long a checkpoint waits for readers; the next one comes when the log has grown."""


@dataclass(eq=False)
class _Waiting:
    """A piece of work that waits for its transaction, and then its result or its error."""

    work: Callable[[Transaction], Any]
    committed: Callable[[], None]
    cancelled: bool = False
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """A `Store` in a SQLite file. Made by `SqliteStore.open`."""

    def __init__(
        self, path: Path, files: WatchedFiles, lock: FileLock, writer: aiosqlite.Connection
    ) -> None:
        self._path, self._files, self._lock, self._writer = path, files, lock, writer
        self._long_log = LONG_WAL_BYTES
        """The size of the write-ahead log, in bytes, at which the next checkpoint is made."""
        self._idle: list[aiosqlite.Connection] = []
        self._readers = storage.ConcurrencyLimit(READERS)
        self._queue: deque[_Waiting] = deque()
        self._next: asyncio.Task[None] | None = None
        """The task that will commit the queued work; None if there is none yet."""
        self._closed = False

    @classmethod
    async def open(cls, path: Path, *, may_create: bool) -> "SqliteStore":
        """Open a file of ours; a new one is empty, and only its owner can read it.

        Raises `DatabaseMissing` if it has no bank and none may be created;
        `DatabaseUnavailable`, `OSError`, `TimeoutError` or `sqlite3.Error`.
        """
        opened = await asyncio.to_thread(_open_file, path, may_create=may_create)
        connection, files, lock = opened
        writer = await aiosqlite.Connection(lambda: connection, iter_chunk_size=1)
        return cls(path, files, lock, writer)

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        async with self._readers.one():
            self._check_open()
            try:
                opens = partial(connect, self._path, reads=True)
                reader = self._idle.pop() if self._idle else await aiosqlite.Connection(opens, 1)
                try:
                    return await storage.to_the_end(_run(reader, partial(_on_snapshot, work)))
                finally:
                    if self._closed:
                        await storage.to_the_end(reader.close())
                    else:
                        self._idle.append(reader)
            except sqlite3.Error as error:
                raise translate_error(error) from error

    async def write(
        self,
        work: Callable[[Transaction], _T],
        *,
        committed: Callable[[], None],
        snapshot: bool = False,
    ) -> _T:
        """Run `work` in the next group's transaction, which always sees one state."""
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
            if waiting.error is not None:
                raise waiting.error
        except asyncio.CancelledError:
            waiting.cancelled = True  # Skip it, unless its group has begun.
            with suppress(Exception):
                await storage.to_the_end(group)
            raise
        except (sqlite3.Error, TimeoutError) as error:
            raise translate_error(error) from error
        return cast(_T, waiting.result)

    async def close(self) -> None:
        """Finish running work and close every connection."""
        if self._closed:
            return
        self._closed = True
        for connection in (*self._idle, self._writer):
            await storage.to_the_end(connection.close())
        self._lock.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable("The database is closed.")
        if self._files.lost is not None:
            raise self._files.lost

    def _run_group(self, connection: sqlite3.Connection) -> None:
        """Commit all waiting work on the writer's thread, and give each its result or error."""
        self._next = None  # First: work that arrives after this needs another group.
        taken = [self._queue.popleft() for _ in range(len(self._queue))]
        group = [waiting for waiting in taken if not waiting.cancelled]
        try:
            with self._lock.held(storage.WAIT_SECONDS):
                self._check_open()
                self._files.check()
                self._checkpoint_if_long(connection)
                with connection:  # Rolls back if this raises.
                    connection.execute("BEGIN IMMEDIATE")
                    _run_each(group, connection)
                    try:
                        connection.execute("COMMIT")
                        self._files.check()
                    except (sqlite3.Error, OSError, DatabaseLost) as error:
                        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
                            raise  # SQLite has rolled the transaction back.
                        raise MaybeDone(f"This may be committed or not. {error}") from error
        except BaseException as error:
            for waiting in group:
                if waiting.error is None:  # Work that failed before keeps its own error.
                    waiting.error = error
        for waiting in group:
            if waiting.error is None:
                waiting.committed()

    def _checkpoint_if_long(self, connection: sqlite3.Connection) -> None:
        """Move the log into the file, if it has grown much. The caller holds the lock."""
        size = self._files.log.stat().st_size
        # Another process may have made a checkpoint since.
        self._long_log = min(self._long_log, size + LONG_WAL_BYTES)
        if size < self._long_log:
            return
        connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_WAIT_MILLISECONDS}")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {storage.WAIT_SECONDS * 1000:.0f}")
            self._long_log = self._files.log.stat().st_size + LONG_WAL_BYTES


async def _run(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    """Run `work` on the connection's thread, as one piece."""
    result: _T = await connection._execute(work, connection._conn)  # type: ignore[no-untyped-call]
    return result


def _run_each(group: list[_Waiting], connection: sqlite3.Connection) -> None:
    execute = connection.cursor().execute
    tx = Transaction(execute, DIALECT, lock_rows=False)
    for waiting in group:
        execute("SAVEPOINT one")
        try:
            waiting.result = waiting.work(tx)
        except BaseException as error:
            if not connection.in_transaction:
                raise  # SQLite itself gave up the whole group: a full disk, for example.
            waiting.error = error
            execute("ROLLBACK TO one")
        execute("RELEASE one")


def _on_snapshot(work: Callable[[Transaction], _T], connection: sqlite3.Connection) -> _T:
    connection.execute("BEGIN")
    try:
        return work(Transaction(connection.execute, DIALECT, lock_rows=False))
    finally:
        connection.execute("ROLLBACK")


def _open_file(
    path: Path, *, may_create: bool
) -> tuple[sqlite3.Connection, WatchedFiles, FileLock]:
    if may_create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only a file that did not exist: closing a descriptor of an open database would drop
        # the locks that SQLite holds on it in this process.
        with suppress(FileExistsError):
            path.touch(0o600, exist_ok=False)
    elif not path.exists():
        raise storage.DatabaseMissing(path)
    if path.is_dir():
        raise DatabaseUnavailable(f"{path} is a folder, not a database file.")
    identity = identity_of(path)
    connection = connect(path)
    try:
        if not (is_filled(connection, path) or may_create):
            raise storage.DatabaseMissing(path)
        lock = FileLock(beside(path.resolve(), ".lock"))
        try:
            # If two processes change the mode of one file at once, SQLite fails without waiting.
            with lock.held(storage.WAIT_SECONDS):
                connection.execute("PRAGMA journal_mode = WAL")
            is_filled(connection, path)  # SQLite makes the log's files when it reads in this mode.
            files = WatchedFiles(path, identity)
            files.check()
            return connection, files, lock
        except BaseException:
            lock.close()
            raise
    except BaseException:
        connection.close()
        raise


def connect(path: Path, *, reads: bool = False) -> sqlite3.Connection:
    """Open an existing file. Commits reach the disk before they return; a reader commits nothing.

    Transactions and checkpoints are explicit. The connection may be used on another thread.
    """
    # "rw" never creates a file. A quoted URI, so that "?" or "#" in the path is not syntax.
    uri, wait = f"{path.as_uri()}?mode=rw", storage.WAIT_SECONDS
    connection = sqlite3.connect(uri, wait, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA query_only = {int(reads)}")
    return connection


def is_filled(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether there is a bank in the file at `path`; False if there is nothing in it yet.

    Raises `DatabaseUnavailable` if it is another program's, or was made by another version.
    """
    application, version, objects = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if not (application or version or objects):
        return False
    if application != APPLICATION_ID:
        raise DatabaseUnavailable(f"{path} is the database of another program.")
    if version != fingerprint(DIALECT):
        raise storage.OtherVersion(path)
    return True


def explain(path: Path, error: Exception) -> str:
    """Say in one line why the database cannot be used."""
    cause = getattr(error, "strerror", None) or f"{error}" or "another program keeps it locked"
    return f"The database {path} cannot be used: {cause}."


def translate_error(error: sqlite3.Error | TimeoutError) -> BankBusy | DatabaseFailed:
    """Return the exception to raise instead of an error that undid a transaction.

    SQLite's messages name at most a table or a rule, and contain no stored data.
    """
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, TimeoutError) or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BankBusy()
    if isinstance(error, sqlite3.IntegrityError):
        return DatabaseFailed(f"The database refused a change: {error}.")
    return DatabaseFailed(
        f"The database reports an error: {error}. `banking-server database check` may say more."
    )
