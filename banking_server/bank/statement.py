"""Statements: what went through an account, a page at a time."""

import base64
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar, NamedTuple

import sqlalchemy as sa

from banking_server.bank.accounts import find_account_with_figures
from banking_server.bank.audit import Call, looked_up
from banking_server.bank.models import TABLES, Account, Entry, Posting
from banking_server.bank.rules import Argument, NotFound, Refused, Rules, check_statement_days
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement as Query
from banking_server.bank.transaction import Transaction, value


class Totals(NamedTuple):
    """What came in and what went out, both above zero, in minor units."""

    credits_minor: int
    debits_minor: int


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
    """One page of an account's entries since `since`, newest first.

    `totals` are those of the whole period up to now, with the first page only: no entry that comes
    later changes the other pages. `next_cursor` asks for the page after this one; None on the last.
    """

    recorded_as: ClassVar[str] = "statement"

    account_id: str
    account_name: str
    currency: str
    since: date
    totals: Totals | None
    lines: tuple[StatementLine, ...]
    next_cursor: str | None

    @property
    def subject(self) -> str:
        """The account, for the audit trail."""
        return self.account_id


async def get_statement(
    bank: Bank, call: Call, account_id: str, *, days: int, cursor: str | None
) -> Statement | NotFound | Refused:
    """Return the account's entries of the last `days` days, a page at a time.

    `cursor` is a previous page's `next_cursor`; it is good for that account and period only.
    """
    async with bank.turn_to_read_much(call.customer_id):
        return await looked_up(
            bank, call, lambda tx: _statement(tx, bank.rules, call, account_id, days, cursor)
        )


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

_TOTALS_BEFORE = Query(
    sa.select(_entry.c.credits_after_minor, _entry.c.debits_after_minor)
    .where(_of_account, _entry.c.posted_at < sa.bindparam("since"))
    .order_by(_entry.c.posted_at.desc(), _entry.c.posting_id.desc())
    .limit(1),
    Totals,
)
"""The end of the range before it."""

_POSTED_AT = Query(
    sa.select(_entry.c.posted_at).where(
        _entry.c.posting_id == sa.bindparam("posting_id"), _of_account
    ),
    value,
)

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def _statement(
    tx: Transaction, rules: Rules, call: Call, account_id: str, days: int, cursor: str | None
) -> Statement | NotFound | Refused:
    account = find_account_with_figures(tx, call, account_id)
    if not isinstance(account, Account):
        return account
    refused = check_statement_days(rules, account, days)
    if refused:
        return refused
    since = call.at.astimezone(UTC).date() - timedelta(days=days)
    before, before_id = _END_OF_TIME, 0
    if cursor is not None:
        place = _read_cursor(cursor)
        last = None
        if place is not None and (place.account_id, place.days) == (account.account_id, days):
            last = tx.first(
                _POSTED_AT, posting_id=place.last_posting_id, account_id=account.account_id
            )
        if place is None or last is None:
            return Refused(
                Argument.CURSOR,
                "cursor is not one given for this account and period: leave it out to start anew.",
                subject=account.account_id,
            )
        since, before, before_id = place.since, last, place.last_posting_id
    start = datetime.combine(since, time(), UTC)
    # One line more than the page holds tells whether another page follows.
    lines = tx.all(
        _PAGE,
        account_id=account.account_id,
        customer_id=call.customer_id,
        since=start,
        before=before,
        before_id=before_id,
        limit=rules.statement_page + 1,
    )
    page = lines[: rules.statement_page]
    return Statement(
        account_id=account.account_id,
        account_name=account.account_name,
        currency=account.currency,
        since=since,
        totals=_totals(tx, account, start) if cursor is None else None,
        lines=tuple(page),
        next_cursor=(
            _Place(account.account_id, days, since, page[-1].posting_id).to_cursor()
            if len(lines) > len(page)
            else None
        ),
    )


def _totals(tx: Transaction, account: Account, start: datetime) -> Totals:
    """Return the totals since `start`: the account's now, less those before it."""
    before = tx.first(_TOTALS_BEFORE, account_id=account.account_id, since=start)
    return Totals(
        account.credits_posted_minor - (before.credits_minor if before else 0),
        account.debits_posted_minor - (before.debits_minor if before else 0),
    )


@dataclass(frozen=True)
class _Place:
    """How far a statement has been read: which one, and its last line so far.

    A cursor is its opaque form. A forged one gains nothing: it can name lines of the account that
    is asked for, and that has to be the caller's own.
    """

    account_id: str
    days: int
    since: date
    last_posting_id: int

    def to_cursor(self) -> str:
        """Return the place as a cursor."""
        place = f"{self.account_id} {self.days} {self.since} {self.last_posting_id}"
        return base64.urlsafe_b64encode(place.encode()).decode()


_PLACE = re.compile(r"([A-Za-z0-9_-]{1,64}) ([0-9]{1,4}) ([0-9-]{10}) ([0-9]{1,18})")


def _read_cursor(cursor: str) -> _Place | None:
    """Return the place a cursor names; None for anything that does not look like one."""
    try:
        place = _PLACE.fullmatch(base64.b64decode(cursor, altchars=b"-_", validate=True).decode())
        if place is None:
            return None
        account_id, days, since, posting_id = place.groups()
        return _Place(account_id, int(days), date.fromisoformat(since), int(posting_id))
    except ValueError:
        return None
