"""A bank of any size, for measurements: generated customers beside those that are there."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

ACCOUNTS_EACH: Final = 10
"""The accounts of each generated customer."""
ENTRIES_PER_ACCOUNT: Final = 10
"""The least of entries that there may be for each account, on average."""
BYTES_PER_ENTRY: Final = 400
"""What an entry takes on the disk, with its indexes, its half of a posting, and some room."""

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
    with path.open("rb") as file:
        # All at once and now, not beside what is measured afterwards.
        os.fsync(file.fileno())


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
    ids = [*map(account_id, range(scale.accounts)), _EQUITY]
    debits, credits_ = [0] * len(ids), [0] * len(ids)
    last_posted = [""] * len(ids)

    rows_of_postings = []
    rows_of_entries = []
    for number, (kind, debit, credit, amount) in enumerate(_postings(scale)):
        posting = first_posting + number
        at = f"{(start + number * apart).isoformat(timespec='microseconds')}Z"
        debits[debit] += amount
        credits_[credit] += amount
        last_posted[debit] = last_posted[credit] = at
        words = "Opening balance" if kind == "opening" else f"Payment {number}"
        rows_of_postings.append((posting, kind, words, at))
        for side, account, signed in (("debit", debit, -amount), ("credit", credit, amount)):
            after = (debits[account], credits_[account])
            rows_of_entries.append((posting, side, ids[account], signed, at, *after))
        if len(rows_of_postings) == _BATCH:
            _write(connection, rows_of_postings, rows_of_entries)
    _write(connection, rows_of_postings, rows_of_entries)

    connection.executemany(
        "INSERT INTO customer (customer_id, name) VALUES (?, ?)",
        (
            (customer_id(number), f"Customer {number}")
            for number in range(scale.accounts // ACCOUNTS_EACH)
        ),
    )
    connection.executemany(
        "INSERT INTO account (account_id, customer_id, account_name, account_type, "
        "can_transfer_from, can_transfer_to, is_locked, currency, debits_posted_minor, "
        "credits_posted_minor, debits_pending_minor, last_posted_at) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, 'USD', ?, ?, 0, ?)",
        (
            (
                ids[number],
                customer_id(number // ACCOUNTS_EACH) if number < scale.accounts else None,
                f"Checking {number}" if number < scale.accounts else "The bank's own",
                "checking" if number < scale.accounts else "equity",
                number < scale.accounts,
                number < scale.accounts,
                debits[number],
                credits_[number],
                last_posted[number],
            )
            for number in range(len(ids))
        ),
    )


def _write(
    connection: sqlite3.Connection,
    postings: list[tuple[Any, ...]],
    entries: list[tuple[Any, ...]],
) -> None:
    """Write the rows, and empty the lists."""
    connection.executemany(
        "INSERT INTO posting (posting_id, kind, description, posted_at) VALUES (?, ?, ?, ?)",
        postings,
    )
    connection.executemany(
        "INSERT INTO entry (posting_id, side, account_id, amount_minor, currency, posted_at, "
        "debits_after_minor, credits_after_minor) VALUES (?, ?, ?, ?, 'USD', ?, ?, ?)",
        entries,
    )
    postings.clear()
    entries.clear()


def _postings(scale: Scale) -> Iterator[tuple[str, int, int, int]]:
    """Give each posting: its kind, the accounts that are debited and credited, and the amount.

    The number after the last account's is the bank's own. No other account is ever below zero:
    what one pays, it has had at the opening or gets back.
    """
    others = scale.accounts - 1
    for number in range(scale.accounts):
        yield "opening", scale.accounts, number, _OPENING_MINOR
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
