"""Opens a bank: the database at a location, created and filled if it is new."""

import asyncio
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from banking_server.bank.location import Location
from banking_server.bank.models import fingerprint, schema
from banking_server.bank.rules import Rules
from banking_server.bank.sqlite import APPLICATION_ID, SqliteStore, explain
from banking_server.bank.storage import (
    Bank,
    BankBusy,
    DatabaseFailed,
    DatabaseMissing,
    DatabaseUnavailable,
    Store,
)
from banking_server.bank.transaction import Statement, Transaction, value


async def open_bank(
    location: Location,
    *,
    rules: Rules,
    code_key: bytes,
    other_code_keys: Sequence[bytes] = (),
    demo_data: Path,
    now: datetime,
    may_create: bool,
) -> Bank:
    """Open the database at `location`, or create it and fill it from the folder `demo_data`.

    Only its owner can read a new file, and its history ends at `now`. A PostgreSQL database must
    exist, and may be empty. Processes that start together on a new one all succeed, and the data
    is loaded once.
    Raises `DatabaseMissing` if there is none and `may_create` is false; `DatabaseUnavailable`, also
    for a mistake in the demo data, and for a database that another version made.
    """
    try:
        if isinstance(location, URL):
            store = await _open_database(location, may_create=may_create)
        else:
            store = await SqliteStore.open(location, may_create=may_create)
        bank = Bank(store, rules=rules, code_key=code_key, other_code_keys=other_code_keys)
        try:
            if not await bank.read(_is_filled):
                await _fill(bank, demo_data, now)
        except BaseException:
            await bank.close()
            raise
    except (DatabaseFailed, BankBusy) as error:
        raise DatabaseUnavailable(f"The database {location} cannot be used. {error}") from error
    except (OSError, sqlite3.Error) as error:  # A `TimeoutError` is an `OSError`.
        raise DatabaseUnavailable(explain(Path(str(location)), error)) from error
    return bank


async def _open_database(url: URL, *, may_create: bool) -> Store:
    postgresql = load_postgresql()
    store: Store = await postgresql.PostgresStore.open(url)
    try:
        if not (may_create or await store.read(postgresql.is_filled)):
            raise DatabaseMissing(url)
    except BaseException:
        await store.close()
        raise
    return store


def load_postgresql() -> Any:
    """Import the PostgreSQL module. Raises `DatabaseUnavailable` if its extra is not installed."""
    try:
        from banking_server.bank import postgresql
    except ImportError as error:
        raise DatabaseUnavailable(
            "A PostgreSQL database needs the extra `postgres`, which is not installed: "
            "in a checkout, pip install '.[postgres]'."
        ) from error
    return postgresql


_USER_VERSION = Statement(sa.text("PRAGMA user_version"), value)


async def _fill(bank: Bank, demo_data: Path, now: datetime) -> None:
    # Imported here: only a new database needs it, and every start would wait.
    from banking_server.bank.demo_data import DemoDataError, add_demo_data, read_demo_data

    try:
        data = await asyncio.to_thread(read_demo_data, demo_data)
    except DemoDataError as error:
        raise DatabaseUnavailable(f"The demo data has a mistake: {error}") from error

    def fill(tx: Transaction) -> None:
        if tx.dialect.name == "postgresql":
            load_postgresql().lock_schema(tx)
        if _is_filled(tx):
            return  # Another process was first.
        for statement in schema(tx.dialect):
            tx.run_text(statement)
        add_demo_data(tx, data, now)
        if tx.dialect.name == "sqlite":
            tx.run_text(f"PRAGMA application_id = {APPLICATION_ID}")
            tx.run_text(f"PRAGMA user_version = {fingerprint(tx.dialect)}")
        else:
            load_postgresql().mark_tables(tx)

    await bank.write(fill)


def _is_filled(tx: Transaction) -> bool:
    if tx.dialect.name == "sqlite":
        return tx.first(_USER_VERSION) != 0
    has_bank: bool = load_postgresql().is_filled(tx)
    return has_bank
