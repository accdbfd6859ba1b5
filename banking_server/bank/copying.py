"""Taking a bank from a SQLite file to a PostgreSQL database: whole, in one transaction, checked."""

import sqlite3
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL

from banking_server.bank import sqlite
from banking_server.bank.models import TABLES, schema
from banking_server.bank.opening import bring_up, load_postgresql
from banking_server.bank.sqlite_file import alone_with, check_there, explain
from banking_server.bank.storage import DatabaseUnavailable
from banking_server.bank.transaction import Statement, Transaction, is_numbered, key_of, value
from banking_server.bank.upkeep import find_faults

_AT_ONCE: Final = 5_000
"""Rows that are in memory at a time."""

_Row = tuple[Any, ...]


def copy_bank(source: Path, target: URL) -> str:
    """Copy everything; return how much, in words. The file is of the newest format then.

    Raises `DatabaseUnavailable` if somebody has the file open, the target is not empty, or what
    arrived is not what was sent or has faults; then the target is as empty as it was.
    """
    postgresql = load_postgresql()
    try:
        check_there(source)
        bring_up(source, may_create=False)
        with alone_with(source) as file, postgresql.connect(target) as there:
            if file is None:
                raise DatabaseUnavailable(f"There is no database {source} any more.")
            one = Transaction(file.execute, sqlite.DIALECT, lock_rows=False)
            with there.transaction():
                other = Transaction(there.execute, postgresql.DIALECT, lock_rows=True)
                return _copy(one, other, there, target)
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailable(explain(source, error)) from error
    except postgresql.psycopg.OperationalError as error:
        raise DatabaseUnavailable(postgresql.explain(target, error)) from None
    except postgresql.psycopg.Error as error:
        raise DatabaseUnavailable(
            f"Nothing was copied to {target}. {postgresql.in_our_words(error)}"
        ) from None


def _copy(one: Transaction, other: Transaction, connection: Any, target: URL) -> str:
    postgresql = load_postgresql()
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        other.run_text(f"SET LOCAL {name} = 0")
    postgresql.lock_schema(other)
    if postgresql.read_format(other) is not None:
        raise DatabaseUnavailable(f"The database {target} is not empty, and stays as it is.")
    for statement in schema(other.dialect):
        other.run_text(statement)
    total = 0
    for table in TABLES.values():
        postgresql.copy_in(connection, table, _rows(one, table))
        total += _compare(one, other, table)
        _go_on_numbering(one, other, table)
    faults = find_faults(other)
    if faults:
        raise DatabaseUnavailable(f"Nothing was copied: the bank has faults, such as: {faults[0]}.")
    return f"{total} records in {len(TABLES)} tables"


@cache
def _page(table: sa.Table) -> Statement[_Row]:
    key = key_of(table)
    page = sa.select(table).where(key > sa.bindparam("after")).order_by(key).limit(_AT_ONCE)
    return Statement(page, lambda *row: row)


def _rows(tx: Transaction, table: sa.Table) -> Iterator[_Row]:
    """Give every row, in the order of the key, which is the same in both databases."""
    place = list(table.columns).index(key_of(table))
    after: Any = 0 if is_numbered(table) else ""
    while page := tx.all(_page(table), after=after):
        yield from page
        after = page[-1][place]


def _compare(one: Transaction, other: Transaction, table: sa.Table) -> int:
    """Compare every row; return how many there are. Raises `DatabaseUnavailable`."""
    count = 0
    for sent, arrived in zip_longest(_rows(one, table), _rows(other, table)):
        if sent != arrived:
            raise DatabaseUnavailable(
                f"Nothing was copied: of {table.name}, something arrived as something else."
            )
        count += 1
    return count


def _go_on_numbering(one: Transaction, other: Transaction, table: sa.Table) -> None:
    """Let the next number be the one that SQLite would give: none is ever given twice."""
    if not is_numbered(table):
        return
    highest = one.first(Statement(sa.select(sa.func.max(key_of(table))), value)) or 0
    # It is remembered where a record with a higher number may have been deleted.
    remembered = one.first(_REMEMBERED, name=table.name) or 0
    sequence = f"pg_get_serial_sequence('{table.name}', '{key_of(table).name}')"
    upcoming = max(highest, remembered) + 1
    other.run_text(f"SELECT setval({sequence}, {upcoming}, false)")


_REMEMBERED = Statement(
    sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name").bindparams(
        sa.bindparam("name", type_=sa.Text)
    ),
    value,
)
