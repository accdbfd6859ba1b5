"""Accounts: what the customer has, what is in it, and what went through it."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.ledger import Funds, read_funds
from banking_server.bank.models import Account, AccountType, Customer, Entry, Posting, is_id
from banking_server.bank.rules import NotFound, Refused, Rules, excerpt
from banking_server.bank.storage import Bank, find_owned


@dataclass(frozen=True)
class AccountView:
    """An account as its customer sees it.

    The three amounts are minor units of `currency`; they are None for an external payee, whose
    balance is somebody else's. `account_holder` names who holds such an account.
    """

    account_id: str
    account_name: str
    account_type: AccountType
    can_transfer_from: bool
    can_transfer_to: bool
    is_locked: bool
    account_holder: str | None
    currency: str
    posted_minor: int | None
    reserved_minor: int | None
    available_minor: int | None


@dataclass(frozen=True)
class Balance:
    """The funds of one account at `as_of`, in minor units; available = posted - reserved."""

    account_id: str
    account_name: str
    currency: str
    posted_minor: int
    reserved_minor: int
    available_minor: int
    as_of: datetime

    @property
    def subject(self) -> str:
        """The account, for the audit trail."""
        return self.account_id


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


async def list_customers(bank: Bank) -> list[str]:
    """Return every customer's id, in order."""

    async def work(session: AsyncSession) -> list[str]:
        query = select(Customer.customer_id).order_by(col(Customer.customer_id))
        return list((await session.exec(query)).all())

    return await bank.read(work)


async def list_accounts(bank: Bank, call: Call) -> list[AccountView]:
    """Return the customer's accounts and payees, ordered by id."""

    async def work(session: AsyncSession) -> list[AccountView]:
        add_event(session, call, "listed", None)
        return await _views(session, call.customer_id, call.at)

    return await bank.write(work)


async def get_balance(bank: Bank, call: Call, account_id: str) -> Balance | NotFound | Refused:
    """Return what is posted, reserved and available on one of the customer's accounts."""
    return await in_one_transaction(bank, call, lambda session: _balance(session, call, account_id))


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


async def find_account(
    bank: Bank, customer_id: str, account_id: str, now: datetime
) -> AccountView | None:
    """Return one of the customer's accounts. Not audited: for questions put to the customer."""

    async def work(session: AsyncSession) -> AccountView | None:
        account = await find_owned(session, Account, account_id, customer_id)
        return None if account is None else await view_account(session, account, now)

    return await bank.read(work)


async def debit_accounts(bank: Bank, customer_id: str, now: datetime) -> list[AccountView]:
    """Return the accounts money may be taken from, locked ones included, ordered by id."""
    views = await bank.read(lambda session: _views(session, customer_id, now))
    return [view for view in views if view.can_transfer_from]


async def credit_accounts(bank: Bank, customer_id: str, now: datetime) -> list[AccountView]:
    """Return the accounts and payees money may be sent to, ordered by id."""
    views = await bank.read(lambda session: _views(session, customer_id, now))
    return [view for view in views if view.can_transfer_to]


async def view_account(session: AsyncSession, account: Account, now: datetime) -> AccountView:
    """Return the account with its funds at `now`."""
    funds = await read_funds(session, [account.account_id], now)
    return _view(account, funds[account.account_id])


async def _views(session: AsyncSession, customer_id: str, now: datetime) -> list[AccountView]:
    accounts = await _accounts_of(session, customer_id)
    funds = await read_funds(session, [account.account_id for account in accounts], now)
    return [_view(account, funds[account.account_id]) for account in accounts]


async def _accounts_of(session: AsyncSession, customer_id: str) -> Sequence[Account]:
    if not is_id(customer_id):
        return []
    query = select(Account).where(Account.customer_id == customer_id)
    return (await session.exec(query.order_by(col(Account.account_id)))).all()


def _view(account: Account, funds: Funds) -> AccountView:
    is_ours = account.account_type != "external"
    return AccountView(
        account_id=account.account_id,
        account_name=account.account_name,
        account_type=account.account_type,
        can_transfer_from=account.can_transfer_from,
        can_transfer_to=account.can_transfer_to,
        is_locked=account.is_locked,
        account_holder=account.account_holder,
        currency=account.currency,
        posted_minor=funds.posted_minor if is_ours else None,
        reserved_minor=funds.reserved_minor if is_ours else None,
        available_minor=funds.available_minor if is_ours else None,
    )


async def _own_account(
    session: AsyncSession, call: Call, account_id: str
) -> Account | NotFound | Refused:
    """Find an account whose figures the customer may see."""
    account = await find_owned(session, Account, account_id, call.customer_id)
    if account is None:
        return NotFound("accountId", excerpt(account_id))
    if account.account_type == "external":
        return Refused(
            "accountId",
            f"{account.account_name} ({account.account_id}) is a payee's account: "
            "its balance and entries are not yours to see.",
            subject=account.account_id,
        )
    return account


async def _balance(
    session: AsyncSession, call: Call, account_id: str
) -> Balance | NotFound | Refused:
    account = await _own_account(session, call, account_id)
    if not isinstance(account, Account):
        return account
    funds = (await read_funds(session, [account.account_id], call.at))[account.account_id]
    return Balance(
        account_id=account.account_id,
        account_name=account.account_name,
        currency=account.currency,
        posted_minor=funds.posted_minor,
        reserved_minor=funds.reserved_minor,
        available_minor=funds.available_minor,
        as_of=call.at,
    )


async def _statement(
    session: AsyncSession, rules: Rules, call: Call, account_id: str, days: int, cursor: str | None
) -> Statement | NotFound | Refused:
    account = await _own_account(session, call, account_id)
    if not isinstance(account, Account):
        return account
    if not 1 <= days <= rules.max_statement_days:
        return Refused(
            "days",
            f"days must be from 1 to {rules.max_statement_days}.",
            subject=account.account_id,
        )
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
                "cursor",
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
    names = {a.account_id: a.account_name for a in await _accounts_of(session, call.customer_id)}
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
