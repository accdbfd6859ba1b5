"""A bank in a PostgreSQL database, which several servers may share.

**Why a lock, and not SERIALIZABLE.** Everything that a rule may change belongs to one customer:
transfers go between the accounts and payees of one list. So a write transaction locks that
customer's row before it reads anything that it decides on, and nothing else, ever:

- Two writes for one customer run one after the other, as they do on SQLite; those of different
  customers run side by side.
- Whoever holds one lock waits for no other, so there is no order to keep, and no deadlock.
- Under READ COMMITTED every statement sees what was committed before it began. A read after taking
  the lock sees what the last writer left, and nobody can change that until the commit. A read
  before it (whose is this handoff?) only finds out whom to lock; the record is read again.
- `FOR NO KEY UPDATE` lets others store rows that refer to the customer, such as audit events.

SERIALIZABLE would guarantee the same, but decide after the fact: it aborts transactions that read
pages of the same small index, whoever owns the rows, and every call would need retries until it
gets through. Here the only work that ever runs twice is what a broken connection cut off.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect
from sqlalchemy.engine import URL

from banking_server.bank import storage
from banking_server.bank.models import TABLES, fingerprint
from banking_server.bank.storage import (
    BankBusy,
    ConcurrencyLimit,
    DatabaseFailed,
    DatabaseUnavailable,
    MaybeDone,
    OtherVersion,
    to_the_end,
)
from banking_server.bank.transaction import Statement, Transaction, value
from tool_chaining.text import one_line

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

CONNECTIONS: Final = 8
"""Connections of one process; each piece of work has a connection and a thread to itself."""
APPLICATION_NAME: Final = "banking-server"
"""The name in the server's list of sessions."""
DIALECT: Final[sa.Dialect] = psycopg_dialect.dialect()  # type: ignore[no-untyped-call]

_SESSION: Final = {
    "timezone": "UTC",
    # An acknowledged commit is on disk, whatever the server's default is.
    "synchronous_commit": "on",
    # Nothing waits for ever, in milliseconds: not for a slow statement, not for a lock, and not for
    # a server process that was stopped while it held one.
    "statement_timeout": "30000",
    "lock_timeout": "5000",
    "idle_in_transaction_session_timeout": "10000",
}
_NETWORK: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_TRY_EVERY_SECONDS: Final = 0.1

_Kind = tuple[str, str]
"""How a transaction begins, and how it ends."""
_READING: Final[_Kind] = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "ROLLBACK")
_WRITING: Final[_Kind] = ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "COMMIT")
_WRITING_ON_SNAPSHOT: Final[_Kind] = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE", "COMMIT")

_COME_AGAIN: Final = {
    *("40001", "40P01"),  # serialization, deadlock
    *("55P03", "57014"),  # a lock, or a statement, took too long
    *("53300", "57P01", "57P02", "57P03", "25P03"),  # full, stopping, starting, idle for too long
}
"""Transient errors, which undo the transaction."""


class _ConnectionLost(Exception):
    """The connection broke, and nothing can have been committed."""


def connect(url: URL) -> psycopg.Connection[Any]:
    """Connect to the database at `url`. Raises `psycopg.Error`."""
    options = DIALECT.create_connect_args(url)[1]
    return psycopg.connect(
        **{
            "target_session_attrs": "read-write",
            **options,
            **_NETWORK,
            "application_name": APPLICATION_NAME,
            "client_encoding": "utf8",
            "options": " ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
        },
        autocommit=True,
    )


