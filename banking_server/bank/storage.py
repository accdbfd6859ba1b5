"""The database file: opening it, reading from it, and writing to it one transaction at a time.

SQLite in WAL mode. Writes take turns on an engine with a single connection and begin with
`BEGIN IMMEDIATE`: what a rule reads cannot change before it writes. Several processes may use one
file. A commit is on the disk before it is acknowledged.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.demo_data import DemoDataError, add_demo_data, read_demo_data
from banking_server.bank.models import Account, Approval, Handoff, Transfer, create_schema, is_id
from banking_server.bank.rules import Rules

SCHEMA_VERSION = 1
"""Kept in `PRAGMA user_version`; a file of a later version is not opened."""
APPLICATION_ID = 0x42414E4B
"""Kept in `PRAGMA application_id`: tells our files from any other program's ("BANK")."""
BUSY_TIMEOUT_MS = 10_000
"""How long a write waits for another process's write, in milliseconds."""

_T = TypeVar("_T")
_Record = TypeVar("_Record", Account, Approval, Handoff, Transfer)


class DatabaseUnavailable(Exception):
    """The database cannot be used; the message is one line for people."""


class BankBusy(Exception):
    """Too much is waiting to be written, or this call has waited too long. Nothing was done."""


class Bank:
    """An open database with the rules that apply to it. Made by `Bank.open`."""

    def __init__(self, path: Path, *, rules: Rules, code_key: bytes) -> None:
        self.rules = rules
        self.code_key = code_key
        """Secret from which confirmation codes are derived; the same in every process."""
        self._reader = _engine(path, begin="BEGIN DEFERRED", read_only=True, connections=5)
        self._writer = _engine(path, begin="BEGIN IMMEDIATE", read_only=False, connections=1)
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls, path: Path, *, rules: Rules, code_key: bytes, demo_data: Path, now: datetime
    ) -> Self:
        """Open the database at `path`, or make it and fill it from the folder `demo_data`.

        A new file is readable by its owner only, and its history ends at `now`. Processes that
        start together on one new file all succeed, and the data is loaded once.
        Raises `DatabaseUnavailable`, also for a mistake in the demo data.
        """
        try:
            is_new = await asyncio.to_thread(_prepare_file, path)
            bank = cls(path, rules=rules, code_key=code_key)
            if is_new:
                try:
                    await bank._fill(demo_data, now)
                except BaseException:
                    await bank.close()
                    raise
            return bank
        except DemoDataError as error:
            raise DatabaseUnavailable(f"The demo data has a mistake: {error}") from error
        except (OSError, sqlite3.Error, SQLAlchemyError) as error:
            raise DatabaseUnavailable(_explain(path, error)) from error

    async def close(self) -> None:
        """Close every connection."""
        await _to_the_end(self._reader.dispose())
        await _to_the_end(self._writer.dispose())

    async def read(self, work: Callable[[AsyncSession], Awaitable[_T]]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        return await _to_the_end(_in_session(self._reader, work))

    async def write(self, work: Callable[[AsyncSession], Awaitable[_T]]) -> _T:
        """Run `work` in one write transaction; commit it, or roll back if it raises.

        Waiting for one's turn can be cancelled. What has begun runs to its end, and a cancellation
        is raised then: a driver that is interrupted in the middle loses its connection.
        """
        async with self._turn:
            return await _to_the_end(_in_session(self._writer, work))

    async def _fill(self, demo_data: Path, now: datetime) -> None:
        data = await asyncio.to_thread(read_demo_data, demo_data)

        async def fill(session: AsyncSession) -> None:
            connection = await session.connection()
            version = await connection.exec_driver_sql("PRAGMA user_version")
            if version.scalar_one() == SCHEMA_VERSION:
                return  # Another process was first.
            await connection.run_sync(create_schema)
            await add_demo_data(session, data, now)
            await session.flush()
            await connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            await connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

        await self.write(fill)


def delete_database(path: Path) -> None:
    """Delete the database at `path`, with the files that SQLite keeps beside it, if there is one.

    Raises `DatabaseUnavailable` if it is in use, is not one of ours, or cannot be deleted. One of
    ours that is damaged is deleted, and so is an empty file.
    """
    if not path.exists():
        return
    try:
        connection = sqlite3.connect(path, timeout=1)
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            # SQLite leaves WAL mode only for the last one who has the file open.
            if application == APPLICATION_ID:
                connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            raise DatabaseUnavailable(f"{path} is in use; stop the server first.") from None
        except sqlite3.DatabaseError:
            # Damaged; but is it ours? The id's place in the file is fixed:
            # https://www.sqlite.org/fileformat.html#the_database_header
            application = int.from_bytes(path.read_bytes()[68:72], "big")
        finally:
            connection.close()
        if application != APPLICATION_ID and path.stat().st_size:
            raise DatabaseUnavailable(
                f"{path} is not a database of this program, and stays as it is."
            )
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise DatabaseUnavailable(f"{path} cannot be deleted: {problem}.") from error
    except sqlite3.Error as error:
        raise DatabaseUnavailable(_explain(path, error)) from error


async def find_record(
    session: AsyncSession, model: type[_Record], record_id: str
) -> _Record | None:
    """Return the record with this id, whoever it belongs to; for the bank's own desks.

    The id may be any text a caller sent. Every look-up by such an id goes through here.
    """
    return await session.get(model, record_id) if is_id(record_id) else None


async def find_owned(
    session: AsyncSession, model: type[_Record], record_id: str, customer_id: str
) -> _Record | None:
    """Return the customer's own record with this id; None if unknown or somebody else's."""
    record = await find_record(session, model, record_id)
    return record if record is not None and record.customer_id == customer_id else None


def _engine(path: Path, *, begin: str, read_only: bool, connections: int) -> AsyncEngine:
    engine = create_async_engine(
        # Not written as text: in that, a "?" or "#" in the path would be read as syntax.
        URL.create("sqlite+aiosqlite", database=str(path)),
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
        pool_size=connections,
        max_overflow=0,
        # An error's text may reach a log, and parameters are customers' data.
        hide_parameters=True,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(dbapi_connection: Any, _record: Any) -> None:
        dbapi_connection.isolation_level = None  # The driver must not begin by itself.
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA query_only = {int(read_only)}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _prepare_file(path: Path) -> bool:
    """Make sure of a file of ours in WAL mode; return whether it has yet to be filled."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Only a file that was not there: closing a descriptor of an open database would drop
        # the locks that SQLite holds on it in this process.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise DatabaseUnavailable(f"{path} is a folder, not a database file.") from None
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    try:
        connection.execute("BEGIN")  # One state for all three.
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("COMMIT")
        if application != APPLICATION_ID and (application or version or objects):
            raise DatabaseUnavailable(f"{path} is the database of another program.")
        if version > SCHEMA_VERSION:
            raise DatabaseUnavailable(
                f"{path} was written by a newer version of this program "
                f"(format {version}, this one knows {SCHEMA_VERSION})."
            )
        _use_wal(connection)
        return bool(version == 0)
    finally:
        connection.close()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL; two processes doing so at once make SQLite say busy at once."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


_CAUSES = {
    "SQLITE_NOTADB": "it is not a database",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_BUSY": "another program keeps it locked",
    "SQLITE_LOCKED": "another program keeps it locked",
    "SQLITE_CANTOPEN": "it cannot be opened for writing",
    "SQLITE_READONLY": "it cannot be written to",
    "SQLITE_PERM": "it cannot be written to",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk reports an error",
}


def _explain(path: Path, error: Exception) -> str:
    """Say in one line why the database cannot be used, without the driver's own words."""
    if isinstance(error, OSError):
        return f"The database {path} cannot be used: {error.strerror or 'the path is not usable'}."
    cause = error.orig if isinstance(error, DBAPIError) else error
    # Extended names continue the primary ones: SQLITE_READONLY_DIRECTORY.
    name = "_".join(str(getattr(cause, "sqlite_errorname", "")).split("_")[:2])
    return f"The database {path} cannot be used: {_CAUSES.get(name, 'SQLite reports an error')}."


async def _in_session(engine: AsyncEngine, work: Callable[[AsyncSession], Awaitable[_T]]) -> _T:
    async with AsyncSession(engine, expire_on_commit=False) as session:
        result = await work(session)
        await session.commit()
        return result


async def _to_the_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Run `work` to its end even if the caller is cancelled meanwhile, then let that through."""
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
