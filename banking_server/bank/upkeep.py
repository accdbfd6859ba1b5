"""Looking after the database: is everything in it as it must be?

Every question is one statement over whole tables, so that ten million entries are asked about in
minutes, and all see one state. What is kept (balances, totals, a transfer's status) is proven
against what it was made of: the entries, which nobody can change.

What cannot be told is whether a report is missing: whether a posting had to be reported is decided
by the threshold of its time, which is a setting. A report is stored in the posting's transaction
(`transfers.records.post`); that each one belongs to such a posting is asked here.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from banking_server.bank.models import (
    TABLES,
    Account,
    Approval,
    ComplianceReport,
    Entry,
    Posting,
    Transfer,
    schema,
)
from banking_server.bank.transaction import Statement, Transaction

FAULTS_OF_A_KIND = 10
"""So many are named; if there are more, that is said."""


def find_faults(tx: Transaction) -> list[str]:
    """Return what is wrong with the database, one line each; nothing if all is well.

    It takes a time that grows with the database, and holds no lock.
    """
    faults: list[str] = []
    if tx.dialect.name == "sqlite":
        faults = _find_damage(tx)
        if faults:
            return faults  # The answers of a damaged file are worth nothing.
    else:
        tx.run_text("SET LOCAL statement_timeout = 0")
    changed = list(_find_changes(tx))
    faults = [change.line for change in changed]
    if any(change.kind == "table" for change in changed):
        return faults  # Nothing can be asked about a table that is not there, or is another.
    if tx.dialect.name == "sqlite":
        faults += _listed(tx.all(_DANGLING))
    for question in _QUESTIONS:
        faults += _listed(tx.all(question))
    return faults


def _listed(found: list[str]) -> list[str]:
    if len(found) <= FAULTS_OF_A_KIND:
        return found
    return [*found[:FAULTS_OF_A_KIND], "and more of this kind"]


def _find_damage(tx: Transaction) -> list[str]:
    """Return what SQLite itself finds wrong with a file, one line each."""
    try:
        found = tx.all(_INTEGRITY)
    except sqlite3.DatabaseError as error:
        return [f"SQLite: {error}"]
    return _listed([f"SQLite: {fault}" for fault in found if fault != "ok"])


class _Change(NamedTuple):
    """Something of the schema that is not as this program makes it."""

    kind: str
    line: str


class _Object(NamedTuple):
    """A table, an index, a trigger or a function that the database has."""

    kind: str
    name: str
    sql: str | None
    """What made it, where that is known."""
    is_off: bool


def _find_changes(tx: Transaction) -> Iterator[_Change]:
    """Compare the schema with the one that this program makes: without it, no rule is kept."""
    there = {(one.kind, one.name.lower()): one for one in tx.all(_OBJECTS[tx.dialect.name])}
    for statement in schema(tx.dialect):
        if (made := _MAKES.match(statement.strip())) is None:
            continue
        kind, name = made[1].lower(), made[2]
        found = there.get((kind, name.lower()))
        if found is None:
            yield _Change(kind, f"the {kind} {name} is missing")
        elif found.sql is not None and _plain(found.sql) != _plain(statement):
            yield _Change(kind, f"the {kind} {name} is not the one that this program makes")
        elif found.is_off:
            yield _Change(kind, f"the {kind} {name} is switched off")


def _plain(statement: str) -> str:
    """Return the statement without what says nothing: how it is laid out."""
    return "".join(statement.split())


_MAKES: Final = re.compile(r'CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER|FUNCTION) "?(\w+)')
_OBJECTS: Final = {
    "sqlite": Statement(sa.text("SELECT type, name, sql, 0 FROM sqlite_master"), _Object),
    "postgresql": Statement(
        sa.text("""
SELECT 'table', tablename, NULL, false FROM pg_tables WHERE schemaname = current_schema()
UNION ALL
SELECT 'index', indexname, NULL, false FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL
SELECT 'trigger', tgname, NULL, tgenabled NOT IN ('O', 'A')
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
UNION ALL
SELECT 'function', proname, NULL, false
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""),
        _Object,
    ),
}

_INTEGRITY = Statement(
    sa.text(f"PRAGMA integrity_check({FAULTS_OF_A_KIND + 1})"), lambda fault: str(fault)
)
_DANGLING = Statement(
    sa.text("PRAGMA foreign_key_check"),
    lambda table, row, parent, _: f"row {row} of {table} refers to a {parent} that is not there",
)

