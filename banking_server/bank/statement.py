"""Statements: the entries of an account, page by page."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from pydantic import AwareDatetime, Field, TypeAdapter

from banking_server.bank.accounts import find_account_with_figures
from banking_server.bank.audit import Call, record
from banking_server.bank.models import TABLES, Account, Entry, Posting
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Outcome,
    Period,
    Refused,
    Rules,
    check_statement_period,
)
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement as Query
from banking_server.bank.transaction import Transaction, value


class Totals(NamedTuple):
    """The sums that came in and went out, both positive, in minor units.

    `spent_minor` is what went out, except to the customer's own accounts; None if there are too
    many entries to tell (`max_entries_for_spending_total`).
    """

    credits_minor: int
    debits_minor: int
    spent_minor: int | None


class StatementLine(NamedTuple):
    """One entry: its signed amount and the balance after it, in minor units.

    `counter_account_name` names the other account if the customer lists it.
    """

    posting_id: int
    posted_at: datetime
    description: str
    counter_account_name: str | None
    amount_minor: int
    balance_minor: int


@dataclass(frozen=True)
class Statement(Outcome, recorded_as="statement"):
    """One page of an account's entries in `period`, newest first.

    The first page alone has `totals`, those of the whole period up to now: later entries do not
    change the other pages. `next_cursor` asks for the page after this one; None on the last.
    """

    account_id: str
    account_name: str
    currency: str
    period: Period
    totals: Totals | None
    lines: tuple[StatementLine, ...]
    next_cursor: str | None

    @property
    def subject(self) -> str:
        """The account, for the audit trail."""
        return self.account_id


async def get_statement(
    bank: Bank,
    call: Call,
    account_id: str,
    *,
    days: int,
    month: str | None = None,
    cursor: str | None,
) -> Statement | NotFound | Refused:
    """Return the account's entries of the last `days` days, or of a calendar month, by the page.

    `rules.check_statement_period` reads `month`, which replaces `days`. `cursor` is the
    `next_cursor` of an earlier page; it is valid for that account and period only.
    """
    # Not on the writer's connection, so that no call waits for it.
    outcome = await bank.read(
        lambda tx: _statement(tx, bank.rules, call, account_id, days, month, cursor)
    )
    await record(bank, call, outcome.recorded_as, outcome.subject)
    return outcome


_entry, _other = TABLES[Entry], TABLES[Entry].alias("other")
_posting, _account = TABLES[Posting], TABLES[Account]
_of_account = _entry.c.account_id == sa.bindparam("account_id")
_is_the_other = sa.and_(
    _other.c.posting_id == _entry.c.posting_id, _other.c.account_id != _entry.c.account_id
)
"""The other entry of the same posting: the two are of different accounts."""

_PAGE = Query(
    sa.select(
        _entry.c.posting_id,
        _entry.c.posted_at,
        _posting.c.description,
        _account.c.account_name,
        _entry.c.amount_minor,
        _entry.c.credits_after_minor - _entry.c.debits_after_minor,
    )
    .join(_posting, _posting.c.posting_id == _entry.c.posting_id)
    .join(_other, _is_the_other)
    .outerjoin(
        _account,
        sa.and_(
            _account.c.account_id == _other.c.account_id,
            _account.c.customer_id == sa.bindparam("customer_id"),
        ),
    )
    .where(
        _of_account,
        _entry.c.posted_at >= sa.bindparam("since"),
        sa.tuple_(_entry.c.posted_at, _entry.c.posting_id)
        < sa.tuple_(
            # In a tuple, SQLAlchemy cannot infer its type.
            sa.bindparam("before", type_=_entry.c.posted_at.type),
            sa.bindparam("before_id"),
        ),
    )
    .order_by(_entry.c.posted_at.desc(), _entry.c.posting_id.desc())
    .limit(sa.bindparam("limit")),
    StatementLine,
)
"""A range of the index on (account_id, posted_at, posting_id), read from its end."""

_SUMS_BEFORE = Query(
    sa.select(_entry.c.credits_after_minor, _entry.c.debits_after_minor)
    .where(_of_account, _entry.c.posted_at < sa.bindparam("moment"))
    .order_by(_entry.c.posted_at.desc(), _entry.c.posting_id.desc())
    .limit(1),
    lambda credits, debits: (credits, debits),
)
"""The account's totals after its last entry before a moment."""

