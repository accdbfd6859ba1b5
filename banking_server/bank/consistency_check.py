"""The consistency check: are the schema and the books correct?

It asks each question in one statement over whole tables, so that ten million entries take minutes,
and all questions see one state. It proves derived data (balances, totals, a transfer's status)
against its source: the entries, which nobody can change. In a SQLite file, it first looks for
damage, and compares the schema with a freshly made one.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

import sqlalchemy as sa

from banking_server.bank.models import schema
from banking_server.bank.sqlite import DIALECT as SQLITE
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement, Transaction

FAULTS_OF_A_KIND = 10
"""The most faults of one kind to name; if there are more, the report says so."""

Objects = Mapping[tuple[str, str], str]
"""The objects of a schema: the kind and name of each, and its definition."""


async def find_faults(bank: Bank) -> list[str]:
    """Return the faults of the database, one line each; an empty list if all is well.

    Its time grows with the database, and it holds no lock.
    """
    return await bank.read(faults_in)


def faults_in(tx: Transaction) -> list[str]:
    """Return the faults of one state of the database, as `find_faults` does."""
    tx.take_time()
    faults: list[str] = []
    if tx.dialect.name == "sqlite":
        if damage := _find_damage(tx):
            return damage  # A damaged file's answers are worthless.
        expected, there = _expected_objects(), dict(tx.all(_OBJECTS))
        faults += _find_changes(there, expected)
        if any(there.get(one) != made for one, made in expected.items() if one[0] == "table"):
            return faults  # The questions make no sense for a missing or different table.
        faults += _listed(tx.all(_DANGLING))
    for question in _QUESTIONS:
        faults += _listed(tx.all(question))
    return faults


def _expected_objects() -> Objects:
    """Return the schema that this program makes in an empty file."""
    with closing(sqlite3.connect(":memory:")) as empty:
        tx = Transaction(empty.execute, SQLITE, lock_rows=False)
        for statement in schema(SQLITE):
            tx.run_text(statement)
        return dict(tx.all(_OBJECTS))


def _listed(found: list[str]) -> list[str]:
    if len(found) <= FAULTS_OF_A_KIND:
        return found
    return [*found[:FAULTS_OF_A_KIND], "and more of this kind"]


def _find_damage(tx: Transaction) -> list[str]:
    """Return the faults that SQLite itself finds in a file, one line each."""
    try:
        found = tx.all(_INTEGRITY)
    except sqlite3.DatabaseError as error:
        return [f"SQLite: {error}"]
    return _listed([f"SQLite: {fault}" for fault in found if fault != "ok"])


def _find_changes(there: Objects, expected: Objects) -> Iterator[str]:
    """Compare the schema with the one that this program makes.

    Without a rule of the schema wrong data would be stored; an unknown trigger may change data.
    """
    for (kind, name), made in expected.items():
        found = there.get((kind, name))
        if found is None:
            yield f"the {kind} {name} is missing"
        elif found != made:
            yield f"the {kind} {name} differs from this version's schema"
    for kind, name in there:
        if (kind, name) not in expected:
            yield f"the {kind} {name} does not belong to this program"


_OBJECTS = Statement(
    sa.text("""
SELECT type, name, sql FROM sqlite_master
WHERE type IN ('trigger', 'view') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""),
    # The layout of a statement does not matter.
    lambda kind, name, made: ((kind, name), "".join(made.split())),
)
_INTEGRITY = Statement(
    sa.text(f"PRAGMA integrity_check({FAULTS_OF_A_KIND + 1})"), lambda fault: str(fault)
)
_DANGLING = Statement(
    sa.text("PRAGMA foreign_key_check"),
    lambda table, row, parent, _: f"row {row} of {table} refers to a {parent} that is not there",
)


def _ask(line: str, question: str) -> Statement[str]:
    """Make a question that finds faults; `line` describes one, with the columns in order."""
    limited = sa.text(f"{question} LIMIT {FAULTS_OF_A_KIND + 1}")
    return Statement(limited, lambda *found: line.format(*found))