_account, _transfer, _posting = TABLES[Account], TABLES[Transfer], TABLES[Posting]
_entry, _approval, _report = TABLES[Entry], TABLES[Approval], TABLES[ComplianceReport]
_a, _t, _p, _e = _account.c, _transfer.c, _posting.c, _entry.c


def _ask(question: sa.Select[Any], line: str) -> Statement[str]:
    """Make a question whose answers are faults; `line` tells one, with its columns in order."""
    return Statement(question.limit(FAULTS_OF_A_KIND + 1), lambda *found: line.format(*found))


def _one_of(column: Any, *values: str) -> sa.ColumnElement[bool]:
    return sa.or_(*(column == value for value in values))


def _differs(one: Any, other: Any) -> sa.ColumnElement[bool]:
    return sa.func.coalesce(one, 0) != sa.func.coalesce(other, 0)


_out = sa.case((_e.amount_minor < 0, -_e.amount_minor), else_=0)
_in = sa.case((_e.amount_minor > 0, _e.amount_minor), else_=0)

_sums = (
    sa.select(
        _e.account_id,
        sa.func.sum(_out).label("debits"),
        sa.func.sum(_in).label("credits"),
        sa.func.max(_e.posted_at).label("last"),
    )
    .group_by(_e.account_id)
    .subquery()
)
_pending = (
    sa.select(_t.from_account_id, sa.func.sum(_t.amount_minor).label("debits"))
    .where(_t.status == "pending")
    .group_by(_t.from_account_id)
    .subquery()
)


def _before(column: Any) -> Any:
    order = [_e.posted_at, _e.posting_id]
    before = sa.func.lag(column).over(partition_by=_e.account_id, order_by=order)
    return sa.func.coalesce(before, 0)


_steps = sa.select(
    _e.entry_id,
    _e.account_id,
    (_before(_e.debits_after_minor) + _out).label("debits"),
    (_before(_e.credits_after_minor) + _in).label("credits"),
    _e.debits_after_minor,
    _e.credits_after_minor,
).subquery()
_step = _steps.c

_debit, _credit = _entry.alias(), _entry.alias()
_paid = (
    sa.select(
        _p.transfer_id,
        _p.posted_at,
        _debit.c.account_id.label("from_account_id"),
        _credit.c.account_id.label("to_account_id"),
        _credit.c.amount_minor,
        _credit.c.currency,
    )
    .join(_debit, sa.and_(_debit.c.posting_id == _p.posting_id, _debit.c.side == "debit"))
    .join(_credit, sa.and_(_credit.c.posting_id == _p.posting_id, _credit.c.side == "credit"))
    .subquery()
)

