"""Accounts: which ones the customer has, and what they hold."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.audit import Call, read_and_audit
from banking_server.bank.ledger import Funds, read_funds
from banking_server.bank.models import TABLES, Account, Customer, is_id
from banking_server.bank.rules import Argument, NotFound, Outcome, Refused
from banking_server.bank.storage import Bank, find_owned, find_record
from banking_server.bank.transaction import Statement, Transaction, records, unchecked, value


class AccountView(Account):
    """An account as its customer sees it, with its funds at a moment.

    The three amounts are minor units of `currency`, available = posted - reserved. They are None
    for an external payee: that balance belongs to somebody else.
    """

    posted_minor: int | None
    reserved_minor: int | None
    available_minor: int | None


@dataclass(frozen=True)
class Balance(Outcome, recorded_as="balance"):
    """The funds of one account of the customer's own at `as_of`, in minor units."""

    account: Account
    funds: Funds
    as_of: datetime

    @property
    def subject(self) -> str:
        """The account, for the audit trail."""
        return self.account.account_id


@dataclass(frozen=True)
class AccountList(Outcome, recorded_as="listed"):
    """The customer's accounts and payees, ordered by id."""

    accounts: list[AccountView]


_customers = TABLES[Customer].c
_CUSTOMERS = Statement(sa.select(_customers.customer_id).order_by(_customers.customer_id), value)


async def list_customers(bank: Bank) -> list[str]:
    """Return every customer's id, in order."""
    return await bank.read(lambda tx: tx.all(_CUSTOMERS))


async def is_customer(bank: Bank, customer_id: str) -> bool:
    """Return whether there is a customer with this id, which may be any text."""
    return await bank.read(lambda tx: find_record(tx, Customer, customer_id)) is not None


async def list_accounts(bank: Bank, call: Call) -> list[AccountView]:
    """Return the customer's accounts and payees, ordered by id."""

    def look(tx: Transaction) -> AccountList:
        accounts = accounts_of(tx, call.customer_id)
        return AccountList([view_account(tx, account, call.at) for account in accounts])

    return (await read_and_audit(bank, call, look)).accounts


async def get_balance(bank: Bank, call: Call, account_id: str) -> Balance | NotFound | Refused:
    """Return the posted, reserved and available funds of one of the customer's accounts."""
    return await read_and_audit(bank, call, lambda tx: _balance(tx, call, account_id))


def accounts_that_pass(
    tx: Transaction, call: Call, check: Callable[[Account], Refused | None]
) -> list[AccountView]:
    """Return the customer's accounts and payees that pass the check, ordered by id."""
    accounts = accounts_of(tx, call.customer_id)
    return [view_account(tx, each, call.at) for each in accounts if check(each) is None]


_accounts = TABLES[Account].c
_OF_CUSTOMER = records(
    Account,
    _accounts.customer_id == sa.bindparam("customer_id"),
    order_by=[_accounts.account_id],
)


def accounts_of(tx: Transaction, customer_id: str) -> list[Account]:
    """Return the customer's accounts and payees, ordered by id."""
    return tx.all(_OF_CUSTOMER, customer_id=customer_id) if is_id(customer_id) else []


def view_account(tx: Transaction, account: Account, now: datetime) -> AccountView:
    """Return the account with its funds at `now`."""
    funds = None if account.account_type == "external" else read_funds(tx, account, now)
    shown = {
        "posted_minor": funds.posted_minor if funds else None,
        "reserved_minor": funds.reserved_minor if funds else None,
        "available_minor": funds.available_minor if funds else None,
    }
    return unchecked(AccountView, vars(account) | shown)


def find_account_with_figures(
    tx: Transaction, call: Call, account_id: str
) -> Account | NotFound | Refused:
    """Find an account whose balance and entries the customer may see."""
    check = rules.check_figures_visible
    account = find_account(tx, call, Argument.ACCOUNT_ID, account_id, check)
    if isinstance(account, NotFound):
        return account
    refusal = check(account)
    return account if refusal is None else refusal


def find_account(
    tx: Transaction,
    call: Call,
    field: Argument,
    account_id: str,
    check: Callable[[Account], Refused | None],
) -> Account | NotFound:
    """Return the customer's account; if there is none, a `NotFound` with their suitable accounts.

    Suitable accounts pass the check.
    """
    account = find_owned(tx, Account, account_id, call.customer_id)
    if account is not None:
        return account
    accounts = accounts_of(tx, call.customer_id)
    known = [f"{each.account_id} ({each.account_name})" for each in accounts if not check(each)]
    return NotFound(field, rules.excerpt(account_id), tuple(known))


def _balance(tx: Transaction, call: Call, account_id: str) -> Balance | NotFound | Refused:
    account = find_account_with_figures(tx, call, account_id)
    if not isinstance(account, Account):
        return account
    return Balance(account, read_funds(tx, account, call.at), call.at)