_QUESTIONS = (
    _ask(
        "posting {0} has {1} entries that sum to {2}; it must be two of its date, of one currency, "
        "that sum to zero",
        """
SELECT p.posting_id, count(e.entry_id), coalesce(sum(e.amount_minor), 0)
FROM posting AS p LEFT JOIN entry AS e ON e.posting_id = p.posting_id GROUP BY p.posting_id
HAVING count(e.entry_id) <> 2 OR sum(e.amount_minor) <> 0 OR min(e.currency) <> max(e.currency)
    OR min(e.posted_at) <> p.posted_at OR max(e.posted_at) <> p.posted_at
ORDER BY p.posting_id
""",
    ),
    _ask(
        "account {0} keeps debits of {1}, credits of {2} and a last entry at {3}; its entries have "
        "{4}, {5} and {6}",
        """
SELECT a.account_id, a.debits_posted_minor, a.credits_posted_minor, a.last_posted_at,
    coalesce(s.debits, 0), coalesce(s.credits, 0), s.last
FROM account AS a LEFT JOIN (
    SELECT account_id, max(posted_at) AS last,
        sum(CASE WHEN amount_minor < 0 THEN -amount_minor ELSE 0 END) AS debits,
        sum(CASE WHEN amount_minor > 0 THEN amount_minor ELSE 0 END) AS credits
    FROM entry GROUP BY account_id
) AS s ON s.account_id = a.account_id
WHERE a.debits_posted_minor <> coalesce(s.debits, 0)
    OR a.credits_posted_minor <> coalesce(s.credits, 0)
    OR a.last_posted_at <> s.last OR (a.last_posted_at IS NULL) <> (s.last IS NULL)
ORDER BY a.account_id
""",
    ),
    _ask(
        "account {0} keeps {1} as pending; its pending transfers sum to {2}",
        """
SELECT a.account_id, a.debits_pending_minor, coalesce(p.debits, 0)
FROM account AS a LEFT JOIN (
    SELECT from_account_id, sum(amount_minor) AS debits FROM transfer
    WHERE status = 'pending' GROUP BY from_account_id
) AS p ON p.from_account_id = a.account_id
WHERE a.debits_pending_minor <> coalesce(p.debits, 0) ORDER BY a.account_id
""",
    ),
    _ask(
        "entry {0} of {1} does not continue the running totals of the one before it",
        """
SELECT entry_id, account_id FROM (
    SELECT entry_id, account_id, amount_minor,
        debits_after_minor - coalesce(lag(debits_after_minor) OVER before, 0) AS debit,
        credits_after_minor - coalesce(lag(credits_after_minor) OVER before, 0) AS credit
    FROM entry WINDOW before AS (PARTITION BY account_id ORDER BY posted_at, posting_id)
) AS step
WHERE debit <> CASE WHEN amount_minor < 0 THEN -amount_minor ELSE 0 END
    OR credit <> CASE WHEN amount_minor > 0 THEN amount_minor ELSE 0 END
ORDER BY entry_id
""",
    ),
    _ask(
        "transfer {0} is {1}, but has no posting of its accounts, amount and time",
        """
SELECT t.transfer_id, t.status FROM transfer AS t
WHERE t.status = 'posted' AND NOT EXISTS (
    SELECT 1 FROM posting AS p
    JOIN entry AS debit ON debit.posting_id = p.posting_id AND debit.side = 'debit'
    JOIN entry AS credit ON credit.posting_id = p.posting_id AND credit.side = 'credit'
    WHERE p.transfer_id = t.transfer_id AND p.posted_at = t.posted_at
        AND debit.account_id = t.from_account_id AND credit.account_id = t.to_account_id
        AND credit.amount_minor = t.amount_minor AND credit.currency = t.currency
)
ORDER BY t.transfer_id
""",
    ),
    _ask(
        "transfer {0} is {1}, but has posting {2}",
        """
SELECT t.transfer_id, t.status, p.posting_id
FROM transfer AS t JOIN posting AS p ON p.transfer_id = t.transfer_id
WHERE t.status <> 'posted' ORDER BY t.transfer_id
""",
    ),
)