_QUESTIONS = (
    _ask(
        sa.select(_e.currency, sa.func.sum(_e.amount_minor))
        .group_by(_e.currency)
        .having(sa.func.sum(_e.amount_minor) != 0)
        .order_by(_e.currency),
        "the entries in {0} sum to {1}, not to zero",
    ),
    _ask(
        sa.select(
            _p.posting_id,
            sa.func.count(_e.entry_id),
            sa.func.coalesce(sa.func.sum(_e.amount_minor), 0),
        )
        .select_from(_posting.outerjoin(_entry, _e.posting_id == _p.posting_id))
        .group_by(_p.posting_id)
        .having(
            sa.or_(
                sa.func.count(_e.entry_id) != 2,
                sa.func.sum(_e.amount_minor) != 0,
                sa.func.min(_e.currency) != sa.func.max(_e.currency),
            )
        )
        .order_by(_p.posting_id),
        "posting {0} has {1} entries that sum to {2}; it must be two, of one currency, that sum "
        "to zero",
    ),
    _ask(
        sa.select(_e.entry_id, _e.account_id, _p.posting_id)
        .join(_posting, _p.posting_id == _e.posting_id)
        .where(_e.posted_at != _p.posted_at)
        .order_by(_e.entry_id),
        "entry {0} of {1} is not dated as its posting {2} is",
    ),
    _ask(
        sa.select(
            _a.account_id,
            _a.debits_posted_minor,
            _a.credits_posted_minor,
            sa.func.coalesce(_sums.c.debits, 0),
            sa.func.coalesce(_sums.c.credits, 0),
        )
        .select_from(_account.outerjoin(_sums, _sums.c.account_id == _a.account_id))
        .where(
            sa.or_(
                _differs(_a.debits_posted_minor, _sums.c.debits),
                _differs(_a.credits_posted_minor, _sums.c.credits),
            )
        )
        .order_by(_a.account_id),
        "account {0} keeps debits of {1} and credits of {2}; its entries sum to {3} and {4}",
    ),
    _ask(
        sa.select(_a.account_id)
        .select_from(_account.outerjoin(_sums, _sums.c.account_id == _a.account_id))
        .where(_a.last_posted_at.is_distinct_from(_sums.c.last))
        .order_by(_a.account_id),
        "account {0} does not keep the time of its last entry",
    ),
    _ask(
        sa.select(_a.account_id, _a.debits_pending_minor, sa.func.coalesce(_pending.c.debits, 0))
        .select_from(_account.outerjoin(_pending, _pending.c.from_account_id == _a.account_id))
        .where(_differs(_a.debits_pending_minor, _pending.c.debits))
        .order_by(_a.account_id),
        "account {0} keeps {1} as pending; its pending transfers sum to {2}",
    ),
    _ask(
        sa.select(_step.entry_id, _step.account_id)
        .where(
            sa.or_(
                _step.debits_after_minor != _step.debits,
                _step.credits_after_minor != _step.credits,
            )
        )
        .order_by(_step.entry_id),
        "entry {0} of {1} does not continue the running totals of the one before it",
    ),
    _ask(
        sa.select(_a.account_id, _e.entry_id)
        .join(_entry, _e.account_id == _a.account_id)
        .where(_a.account_type != "equity", _e.credits_after_minor < _e.debits_after_minor)
        .order_by(_e.entry_id),
        "account {0} is below zero after entry {1}",
    ),
    _ask(
        sa.select(_t.transfer_id, _t.customer_id, _a.account_id)
        .join(
            _account,
            sa.or_(_a.account_id == _t.from_account_id, _a.account_id == _t.to_account_id),
        )
        .where(_a.customer_id != _t.customer_id)
        .order_by(_t.transfer_id),
        "transfer {0} is {1}'s, but account {2} is not",
    ),
    _ask(
        sa.select(_t.transfer_id, _t.status)
        .select_from(_transfer.outerjoin(_paid, _paid.c.transfer_id == _t.transfer_id))
        .where(
            _t.status == "posted",
            sa.or_(
                _paid.c.transfer_id.is_(None),
                _paid.c.from_account_id != _t.from_account_id,
                _paid.c.to_account_id != _t.to_account_id,
                _paid.c.amount_minor != _t.amount_minor,
                _paid.c.currency != _t.currency,
                _paid.c.posted_at != _t.posted_at,
            ),
        )
        .order_by(_t.transfer_id),
        "transfer {0} is {1}, but has no posting of its accounts, amount and time",
    ),
    _ask(
        sa.select(_t.transfer_id, _t.status, _p.posting_id)
        .join(_posting, _p.transfer_id == _t.transfer_id)
        .where(_t.status != "posted")
        .order_by(_t.transfer_id),
        "transfer {0} is {1}, but has posting {2}",
    ),
    _ask(
        sa.select(
            _t.transfer_id, _t.approval, sa.func.coalesce(_approval.c.status, "not asked for")
        )
        .select_from(_transfer.outerjoin(_approval, _approval.c.transfer_id == _t.transfer_id))
        .where(
            sa.case(
                (_one_of(_t.approval, "none", "required"), _approval.c.status.is_not(None)),
                else_=sa.func.coalesce(_approval.c.status, "") != _t.approval,
            )
        )
        .order_by(_t.transfer_id),
        "the approval of transfer {0} is {1}; the manager's desk has it as {2}",
    ),
    _ask(
        sa.select(_t.transfer_id, _t.status, _t.approval)
        .where(
            sa.or_(
                sa.and_(
                    _one_of(_t.status, "posted", "scheduled", "failed"),
                    ~_one_of(_t.approval, "none", "granted"),
                ),
                sa.and_(_t.approval == "refused", _t.status != "voided"),
            )
        )
        .order_by(_t.transfer_id),
        "transfer {0} is {1}, but its approval is {2}",
    ),
    _ask(
        sa.select(_report.c.report_id, _t.transfer_id)
        .join(_transfer, _t.transfer_id == _report.c.transfer_id)
        .join(_account, _a.account_id == _t.to_account_id)
        .where(
            sa.or_(
                _t.status != "posted",
                _a.account_type != "external",
                _t.customer_id != _report.c.customer_id,
            )
        )
        .order_by(_report.c.report_id),
        "report {0} is about transfer {1}, which is no posting of its customer to a payee",
    ),
)
