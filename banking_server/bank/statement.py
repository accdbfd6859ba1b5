"""Statements: what went through an account, a page at a time."""

import base64
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import col
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.accounts import accounts_of, find_account_with_figures
from banking_server.bank.audit import Call, in_one_transaction
from banking_server.bank.models import Account, Entry, Posting
from banking_server.bank.rules import Argument, NotFound, Refused, Rules, check_statement_days
from banking_server.bank.storage import Bank


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
    return await in_one_transaction(
        bank,
        call,
        lambda session: _statement(session, bank.rules, call, account_id, days, cursor),
    )


async def _statement(
    session: AsyncSession, rules: Rules, call: Call, account_id: str, days: int, cursor: str | None
) -> Statement | NotFound | Refused:
    account = await find_account_with_figures(session, call, account_id)
    if not isinstance(account, Account):
        return account
    refused = check_statement_days(rules, account, days)
    if refused:
        return refused
    lines = _lines_of(account)
    query = sa.select(lines)
    connection = await session.connection()
    if cursor is None:
        since = call.at.astimezone(UTC).date() - timedelta(days=days)
    else:
        place = _read_cursor(cursor)
        last = None
        if place is not None and (place.account_id, place.days) == (account.account_id, days):
            found = await connection.execute(
                query.where(lines.c.posting_id == place.last_posting_id)
            )
            last = found.one_or_none()
        if place is None or last is None:
            return Refused(
                Argument.CURSOR,
                "cursor is not one given for this account and period: leave it out to start anew.",
                subject=account.account_id,
            )
        since = place.since
        query = query.where(
            sa.or_(
                lines.c.posted_at < last.posted_at,
                sa.and_(lines.c.posted_at == last.posted_at, lines.c.posting_id < last.posting_id),
            )
        )
    query = query.where(lines.c.posted_at >= datetime.combine(since, time(), UTC)).order_by(
        lines.c.posted_at.desc(), lines.c.posting_id.desc()
    )
    # One line more than the page holds tells whether another page follows.
    rows = (await connection.execute(query.limit(rules.statement_page + 1))).all()
    page = rows[: rules.statement_page]
    names = {a.account_id: a.account_name for a in await accounts_of(session, call.customer_id)}
    return Statement(
        account_id=account.account_id,
        account_name=account.account_name,
        currency=account.currency,
        since=since,
        lines=tuple(
            StatementLine(
                posted_at=row.posted_at,
                description=row.description,
                counter_account_name=names.get(row.counter_account_id),
                amount_minor=row.amount_minor,
                balance_minor=row.balance_minor,
            )
            for row in page
        ),
        next_cursor=(
            _Place(account.account_id, days, since, page[-1].posting_id).to_cursor()
            if len(rows) > len(page)
            else None
        ),
    )


def _lines_of(account: Account) -> sa.Subquery:
    """Every line of the account with its running balance; a page is cut out of this."""
    other = aliased(Entry)
    return (
        sa.select(
            col(Posting.posting_id),
            col(Posting.posted_at),
            col(Posting.description),
            col(Entry.amount_minor),
            col(other.account_id).label("counter_account_id"),
            sa.func.sum(col(Entry.amount_minor))
            .over(order_by=(col(Posting.posted_at), col(Posting.posting_id)))
            .label("balance_minor"),
        )
        .join(Entry, col(Entry.posting_id) == col(Posting.posting_id))
        .join(
            other,
            sa.and_(
                col(other.posting_id) == col(Entry.posting_id), col(other.side) != col(Entry.side)
            ),
        )
        .where(col(Entry.account_id) == account.account_id)
        .subquery()
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