class PostgresStore:
    """A `Store` in a PostgreSQL database. Made by `PostgresStore.open`."""

    def __init__(self, url: URL, first: psycopg.Connection[Any]) -> None:
        self._url = url
        self._idle = [first]
        self._places = ConcurrencyLimit(CONNECTIONS)
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="bank")
        self._closed = False
        self._is_reached = True

    @classmethod
    async def open(cls, url: URL) -> "PostgresStore":
        """Connect for the first time. Raises `DatabaseUnavailable`."""
        try:
            return cls(url, await asyncio.to_thread(connect, url))
        except psycopg.Error as error:
            raise DatabaseUnavailable(explain(url, error)) from None

    async def close(self) -> None:
        """Finish running work, and close every connection."""
        if self._closed:
            return
        self._closed = True
        await to_the_end(asyncio.to_thread(self._threads.shutdown))
        self._close_idle()

    async def read(self, work: Callable[[Transaction], _T]) -> _T:
        """Run `work` on one state of the database, which it cannot change."""
        return await self._done(_READING, work, lambda: None)

    async def write(
        self,
        work: Callable[[Transaction], _T],
        *,
        committed: Callable[[], None],
        snapshot: bool = False,
    ) -> _T:
        """Run `work` in one transaction."""
        return await self._done(_WRITING_ON_SNAPSHOT if snapshot else _WRITING, work, committed)

    async def _done(
        self, kind: _Kind, work: Callable[[Transaction], _T], committed: Callable[[], None]
    ) -> _T:
        async with self._places.one():
            if self._closed:
                raise DatabaseUnavailable("The database is closed.")
            loop = asyncio.get_running_loop()

            async def run() -> _T:
                result = await loop.run_in_executor(self._threads, self._run, kind, work)
                committed()
                return result

            return await to_the_end(run())

    # --- on a thread

    def _run(self, kind: _Kind, work: Callable[[Transaction], _T]) -> _T:
        with suppress(_ConnectionLost):
            return self._run_once(kind, work)
        self._close_idle()  # The other open connections are probably broken too.
        try:
            return self._run_once(kind, work)
        except _ConnectionLost:
            raise BankBusy from None

    def _run_once(self, kind: _Kind, work: Callable[[Transaction], _T]) -> _T:
        begin, end = kind
        connection = self._take()
        ending = False
        try:
            cursor = connection.cursor()
            cursor.execute(begin)
            result = work(Transaction(cursor.execute, DIALECT, lock_rows=True))
            ending = True
            cursor.execute(end)
            if cursor.statusmessage != end:
                raise DatabaseFailed("A statement failed, so nothing could be committed.")
            return result
        except psycopg.Error as error:
            if not connection.closed:
                raise translate_error(error) from None
            if ending and end == "COMMIT":
                raise MaybeDone(
                    "The connection to the database broke during a commit. Check whether it "
                    "was done; if not, repeat it."
                ) from None
            raise _ConnectionLost from None
        finally:
            self._put_back(connection)

    def _take(self) -> psycopg.Connection[Any]:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _put_back(self, connection: psycopg.Connection[Any]) -> None:
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if not connection.closed:
            self._idle.append(connection)

    def _connect(self) -> psycopg.Connection[Any]:
        """Connect, and retry for a while: a restarting server is back in a moment."""
        give_up_at = time.monotonic() + storage.WAIT_SECONDS
        while True:
            try:
                connection = connect(self._url)
            except psycopg.Error as error:
                if self._is_reached:
                    self._is_reached = False
                    logger.warning("%s", explain(self._url, error))
                if self._closed or time.monotonic() > give_up_at:
                    raise BankBusy from None
                time.sleep(_TRY_EVERY_SECONDS)
            else:
                if not self._is_reached:
                    self._is_reached = True
                    logger.warning("The database %s can be used again.", self._url)
                return connection

    def _close_idle(self) -> None:
        with suppress(IndexError):  # Until none is left: other threads may take some meanwhile.
            while True:
                self._idle.pop().close()


def translate_error(error: psycopg.Error) -> Exception:
    """Return what to raise instead: PostgreSQL's message may contain data or our identity."""
    if error.sqlstate in _COME_AGAIN:
        return BankBusy()
    if isinstance(error, psycopg.IntegrityError):
        # For this class, the first line names the broken rule, and no values.
        return DatabaseFailed(f"The database refused a change: {error.diag.message_primary}.")
    return DatabaseFailed(
        f"The database reports an error: {type(error).__name__}. `banking-server database check` "
        "may say more."
    )


def explain(url: URL, error: Exception) -> str:
    """Say in one line why the database cannot be used, for the operator."""
    return f"The database {url} cannot be used: {one_line(str(error), 400)}"


def lock_schema(tx: Transaction) -> None:
    """Keep everybody else from creating the tables until the end of the transaction."""
    tx.run_text("SET LOCAL lock_timeout = '1min'")
    tx.run_text("SELECT pg_advisory_xact_lock(1111576139)")  # The number says "BANK".


_MARKS = Statement(
    sa.text("""
SELECT coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""),
    value,
)
_MARK: Final = "banking-server, schema "
"""How the comment on each of our tables begins; the fingerprint of the schema follows."""


def mark_tables(tx: Transaction) -> None:
    """Mark the bank's tables as ours, with the fingerprint of the schema."""
    for table in TABLES.values():
        tx.run_text(f"COMMENT ON TABLE {table.name} IS '{_our_mark()}'")


def is_filled(tx: Transaction) -> bool:
    """Return whether there is a bank in the database; False if there are no tables yet.

    Raises `DatabaseUnavailable` if it is another program's, or was made by another version.
    """
    marks = set(tx.all(_MARKS))
    if not marks:
        return False
    if not any(mark.startswith(_MARK) for mark in marks):
        raise DatabaseUnavailable("The database is another program's.")
    if any(mark.startswith(_MARK) and mark != _our_mark() for mark in marks):
        raise OtherVersion("The database")
    return True


def _our_mark() -> str:
    return f"{_MARK}{fingerprint(DIALECT)}"
