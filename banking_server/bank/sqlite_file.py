"""The SQLite file itself: made, recognised, opened; and what SQLite reports."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from sqlalchemy.dialects import sqlite as sqlite_dialect

from banking_server.bank import storage
from banking_server.bank.file_watch import FileLock, beside
from banking_server.bank.models import fingerprint
from banking_server.bank.storage import (
    BankBusy,
    DatabaseFailed,
    DatabaseMissing,
    DatabaseUnavailable,
    OtherVersion,
)

APPLICATION_ID: Final = 0x42414E4B
"""Kept in `PRAGMA application_id`: tells our files from any other program's ("BANK")."""
DIALECT: Final = sqlite_dialect.dialect()


def connect(path: Path, *, reads: bool = False) -> sqlite3.Connection:
    """Open a file that is there. What is committed is on the disk; a reader commits nothing.

    No transaction begins by itself, and nothing is checkpointed by itself.
    """
    # "rw" never makes a file. As a URI, since a "?" or "#" in the path must not be syntax.
    uri, timeout = f"{path.as_uri()}?mode=rw", storage.WAIT_SECONDS
    connection = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA query_only = {int(reads)}")
    # SQLite opens its files with the first statement that reads. From then on, nobody who closes
    # the database is the last one, so that they stay the same files.
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
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
        raise OtherVersion(path)
    return True


def prepare_file(path: Path, *, may_create: bool) -> bool:
    """Make sure of a file of ours in WAL mode; return whether there is a bank in it.

    A new one is readable by its owner only. Raises `DatabaseMissing` if one would have to be made
    but may not be; `DatabaseUnavailable`, `TimeoutError`, `OSError` or `sqlite3.Error`.
    """
    if may_create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only a file that was not there: closing a descriptor of an open database would drop
        # the locks that SQLite holds on it in this process.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    elif not os.path.lexists(path):
        raise DatabaseMissing(path)
    if path.is_dir():
        raise DatabaseUnavailable(f"{path} is a folder, not a database file.")
    with closing(connect(path)) as connection:
        has_bank = is_filled(connection, path)
        if not (has_bank or may_create):
            raise DatabaseMissing(path)
        # SQLite lets two that change the mode of one file at once fail, without a wait.
        lock = FileLock(beside(path.resolve(), ".lock"))
        with closing(lock), lock.held(storage.WAIT_SECONDS):
            connection.execute("PRAGMA journal_mode = WAL")
    return has_bank


def explain(path: Path, error: Exception) -> str:
    """Say in one line why the database cannot be used."""
    cause = getattr(error, "strerror", None) or f"{error}" or "another program keeps it locked"
    return f"The database {path} cannot be used: {cause}."


def translate_error(error: sqlite3.Error) -> BankBusy | DatabaseFailed:
    """Return what to raise instead of an error that undid a transaction.

    SQLite's own words name a table or a rule at most, and nothing of what is stored.
    """
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BankBusy()
    if isinstance(error, sqlite3.IntegrityError):
        return DatabaseFailed(f"The database refused a change: {error}.")
    return DatabaseFailed(
        f"The database reports an error: {error}. `banking-server database check` may say more."
    )
