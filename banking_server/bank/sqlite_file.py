"""The SQLite file itself: made, recognised, set up, deleted; and its troubles in words."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy.dialects import sqlite as sqlite_dialect

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
LOCK_WAIT_SECONDS = 10.0
"""How long the start waits for another program's lock, in seconds."""
_BUSY_TIMEOUT_MS: Final = 50
"""How long SQLite itself waits for another program's lock before it is asked again."""


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file that is kept beside the database at `path`.

    SQLite's are `-wal`, `-shm` and `-journal`. `.lock` is the one whose lock is held by whoever
    commits or checkpoints.
    """
    return path.with_name(path.name + suffix)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what stays the same as long as the file at `path` is the same one; None: no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def last_writing(path: Path) -> bytes:
    """Return what changes when somebody writes to the file at `path` itself; empty: no file."""
    try:
        found = os.stat(path)
    except OSError:
        return b""
    return f"{found.st_mtime_ns} {found.st_size}".encode()


def set_up(connection: sqlite3.Connection, *, read_only: bool = False) -> None:
    """Prepare a connection: a commit is on the disk, and nothing is checkpointed by itself."""
    connection.execute(f"PRAGMA busy_timeout = {int(LOCK_WAIT_SECONDS * 1000)}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA query_only = {int(read_only)}")
    # SQLite opens its files with the first statement that reads. From then on, nobody who closes
    # the database is the last one, so that they stay the same files.
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")


def begin(connection: sqlite3.Connection, wanted: Callable[[], object]) -> bool:
    """Begin to write; False if another program kept the file locked until nobody wanted it."""
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return True
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            if not wanted():
                return False


def is_filled(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether there is a bank in the file at `path`; False if there is nothing in it yet.

    Raises `DatabaseUnavailable` if it is another program's, or was made by another version.
    """
    connection.execute("BEGIN")  # One state for all three.
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.execute("COMMIT")
    if not (application or version or objects):
        return False
    if application != APPLICATION_ID:
        raise DatabaseUnavailable(f"{path} is the database of another program.")
    if version != fingerprint(DIALECT):
        raise OtherVersion(path)
    return True


def prepare_file(path: Path, *, may_create: bool) -> bool:
    """Make sure of a file of ours in WAL mode; return whether there is a bank in it.

    It is readable by its owner only then, if it is this user's. Raises `DatabaseMissing` if one
    would have to be made but may not be; `DatabaseUnavailable`, `OSError` or `sqlite3.Error`.
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
    close_to_others(path)
    with closing(connect(path, wait_seconds=LOCK_WAIT_SECONDS)) as connection:
        has_bank = is_filled(connection, path)
        if not (has_bank or may_create):
            raise DatabaseMissing(path)
        _use_wal(connection)
        return has_bank


def check_there(file: Path) -> None:
    """Raise `DatabaseUnavailable` unless this is a file."""
    if not file.is_file():
        raise DatabaseUnavailable(f"There is no file {file}.")


def close_to_others(path: Path) -> None:
    """Let nobody but its owner read a database of ours, if that is who asks.

    Before it is opened: SQLite makes the files beside it as readable as it is.
    """
    path = path.resolve()
    found = path.stat()
    if os.name != "posix" or not found.st_mode & 0o077 or found.st_uid != os.geteuid():
        return
    # Nothing is made by looking; and through SQLite, for what a closed descriptor would drop.
    looking = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    with closing(looking), suppress(sqlite3.DatabaseError):
        if looking.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            return
        for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
            with suppress(FileNotFoundError):
                beside(path, suffix).chmod(0o600)


def connect(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    """Open a file that is there, to look after the file itself; it never checkpoints by itself."""
    # As a URI, since "rw" never makes a file, and a "?" or "#" in the path must not be syntax.
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=wait_seconds, isolation_level=None
    )
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL; two processes doing so at once make SQLite say busy at once."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def delete_database(path: Path) -> None:
    """Delete the database at `path`, with the files that are kept beside it, if there is one.

    Raises `DatabaseUnavailable` if it is in use, is not one of ours, or cannot be deleted. One of
    ours that is damaged is deleted, and so is an empty file.
    """
    path = path.resolve()
    with alone_with(path):
        pass
    try:
        for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
            beside(path, suffix).unlink(missing_ok=True)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise DatabaseUnavailable(f"{path} cannot be deleted: {problem}.") from error


@contextmanager
def alone_with(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Keep everybody else from the database at `path`, if there is one, until the end of the block.

    The connection that is given can read it. Raises `DatabaseUnavailable` if somebody has it open,
    or it is not one of ours. A damaged one cannot be asked who has it: a server that has will
    notice that it is gone, and end.
    """
    if not path.exists():
        yield None
        return
    try:
        connection = connect(path, wait_seconds=1)
    except sqlite3.Error as error:
        raise DatabaseUnavailable(explain(path, error)) from error
    with closing(connection):
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application == APPLICATION_ID:
                # SQLite leaves WAL mode only for the last one who has the file open.
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise DatabaseUnavailable(f"{path} is in use; stop the server first.") from None
        except sqlite3.DatabaseError:
            # Damaged; but is it ours? The id's place in the file is fixed:
            # https://www.sqlite.org/fileformat.html#the_database_header
            application = int.from_bytes(path.read_bytes()[68:72], "big")
        if application != APPLICATION_ID and path.stat().st_size:
            raise DatabaseUnavailable(
                f"{path} is not a database of this program, and stays as it is."
            )
        yield connection


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


def explain(path: Path, error: Exception) -> str:
    """Say in one line why the database cannot be used, without the driver's own words."""
    if isinstance(error, OSError):
        return f"The database {path} cannot be used: {error.strerror or 'the path is not usable'}."
    cause = _CAUSES.get(_name_of(error), "SQLite reports an error")
    return f"The database {path} cannot be used: {cause}."


def in_our_words(error: sqlite3.Error) -> BankBusy | DatabaseFailed:
    """Return what to raise instead of an error that undid a transaction."""
    name = _name_of(error)
    if name in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return BankBusy()
    if isinstance(error, sqlite3.IntegrityError):
        # Its words name the rule that was broken, and no values.
        return DatabaseFailed(f"The database refused a change: {error}.")
    cause = _CAUSES.get(name, name or type(error).__name__)
    return DatabaseFailed(
        f"The database reports an error: {cause}. `banking-server database check` may say more."
    )


def _name_of(error: Exception) -> str:
    """Return the primary name of SQLite's error, which extended ones continue (`…_DIRECTORY`)."""
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])
