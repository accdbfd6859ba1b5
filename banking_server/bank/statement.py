"""Statements: what went through an account, a page at a time."""

import base64
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar

import sqlalchemy as sa

from banking_server.bank.accounts import accounts_of, find_account_with_figures
from banking_server.bank.audit import Call, looked_up
from banking_server.bank.models import Account, Entry, Posting
from banking_server.bank.rules import Argument, NotFound, Refused, Rules, check_statement_days
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import TABLES, Transaction, value
from banking_server.bank.transaction import Statement as Query


@dataclass(frozen=True)
class StatementLine:
    """One entry: its signed amount and the balance after it, in minor units.

    `counter_account_name` names the other account where it stands in the customer's own list.
    """

    posted_at: datetime
    description: str
    counter_account_name: str | None
    amount_minor: int
    balance_minor: int


@dataclass(frozen=True)
class Statement:
    """One page of an account's entries since `since`, newest first.

    `next_cursor` asks for the page after this one; None on the last.
    """

    recorded_as: ClassVar[str] = "statement"

    account_id: str
    account_name: str
    currency: str
    since: date
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
    return await looked_up(
        bank, call, lambda tx: _statement(tx, bank.rules, call, account_id, days, cursor)
    )


@dataclass(frozen=True)
class _Line:
    posting_id: int
    posted_at: datetime
    description: str
    counter_account_id: str
    amount_minor: int
    debits_after_minor: int
    credits_after_minor: int


_entry, _other = TABLES[Entry], TABLES[Entry].alias("other")
_posting = TABLES[Posting]
_PAGE = Query(
    sa.select(
        _entry.c.posting_id,
        _entry.c.posted_at,
        _posting.c.description,
        _other.c.account_id,
        _entry.c.amount_minor,
        _entry.c.debits_after_minor,
        _entry.c.credits_after_minor,
    )
    .join(_posting, _posting.c.posting_id == _entry.c.posting_id)
    .join(
        _other,
        sa.and_(_other.c.posting_id == _entry.c.posting_id, _other.c.side != _entry.c.side),
    )
    .where(
        _entry.c.account_id == sa.bindparam("account_id"),
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
    _Line,
)
"""A range of the index on (account_id, posted_at, posting_id), read from its end."""

_POSTED_AT = Query(
    sa.select(_entry.c.posted_at).where(
        _entry.c.posting_id == sa.bindparam("posting_id"),
        _entry.c.account_id == sa.bindparam("account_id"),
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
    # One line more than the page holds tells whether another page follows.
    lines = tx.all(
        _PAGE,
        account_id=account.account_id,
        since=datetime.combine(since, time(), UTC),
        before=before,
        before_id=before_id,
        limit=rules.statement_page + 1,
    )
    page = lines[: rules.statement_page]
    names = {other.account_id: other.account_name for other in accounts_of(tx, call.customer_id)}
    return Statement(
        account_id=account.account_id,
        account_name=account.account_name,
        currency=account.currency,
        since=since,
        lines=tuple(
            StatementLine(
                posted_at=line.posted_at,
                description=line.description,
                counter_account_name=names.get(line.counter_account_id),
                amount_minor=line.amount_minor,
                balance_minor=line.credits_after_minor - line.debits_after_minor,
            )
            for line in page
        ),
        next_cursor=(
            _Place(account.account_id, days, since, page[-1].posting_id).to_cursor()
            if len(lines) > len(page)
            else None
        ),
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
