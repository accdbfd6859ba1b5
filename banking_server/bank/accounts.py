"""Accounts: what the customer has, and what is in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.ledger import Funds, read_funds
from banking_server.bank.models import Account, AccountType, Customer, is_id
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Refused,
    check_figures_visible,
    check_from_account,
    check_parties,
    excerpt,
    is_debit_blocked,
)
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

    recorded_as: ClassVar[str] = "balance"

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


async def list_customers(bank: Bank) -> list[str]:
    """Return every customer's id, in order."""

    async def work(session: AsyncSession) -> list[str]:
        query = select(Customer.customer_id).order_by(col(Customer.customer_id))
        return list((await session.exec(query)).all())

    return await bank.read(work)


async def is_customer(bank: Bank, customer_id: str) -> bool:
    """Return whether the bank has a customer with this id."""

    async def work(session: AsyncSession) -> bool:
        return is_id(customer_id) and await session.get(Customer, customer_id) is not None

    return await bank.read(work)


async def list_accounts(bank: Bank, call: Call) -> list[AccountView]:
    """Return the customer's accounts and payees, ordered by id."""

    async def work(session: AsyncSession) -> list[AccountView]:
        add_event(session, call, "listed", None)
        return await _views(session, await accounts_of(session, call.customer_id), call.at)

    return await bank.write(work)


async def get_balance(bank: Bank, call: Call, account_id: str) -> Balance | NotFound | Refused:
    """Return what is posted, reserved and available on one of the customer's accounts."""
    return await in_one_transaction(bank, call, lambda session: _balance(session, call, account_id))


async def debit_accounts(bank: Bank, customer_id: str, now: datetime) -> list[AccountView]:
    """Return the accounts money may be taken from, locked ones included, ordered by id."""

    async def work(session: AsyncSession) -> list[AccountView]:
        accounts = await accounts_of(session, customer_id)
        debitable = [each for each in accounts if check_from_account(each) is None]
        return await _views(session, debitable, now)

    return await bank.read(work)


async def payable_accounts(
    bank: Bank, customer_id: str, from_account_id: str, now: datetime
) -> list[AccountView] | None:
    """Return the accounts and payees to which money can go from this account, ordered by id.

    None if it is no question where to: the customer has no such account, it is locked, or nothing
    can be transferred from it.
    """

    async def work(session: AsyncSession) -> list[AccountView] | None:
        from_account = await find_owned(session, Account, from_account_id, customer_id)
        if (
            from_account is None
            or is_debit_blocked(from_account)
            or check_from_account(from_account)
        ):
            return None
        accounts = await accounts_of(session, customer_id)
        payable = [each for each in accounts if check_parties(from_account, each) is None]
        return await _views(session, payable, now)

    return await bank.read(work)


async def view_account(session: AsyncSession, account: Account, now: datetime) -> AccountView:
    """Return the account with its funds at `now`."""
    funds = await read_funds(session, [account.account_id], now)
    return _view(account, funds[account.account_id])


async def _views(
    session: AsyncSession, accounts: Sequence[Account], now: datetime
) -> list[AccountView]:
    funds = await read_funds(session, [account.account_id for account in accounts], now)
    return [_view(account, funds[account.account_id]) for account in accounts]


async def accounts_of(session: AsyncSession, customer_id: str) -> Sequence[Account]:
    """Return the customer's accounts and payees, ordered by id."""
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


async def find_account_with_figures(
    session: AsyncSession, call: Call, account_id: str
) -> Account | NotFound | Refused:
    """Find an account whose balance and entries the customer may see."""
    account = await find_owned(session, Account, account_id, call.customer_id)
    if account is None:
        return NotFound(Argument.ACCOUNT_ID, excerpt(account_id))
    return check_figures_visible(account) or account


async def _balance(
    session: AsyncSession, call: Call, account_id: str
) -> Balance | NotFound | Refused:
    account = await find_account_with_figures(session, call, account_id)
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
