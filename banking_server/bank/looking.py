"""Looking at a bank's database without changing anything, not even by opening it.

A server that opens a file closes it to others and makes files beside it. Here it is only said what
would come of that.
"""

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from banking_server.bank.location import URL, Location
from banking_server.bank.models import Customer, is_id
from banking_server.bank.opening import load_postgresql
from banking_server.bank.sqlite_file import beside, explain, is_filled
from banking_server.bank.storage import DatabaseMissing, DatabaseUnavailable, find_record

SQLITE_VERSION: Final = sqlite3.sqlite_version_info
"""Of the library that is in use."""

WAL_RESET_MENDED: Final = (3, 51, 3)
"""The first version that cannot lose commits by itself (`sqlite` has how we avoid that)."""

_CUSTOMER: Final = "SELECT 1 FROM customer WHERE customer_id = ?"


@dataclass(frozen=True)
class Look:
    """What a database is like that can be used."""

    checked: bool
    """It was looked whether it is damaged; else there was no time, or no way."""
    has_customer: bool
    """It has the customer who is asked for, or nobody is."""


async def look_at(location: Location, customer: str | None = None, *, seconds: float) -> Look:
    """Look at a database, and for so many seconds at most whether it is damaged.

    A customer is looked for in it, if one is given.

    Raises `DatabaseMissing` where there is none, and `DatabaseUnavailable` if it cannot be used.
    """
    if isinstance(location, URL):
        return await _look_at_database(location, customer)
    return _look_at_file(location, customer, seconds)


async def _look_at_database(url: URL, customer: str | None) -> Look:
    postgresql = load_postgresql()
    store = await postgresql.PostgresStore.open(url)
    try:
        if not await store.read(postgresql.is_filled):
            raise DatabaseMissing(url)
        has_customer = customer is None or bool(
            await store.read(lambda tx: find_record(tx, Customer, customer))
        )
    finally:
        await store.close()
    return Look(checked=False, has_customer=has_customer)


def _look_at_file(path: Path, customer: str | None, seconds: float) -> Look:
    if not os.path.lexists(path):
        raise DatabaseMissing(path)
    if path.is_dir():
        raise DatabaseUnavailable(f"{path} is a folder, not a database file.")
    # Whoever has it open has both files beside it. Without them nobody has, and it can be read as
    # one that never changes; with one of them alone, reading would make the other.
    beside_it = [beside(path, suffix).exists() for suffix in ("-wal", "-shm")]
    mode = "ro" if all(beside_it) else "ro&immutable=1"
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=1)
        ) as looking:
            if not is_filled(looking, path):
                raise DatabaseMissing(path)
            has_customer = customer is None or (
                is_id(customer) and bool(looking.execute(_CUSTOMER, [customer]).fetchone())
            )
            readable = all(beside_it) or not any(beside_it)
            checked = readable and _is_whole(looking, path, seconds)
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailable(explain(path, error)) from error
    for needed in (path, path.resolve().parent):
        if not os.access(needed, os.W_OK):
            raise DatabaseUnavailable(f"{needed} cannot be written to by this user.")
    return Look(checked, has_customer)


def _is_whole(looking: sqlite3.Connection, path: Path, seconds: float) -> bool:
    """Return whether SQLite finds no damage; False if that takes longer than so many seconds.

    Raises `DatabaseUnavailable` if it does.
    """
    end = time.monotonic() + seconds
    looking.set_progress_handler(lambda: time.monotonic() > end, 1_000)
    try:
        (found,) = looking.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:
        return False  # Its time was over.
    if found != "ok":
        raise DatabaseUnavailable(
            f"The database {path} is damaged: `banking-server database restore FILE` brings a "
            "backup back."
        )
    return True
