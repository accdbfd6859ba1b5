"""Opening a bank: the database that a location names, made and filled if it is new."""

import asyncio
import sqlite3
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from banking_server.bank.demo_data import DemoData, DemoDataError, add_demo_data, read_demo_data
from banking_server.bank.models import schema
from banking_server.bank.rules import Rules
from banking_server.bank.sqlite import SqliteStore
from banking_server.bank.sqlite_file import APPLICATION_ID, SCHEMA_VERSION, explain, prepare_file
from banking_server.bank.storage import Bank, DatabaseUnavailable
from banking_server.bank.transaction import Statement, Transaction, value


async def open_bank(
    path: Path, *, rules: Rules, code_key: bytes, demo_data: Path, now: datetime
) -> Bank:
    """Open the database at `path`, or make it and fill it from the folder `demo_data`.

    A new file is readable by its owner only, and its history ends at `now`. Processes that
    start together on one new file all succeed, and the data is loaded once.
    Raises `DatabaseUnavailable`, also for a mistake in the demo data.
    """
    try:
        is_new = await asyncio.to_thread(prepare_file, path)
        bank = Bank(await SqliteStore.open(path), rules=rules, code_key=code_key)
        if is_new:
            try:
                await _fill(bank, await asyncio.to_thread(read_demo_data, demo_data), now)
            except BaseException:
                await bank.close()
                raise
    except DemoDataError as error:
        raise DatabaseUnavailable(f"The demo data has a mistake: {error}") from error
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailable(explain(path, error)) from error
    return bank


_VERSION = Statement(sa.text("PRAGMA user_version"), value)


async def _fill(bank: Bank, data: DemoData, now: datetime) -> None:
    def fill(tx: Transaction) -> None:
        if tx.first(_VERSION) == SCHEMA_VERSION:
            return  # Another process was first.
        for statement in schema(tx.dialect):
            tx.run_text(statement)
        add_demo_data(tx, data, now)
        tx.run_text(f"PRAGMA application_id = {APPLICATION_ID}")
        tx.run_text(f"PRAGMA user_version = {SCHEMA_VERSION}")

    await bank.write(fill)