_in_period = (
    _of_account,
    _entry.c.posted_at >= sa.bindparam("since"),
    _entry.c.posted_at < sa.bindparam("end"),
)
_ENTRY_AFTER = Query(
    sa.select(_entry.c.posting_id).where(*_in_period).limit(1).offset(sa.bindparam("count")), value
)
"""The entry after the first `count` of a period, if it has so many; read from the index alone."""
_MOVED = Query(
    sa.select(-sa.func.sum(_entry.c.amount_minor))
    .join(_other, _is_the_other)
    .join(_account, _account.c.account_id == _other.c.account_id)
    .where(
        *_in_period,
        _entry.c.side == "debit",
        _account.c.customer_id == sa.bindparam("customer_id"),
        _account.c.account_type != "external",
    ),
    lambda moved: int(moved or 0),
)
"""What went to the customer's own accounts with the entries of a period."""


def _statement(
    tx: Transaction,
    rules: Rules,
    call: Call,
    account_id: str,
    days: int,
    month: str | None,
    cursor: str | None,
) -> Statement | NotFound | Refused:
    account = find_account_with_figures(tx, call, account_id)
    if not isinstance(account, Account):
        return account
    today = call.at.astimezone(UTC).date()
    period = check_statement_period(rules, account, days=days, month=month, today=today)
    if isinstance(period, Refused):
        return period
    before, before_id = _start_of(period.last + timedelta(days=1)), 0
    if cursor is not None:
        place = _read_cursor(cursor)
        if place is None or (place.account_id, place.period.asked) != (account_id, period.asked):
            return Refused(
                Argument.CURSOR,
                "cursor is not one given for this account and period: leave it out to start anew.",
                subject=account.account_id,
            )
        period, before, before_id = place.period, place.posted_at, place.posting_id
    # One extra line shows whether another page follows.
    lines = tx.all(
        _PAGE,
        account_id=account.account_id,
        customer_id=call.customer_id,
        since=_start_of(period.first),
        before=before,
        before_id=before_id,
        limit=rules.statement_page + 1,
    )
    page = lines[: rules.statement_page]
    return Statement(
        account_id=account.account_id,
        account_name=account.account_name,
        currency=account.currency,
        period=period,
        totals=_totals(tx, rules, account, period) if cursor is None else None,
        lines=tuple(page),
        next_cursor=(
            _Place(account_id, period, page[-1].posted_at, page[-1].posting_id).to_cursor()
            if len(lines) > len(page)
            else None
        ),
    )


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _totals(tx: Transaction, rules: Rules, account: Account, period: Period) -> Totals:
    """Return the totals of a period: those at its end, less those before it."""
    start, end = _start_of(period.first), _start_of(period.last + timedelta(days=1))

    def sums_before(moment: datetime) -> tuple[int, int]:
        return tx.first(_SUMS_BEFORE, account_id=account.account_id, moment=moment) or (0, 0)

    credits_before, debits_before = sums_before(start)
    credits_after, debits_after = sums_before(end)
    entries = {"account_id": account.account_id, "since": start, "end": end}
    debits, spent = debits_after - debits_before, None
    if tx.first(_ENTRY_AFTER, **entries, count=rules.max_entries_for_spending_total) is None:
        spent = debits - tx.all(_MOVED, **entries, customer_id=account.customer_id)[0]
    return Totals(credits_after - credits_before, debits, spent)


class _Place(NamedTuple):
    """A position in a statement: which one, and the last line that was read.

    A cursor is its opaque form. Forging one gains nothing: it can only name lines of the requested
    account, which must be the caller's own.
    """

    account_id: str
    period: Period
    posted_at: datetime
    posting_id: int

    def to_cursor(self) -> str:
        """Return the place as a cursor."""
        account_id, period, posted_at, posting_id = self
        place = [account_id, period.asked, f"{period.first}", f"{posted_at}", posting_id]
        return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_cursor(cursor: str) -> _Place | None:
    """Return the place a cursor names; None for anything that does not look like one."""
    try:
        place = _PLACE.validate_json(base64.b64decode(cursor, altchars=b"-_", validate=True))
        account_id, asked, first, posted_at, posting_id = place
        return _Place(account_id, Period.of(asked, first), posted_at.astimezone(UTC), posting_id)
    except (ValueError, OverflowError):
        return None


_RowId = Annotated[int, Field(ge=0, lt=2**63)]
_PLACE = TypeAdapter(tuple[str, str, date, AwareDatetime, _RowId])
