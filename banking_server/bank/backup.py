"""The SQLite file as a whole: copy it while servers run; restore or delete it when none does.

A copy is one self-contained, checked file. It does not contain the secret.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from banking_server.bank.consistency_check import faults_in
from banking_server.bank.file_watch import beside
from banking_server.bank.new_file import draft_of, publish, sync
from banking_server.bank.sqlite import APPLICATION_ID, DIALECT, connect, explain, is_filled
from banking_server.bank.storage import DatabaseMissing, DatabaseUnavailable
from banking_server.bank.transaction import Transaction

_BESIDE: Final = ("-wal", "-shm", "-journal", ".lock")
"""The endings of the files beside a database, which SQLite and this program delete."""


def back_up(path: Path, copy: Path) -> None:
    """Write one state of the database at `path` to a new file, and check it.

    Raises `DatabaseUnavailable`, and then leaves no file behind.
    """
    if not path.exists():
        raise DatabaseMissing(path)
    if copy.name.endswith(_BESIDE):
        raise DatabaseUnavailable(
            f"The file {copy} would belong to another database, as its ending says; choose another "
            "name."
        )
    try:
        with draft_of(copy) as draft:
            _copy(path, draft)
            _check(draft, path)
            publish(draft, copy)
    except FileExistsError:
        message = f"The file {copy} already exists; choose another name."
        raise DatabaseUnavailable(message) from None
    except OSError as error:
        raise _unusable(copy, "written", error) from error
    except sqlite3.Error as error:
        raise DatabaseUnavailable(explain(path, error)) from error


def restore(path: Path, copy: Path, *, now: datetime) -> Path | None:
    """Replace the database at `path` with the content of `copy`.

    Returns the path of the replaced database, or None if there was none. Somebody has to delete
    that file. At any moment `path` has one database or the other, never with the other's log.
    Raises `DatabaseUnavailable` if the database is in use, or the copy cannot be used; then nothing
    has changed.
    """
    if not copy.is_file():
        raise DatabaseUnavailable(f"There is no file {copy}.")
    if path.exists() and path.samefile(copy):
        raise DatabaseUnavailable(f"{copy} is the database itself.")
    path = path.resolve()
    kept = path.with_name(f"{path.name}.replaced-{now:%Y%m%dT%H%M%SZ}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_use(path), draft_of(path) as draft:
            try:
                _copy(copy, draft)
                _check(draft, copy)
            except sqlite3.Error as error:
                raise DatabaseUnavailable(explain(copy, error)) from error
            sync(draft)
            was_there = _keep(path, kept)
            os.replace(draft, path)
            sync(path.parent)
    except OSError as error:
        raise _unusable(path, "written", error) from error
    return kept if was_there else None


def delete_database(path: Path) -> None:
    """Delete the database at `path` and the files beside it, if there is one.

    Raises `DatabaseUnavailable` if it is in use, is not one of ours, or cannot be deleted. Damaged
    databases of ours and empty files are deleted too.
    """
    path = path.resolve()
    with exclusive_use(path):
        pass
    try:
        for suffix in ("", *_BESIDE):
            beside(path, suffix).unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(path, "deleted", error) from error


@contextmanager
def exclusive_use(path: Path) -> Iterator[None]:
    """Lock everybody else out of the database at `path`, if there is one, during the block.

    Raises `DatabaseUnavailable` if somebody has it open, or it is not one of ours. A damaged file
    cannot tell us who has it open: such a server will notice that the file is gone, and serve no
    more calls.
    """
    if not path.exists():
        yield
        return
    try:
        connection = sqlite3.connect(path, timeout=1, isolation_level=None)
    except sqlite3.Error as error:
        raise DatabaseUnavailable(explain(path, error)) from error
    with closing(connection):
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application == APPLICATION_ID:
                # SQLite leaves WAL mode only if nobody else has the file open.
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise DatabaseUnavailable(
                f"{path} is in use; stop the server first. `lsof {path}` names the process."
            ) from None
        except sqlite3.DatabaseError:
            # Damaged; but is it ours? The id's place in the file is fixed:
            # https://www.sqlite.org/fileformat.html#the_database_header
            application = int.from_bytes(path.read_bytes()[68:72], "big")
        if application != APPLICATION_ID and path.stat().st_size:
            raise DatabaseUnavailable(
                f"{path} is not a database of this program; it was left alone."
            )
        yield


def _copy(source: Path, target: Path) -> None:
    with closing(connect(source)) as connection:
        if not is_filled(connection, source):
            raise DatabaseUnavailable(f"{source} is empty.")
        connection.execute("VACUUM INTO ?", [str(target)])  # Of one state, and with no log.


def _check(draft: Path, name: Path) -> None:
    """Check a copy of `name`. Raises `DatabaseUnavailable`."""
    with closing(connect(draft)) as connection:
        faults = faults_in(Transaction(connection.execute, DIALECT, lock_rows=False))
    if faults:
        raise DatabaseUnavailable(
            f"{name} has faults, so it is not copied. The first is: {faults[0]}. "
            "`banking-server database check` names those of a database."
        )


def _keep(path: Path, kept: Path) -> bool:
    """Link the database and its log under another name too; return whether either existed.

    Then remove the log's own name, so that the next database there does not meet it.
    """
    was_there = False
    for suffix in ("", "-wal", "-journal"):
        if beside(path, suffix).exists():
            was_there = True
            os.link(beside(path, suffix), beside(kept, suffix))
    sync(path.parent)
    for suffix in ("-wal", "-shm", "-journal"):
        beside(path, suffix).unlink(missing_ok=True)
    sync(path.parent)
    return was_there


def _unusable(path: Path, what: str, error: OSError) -> DatabaseUnavailable:
    problem = (error.strerror or str(error)).lower()
    return DatabaseUnavailable(f"{path} cannot be {what}: {problem}.")
