"""A bank of any size, for measurements: generated customers beside those that are there."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

ACCOUNTS_EACH: Final = 10
"""The accounts of each generated customer."""
ENTRIES_PER_ACCOUNT: Final = 10
"""The least of entries that there may be for each account, on average."""

_EQUITY: Final = "acc_equity_scale"
_OPENING_MINOR: Final = 100_000
_DAYS: Final = 360
_BATCH: Final = 20_000


@dataclass(frozen=True)
class Scale:
    """How large the generated part of a bank is.

    `accounts` is a multiple of ten, and `entries` at least ten times as many; a tenth of them is
    on one account, the busy one, and the others are spread evenly.
    """

    accounts: int
    entries: int

    def __post_init__(self) -> None:
        if self.accounts < 2 * ACCOUNTS_EACH or self.accounts % ACCOUNTS_EACH:
            raise ValueError("accounts: 20 at least, and a multiple of 10")
        if self.entries < ENTRIES_PER_ACCOUNT * self.accounts or self.entries % 10:
            raise ValueError("entries: ten for each account at least, and a multiple of 10")


def customer_id(number: int) -> str:
    """Return the id of a generated customer; the first is number 0, and has the busy account."""
    return f"SCALE{number:06}"


def account_id(number: int) -> str:
    """Return the id of a generated account; number 0 is the busy one, 0 to 9 are the first's."""
    return f"acc_scale_{number:07}"


def sqlite_version() -> str:
    """Return the version of the SQLite that this program runs with."""
    return sqlite3.sqlite_version


def add_at_scale(path: Path, scale: Scale, now: datetime) -> None:
    """Add the generated customers to the database file `path`, with the entries of a year.

    The file is one that no process has open. It is written as fast as can be, so it is worth
    nothing if this is interrupted.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -500000")
        connection.execute("BEGIN EXCLUSIVE")
        later = _take_away(connection)
        _add(connection, scale, now)
        for statement in later:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def _take_away(connection: sqlite3.Connection) -> list[str]:
    """Drop what slows each row down, and return what makes it again: indexes and triggers."""
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') "
        "AND tbl_name IN ('posting', 'entry', 'account') AND sql IS NOT NULL"
    ).fetchall()
    for kind, name, _ in found:
        connection.execute(f'DROP {kind} "{name}"')
    return [sql for _, _, sql in found]


def _add(connection: sqlite3.Connection, scale: Scale, now: datetime) -> None:
    (last,) = connection.execute("SELECT coalesce(max(posting_id), 0) FROM posting").fetchone()
    first_posting = last + 1
    start = now.astimezone(UTC).replace(tzinfo=None) - timedelta(days=_DAYS)
    apart = timedelta(days=_DAYS) / (scale.entries // 2)

    postings = enumerate(_postings(scale))
    while batch := list(islice(postings, _BATCH)):
        made = [
            (
                first_posting + number,
                kind,
                "Opening balance" if kind == "opening" else f"Payment {number}",
                f"{(start + number * apart).isoformat(timespec='microseconds')}Z",
            )
            for number, (kind, *_) in batch
        ]
        connection.executemany(
            "INSERT INTO posting (posting_id, kind, description, posted_at) VALUES (?, ?, ?, ?)",
            made,
        )
        connection.executemany(
            "INSERT INTO entry (posting_id, side, account_id, amount_minor, currency) "
            "VALUES (?, ?, ?, ?, 'USD')",
            [
                (first_posting + number, side, _account(account), sign * amount)
                for number, (_, debit, credit, amount) in batch
                for side, account, sign in (("debit", debit, -1), ("credit", credit, 1))
            ],
        )
    connection.executemany(
        "INSERT INTO customer (customer_id, name) VALUES (?, ?)",
        (
            (customer_id(number), f"Customer {number}")
            for number in range(scale.accounts // ACCOUNTS_EACH)
        ),
    )
    connection.execute(
        "INSERT INTO account (account_id, account_name, account_type, can_transfer_from, "
        "can_transfer_to, is_locked, currency) VALUES (?, ?, 'equity', 0, 0, 0, 'USD')",
        (_EQUITY, "The bank's own, for what is generated"),
    )
    connection.executemany(
        "INSERT INTO account (account_id, customer_id, account_name, account_type, "
        "can_transfer_from, can_transfer_to, is_locked, currency) "
        "VALUES (?, ?, ?, 'checking', 1, 1, 0, 'USD')",
        (
            (account_id(number), customer_id(number // ACCOUNTS_EACH), f"Checking {number}")
            for number in range(scale.accounts)
        ),
    )


def _account(number: int | None) -> str:
    return _EQUITY if number is None else account_id(number)


def _postings(scale: Scale) -> Iterator[tuple[str, int | None, int, int]]:
    """Give each posting: its kind, the accounts that are debited and credited, and the amount.

    No account is ever below zero: what one pays, it has had at the opening or gets back.
    """
    others = scale.accounts - 1
    for number in range(scale.accounts):
        yield "opening", None, number, _OPENING_MINOR
    busy = scale.entries // 10
    every = (scale.entries // 2 - scale.accounts) / busy
    done = 0
    for number in range(scale.entries // 2 - scale.accounts):
        if done < busy and number >= done * every:
            # Each of the others pays to the busy account, and is paid the same back.
            other, amount = 1 + (done // 2) % others, 100 + (done // 2) % 900
            yield ("history", other, 0, amount) if done % 2 == 0 else ("history", 0, other, amount)
            done += 1
        else:
            # Each pays to the next.
            place = number % others
            yield "history", 1 + place, 1 + (place + 1) % others, 100
