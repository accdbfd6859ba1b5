"""Statements: what went through an account, a page at a time."""

import base64
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar, NamedTuple

import sqlalchemy as sa

from banking_server.bank.accounts import find_account_with_figures
from banking_server.bank.audit import Call, record
from banking_server.bank.models import TABLES, Account, Entry, Posting
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Period,
    Refused,
    Rules,
    check_statement_period,
)
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement as Query
from banking_server.bank.transaction import Transaction, value


class Totals(NamedTuple):
    """What came in and what went out, both above zero, in minor units.

    `spent_minor` is what went out and not to the customer's own accounts; None if the entries were
    too many to tell (`max_entries_told_apart`).
    """

    credits_minor: int
    debits_minor: int
    spent_minor: int | None


class StatementLine(NamedTuple):
    """One entry: its signed amount and the balance after it, in minor units.

    `counter_account_name` names the other account where it stands in the customer's own list.
    """

    posting_id: int
    posted_at: datetime
    description: str
    counter_account_name: str | None
    amount_minor: int
    balance_minor: int


@dataclass(frozen=True)
class Statement:
    """One page of an account's entries in `period`, newest first.

    `totals` are those of the whole period up to now, with the first page only: no entry that comes
    later changes the other pages. `next_cursor` asks for the page after this one; None on the last.
    """

    recorded_as: ClassVar[str] = "statement"

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

    A `month` is written as `rules.check_statement_period` reads it; `days` does not count then.
    `cursor` is a previous page's `next_cursor`; it is good for that account and period only.
    """
    async with bank.heavy_read_slot(call.customer_id):
        # Beside the writer, so that nobody's call waits for it.
        outcome = await bank.read(
            lambda tx: _statement(tx, bank.rules, call, account_id, days, month, cursor)
        )
        await record(bank, call, outcome.recorded_as, outcome.subject)
    return outcome


_entry, _other = TABLES[Entry], TABLES[Entry].alias("other")
_posting, _account = TABLES[Posting], TABLES[Account]
_of_account = _entry.c.account_id == sa.bindparam("account_id")

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
    .join(
        _other,
        sa.and_(_other.c.posting_id == _entry.c.posting_id, _other.c.side != _entry.c.side),
    )
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
            # In a tuple it does not know its type by itself.
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
"""The end of the range before a moment."""

_some = (
    sa.select(_entry.c.posting_id, _entry.c.side, _entry.c.amount_minor)
    .where(
        _of_account,
        _entry.c.posted_at >= sa.bindparam("since"),
        _entry.c.posted_at < sa.bindparam("end"),
    )
    .limit(sa.bindparam("limit"))
    .subquery("some")
)
_MOVED = Query(
    sa.select(
        sa.func.count(),
        sa.func.sum(
            sa.case(
                (
                    sa.and_(
                        _some.c.amount_minor < 0,
                        _account.c.customer_id == sa.bindparam("customer_id"),
                        _account.c.account_type != "external",
                    ),
                    -_some.c.amount_minor,
                ),
                else_=0,
            )
        ),
    )
    .select_from(_some)
    .join(
        _other,
        sa.and_(_other.c.posting_id == _some.c.posting_id, _other.c.side != _some.c.side),
    )
    .join(_account, _account.c.account_id == _other.c.account_id),
    lambda entries, moved: (entries, int(moved or 0)),
)
"""The same range: how many entries, and what went to the customer's own accounts with them."""

_POSTED_AT = Query(
    sa.select(_entry.c.posted_at).where(
        _entry.c.posting_id == sa.bindparam("posting_id"), _of_account
    ),
    value,
)


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
        last = None
        if place is not None and (place.account_id, place.period.asked) == (
            account.account_id,
            period.asked,
        ):
            last = tx.first(
                _POSTED_AT, posting_id=place.last_posting_id, account_id=account.account_id
            )
        if place is None or last is None:
            return Refused(
                Argument.CURSOR,
                "cursor is not one given for this account and period: leave it out to start anew.",
                subject=account.account_id,
            )
        period, before, before_id = place.period, last, place.last_posting_id
    # One line more than the page holds tells whether another page follows.
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
            _Place(account.account_id, period, page[-1].posting_id).to_cursor()
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
    ((entries, moved),) = tx.all(
        _MOVED,
        account_id=account.account_id,
        customer_id=account.customer_id,
        since=start,
        end=end,
        limit=rules.max_entries_told_apart + 1,
    )
    debits = debits_after - debits_before
    return Totals(
        credits_after - credits_before,
        debits,
        debits - moved if entries <= rules.max_entries_told_apart else None,
    )


@dataclass(frozen=True)
class _Place:
    """How far a statement has been read: which one, and its last line so far.

    A cursor is its opaque form. A forged one gains nothing: it can name lines of the account that
    is asked for, and that has to be the caller's own.
    """

    account_id: str
    period: Period
    last_posting_id: int

    def to_cursor(self) -> str:
        """Return the place as a cursor."""
        period = f"{self.period.asked} {self.period.first}"
        place = f"{self.account_id} {period} {self.last_posting_id}"
        return base64.urlsafe_b64encode(place.encode()).decode()


_PLACE = re.compile(r"([A-Za-z0-9_-]{1,64}) ([a-z0-9-]{1,7}) ([0-9-]{10}) ([0-9]{1,18})")


def _read_cursor(cursor: str) -> _Place | None:
    """Return the place a cursor names; None for anything that does not look like one."""
    try:
        place = _PLACE.fullmatch(base64.b64decode(cursor, altchars=b"-_", validate=True).decode())
        if place is None:
            return None
        account_id, asked, first, posting_id = place.groups()
        period = Period.of(asked, date.fromisoformat(first))
        return _Place(account_id, period, int(posting_id))
    except (ValueError, OverflowError):
        return None
