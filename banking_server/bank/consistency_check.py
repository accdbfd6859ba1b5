"""The consistency check: are the schema and the books correct?

It compares the schema with a freshly made one. Then it asks each question in one statement over
whole tables, so that ten million entries take minutes, and all questions see one state. It proves
derived data (balances, totals, a transfer's status) against its source: the entries, which nobody
can change.

It cannot find a missing report: whether one was due depends on the threshold at that time, a
setting. It does check that each report belongs to a posting.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from banking_server.bank.models import UtcTimestamp, schema
from banking_server.bank.sqlite import DIALECT as SQLITE
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement, Transaction

FAULTS_OF_A_KIND = 10
"""The most faults of one kind to name; if there are more, the report says so."""

Objects = Mapping[tuple[str, str], str]
"""The objects of a schema: the kind and name of each, and its definition."""


async def find_faults(bank: Bank, now: datetime) -> list[str]:
    """Return the faults of the database, one line each; an empty list if all is well.

    Its time grows with the database, and it holds no lock. On PostgreSQL it needs the right to
    create a schema.
    """
    is_sqlite = await bank.read(lambda tx: tx.dialect.name == "sqlite")
    expected = await (bank.read if is_sqlite else bank.write)(expected_objects)
    return await bank.read(lambda tx: faults_in(tx, expected, now))


def expected_objects(tx: Transaction) -> Objects:
    """Return the schema that this program makes in an empty database of this kind.

    On PostgreSQL it uses a schema of its own, and drops it at the end.
    """
    if tx.dialect.name == "sqlite":
        with closing(sqlite3.connect(":memory:")) as empty:
            other = Transaction(empty.execute, SQLITE, lock_rows=False)
            return _make_objects(other)
    tx.run_text("CREATE SCHEMA made_by_database_check")
    tx.run_text("SET LOCAL search_path = made_by_database_check")
    made = _make_objects(tx)
    tx.run_text("DROP SCHEMA made_by_database_check CASCADE")
    return made


def _make_objects(tx: Transaction) -> Objects:
    for statement in schema(tx.dialect):
        tx.run_text(statement)
    return dict(tx.all(_OBJECTS[tx.dialect.name]))


def faults_in(tx: Transaction, expected: Objects, now: datetime | None) -> list[str]:
    """Return the faults of one state of the database, as `find_faults` does.

    Without `now`, entries in the future are not faults.
    """
    tx.take_time()
    if tx.dialect.name == "sqlite" and (damage := _find_damage(tx)):
        return damage  # A damaged file's answers are worthless.
    there = dict(tx.all(_OBJECTS[tx.dialect.name]))
    faults = list(_find_changes(there, expected))
    if any(there.get(one) != made for one, made in expected.items() if one[0] in _ASKED):
        return faults  # The questions make no sense for a missing or different table.
    if tx.dialect.name == "sqlite":
        faults += _listed(tx.all(_DANGLING))
    if now is not None:
        faults += _listed(tx.all(_OF_THE_FUTURE, now=now))
    for question in _QUESTIONS:
        faults += _listed(tx.all(question))
    return faults


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


_ASKED: Final = ("table", "column")
"""The kinds of objects that the questions are about."""


def _object(kind: str, name: str, made: str) -> tuple[tuple[str, str], str]:
    return (kind, name), "".join(made.split())  # The layout of a statement does not matter.


_OBJECTS: Final = {
    "sqlite": Statement(
        sa.text("""
SELECT type, name, sql FROM sqlite_master
WHERE type IN ('trigger', 'view') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""),
        _object,
    ),
    "postgresql": Statement(
        sa.text("""
WITH relation AS (
    SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace
)
SELECT CASE WHEN relkind IN ('v', 'm') THEN 'view' ELSE 'table' END, relname, relkind::text
FROM relation WHERE relkind IN ('r', 'p', 'f', 'v', 'm')
UNION ALL
SELECT 'column', relname || '.' || attname,
    concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid))
FROM relation JOIN pg_attribute ON attrelid = relation.oid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'constraint', relname || '.' || conname,
    concat_ws(' ', pg_get_constraintdef(pg_constraint.oid, true), convalidated)
FROM relation JOIN pg_constraint ON conrelid = relation.oid
UNION ALL
SELECT 'index', relname, pg_get_indexdef(oid, 0, true) FROM relation WHERE relkind = 'i'
UNION ALL
SELECT 'trigger', tgname, concat_ws(' ', pg_get_triggerdef(pg_trigger.oid, true), tgenabled)
FROM relation JOIN pg_trigger ON tgrelid = relation.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'rule', rulename, pg_get_ruledef(pg_rewrite.oid, true)
FROM relation JOIN pg_rewrite ON ev_class = relation.oid WHERE relkind <> 'v' AND relkind <> 'm'
UNION ALL
SELECT 'function', proname, prosrc FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace
"""),
        _object,
    ),
}

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
    if ":now" in question:
        limited = limited.bindparams(sa.bindparam("now", type_=UtcTimestamp()))
    return Statement(limited, lambda *found: line.format(*found))


_OF_THE_FUTURE = _ask(
    "entry {0} of {1} is dated {2}, which is in the future: was a server's clock wrong?",
    """
SELECT entry_id, account_id, posted_at FROM entry WHERE posted_at > :now ORDER BY entry_id
""",
)

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
        "transfer {0} is {1}'s, but account {2} is not",
        """
SELECT t.transfer_id, t.customer_id, a.account_id
FROM transfer AS t JOIN account AS a ON a.account_id IN (t.from_account_id, t.to_account_id)
WHERE a.customer_id <> t.customer_id ORDER BY t.transfer_id
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
    _ask(
        "the approval of transfer {0} is {1}; the manager's desk has it as {2}",
        """
SELECT t.transfer_id, t.approval, coalesce(a.status, 'not asked for')
FROM transfer AS t LEFT JOIN approval AS a ON a.transfer_id = t.transfer_id
WHERE CASE WHEN t.approval IN ('none', 'required') THEN a.status IS NOT NULL
    ELSE coalesce(a.status, '') <> t.approval END
ORDER BY t.transfer_id
""",
    ),
    _ask(
        "transfer {0} is {1}, but its approval is {2}",
        """
SELECT transfer_id, status, approval FROM transfer
WHERE status IN ('posted', 'scheduled', 'failed') AND approval NOT IN ('none', 'granted')
    OR approval = 'refused' AND status <> 'voided'
ORDER BY transfer_id
""",
    ),
    _ask(
        "report {0} is about transfer {1}, which is no posting of its customer to a payee",
        """
SELECT r.report_id, t.transfer_id FROM compliance_report AS r
JOIN transfer AS t ON t.transfer_id = r.transfer_id
JOIN account AS a ON a.account_id = t.to_account_id
WHERE t.status <> 'posted' OR a.account_type <> 'external' OR t.customer_id <> r.customer_id
ORDER BY r.report_id
""",
    ),
)
