"""What customers see of their accounts, and that they see nothing of anybody else's."""

import pytest

from banking_server.bank.accounts import (
    AccountView,
    Balance,
    debit_accounts,
    get_balance,
    list_accounts,
    list_customers,
    payable_accounts,
)
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.statement import get_statement
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import Prepared

from ..kit.words import DEPOSIT, EURO, EVERYDAY, LOCKED, PAYEE, RETIREMENT, SAVINGS
from .records import find_account
from .support import BAD_IDS, MINUTE, NOW, call, outcomes, posted, prepare, prepared

pytestmark = pytest.mark.anyio


def ids(views: list[AccountView]) -> list[str]:
    return [view.account_id for view in views]


async def test_customers(bank: Bank) -> None:
    assert await list_customers(bank) == ["CUST001", "CUST002", "CUST003"]


async def test_the_list_is_the_callers_own_in_order(bank: Bank, path: Location) -> None:
    views = await list_accounts(bank, call("list"))
    assert ids(views) == sorted([LOCKED, SAVINGS, EVERYDAY, RETIREMENT, DEPOSIT, EURO, PAYEE])
    assert views[0] == AccountView(
        account_id=LOCKED,
        account_name="Primary Checking",
        account_type="checking",
        can_transfer_from=True,
        can_transfer_to=True,
        is_locked=True,
        account_holder=None,
        currency="USD",
        posted_minor=525_075,
        reserved_minor=0,
        available_minor=525_075,
    )
    assert outcomes(path) == [("list", "listed", None)]


@pytest.mark.parametrize("customer", ["CUST999", "", "\ud800", "x" * 70])
async def test_who_is_not_a_customer_has_nothing(bank: Bank, customer: str) -> None:
    assert await list_accounts(bank, call(customer=customer)) == []
    assert await debit_accounts(bank, customer, NOW) == []
    assert await find_account(bank, customer, SAVINGS, NOW) is None


async def test_a_payees_balance_is_not_shown(bank: Bank) -> None:
    await posted(bank, "12.00", target=PAYEE)
    payee = await find_account(bank, "CUST001", PAYEE, NOW)
    assert payee is not None
    assert payee.account_holder == "Fictional Homes Ltd"
    assert (payee.posted_minor, payee.reserved_minor, payee.available_minor) == (None, None, None)


async def test_accounts_to_take_money_from(bank: Bank) -> None:
    assert ids(await debit_accounts(bank, "CUST001", NOW)) == [LOCKED, EURO, EVERYDAY, SAVINGS]


@pytest.mark.parametrize(
    ("source", "targets"),
    [
        (EVERYDAY, [LOCKED, PAYEE, RETIREMENT, SAVINGS]),
        (SAVINGS, [LOCKED, EVERYDAY, PAYEE, RETIREMENT]),
        (EURO, []),
    ],
)
async def test_accounts_to_send_money_to_are_those_that_prepare_accepts(
    bank: Bank, source: str, targets: list[str]
) -> None:
    payable = await payable_accounts(bank, "CUST001", source, NOW)
    assert payable is not None
    assert ids(payable) == targets
    for account in await list_accounts(bank, call()):
        outcome = await prepare(bank, "0.01", source=source, target=account.account_id)
        assert isinstance(outcome, Prepared) == (account.account_id in targets)


@pytest.mark.parametrize("source", [LOCKED, DEPOSIT, RETIREMENT, PAYEE, *BAD_IDS])
async def test_from_some_accounts_it_is_no_question_where_to(bank: Bank, source: str) -> None:
    assert await payable_accounts(bank, "CUST001", source, NOW) is None


async def test_questions_are_not_audited(bank: Bank, path: Location) -> None:
    await find_account(bank, "CUST001", SAVINGS, NOW)
    await debit_accounts(bank, "CUST001", NOW)
    await payable_accounts(bank, "CUST001", SAVINGS, NOW)
    assert outcomes(path) == []


async def test_a_balance_counts_reservations_until_they_expire(bank: Bank, path: Location) -> None:
    await prepared(bank, "100.00")
    expected = Balance(EVERYDAY, "Everyday Checking", "USD", 185_040, 10_000, 175_040, NOW)
    assert await get_balance(bank, call("balance"), EVERYDAY) == expected
    later = await get_balance(bank, call(at=NOW + 10 * MINUTE), EVERYDAY)
    assert isinstance(later, Balance)
    assert (later.reserved_minor, later.available_minor) == (0, 185_040)
    assert outcomes(path)[1] == ("balance", "balance", EVERYDAY)


OWN = (
    "acc_checking_001 (Primary Checking)",
    "acc_deposit_001 (Fixed Deposit)",
    "acc_euro_001 (Euro Account)",
    "acc_everyday_001 (Everyday Checking)",
    "acc_retirement_001 (Retirement Fund)",
    "acc_savings_001 (High Yield Savings)",
)
"""Whose figures the customer may see: no payee's, and nobody else's."""


@pytest.mark.parametrize("account_id", BAD_IDS)
async def test_foreign_and_unknown_accounts_are_the_same(bank: Bank, account_id: str) -> None:
    expected = NotFound(Argument.ACCOUNT_ID, excerpt(account_id), OWN)
    assert await get_balance(bank, call(), account_id) == expected
    assert await get_statement(bank, call(), account_id, days=30, cursor=None) == expected
    assert await find_account(bank, "CUST001", account_id, NOW) is None


async def test_the_banks_own_account_is_nobodys(bank: Bank) -> None:
    equity = "acc_equity_usd"
    assert await get_balance(bank, call(), equity) == NotFound(Argument.ACCOUNT_ID, equity, OWN)


async def test_a_payees_figures_are_refused(bank: Bank, path: Location) -> None:
    balance = await get_balance(bank, call(), PAYEE)
    statement = await get_statement(bank, call(), PAYEE, days=30, cursor=None)
    assert isinstance(balance, Refused)
    assert balance.field == Argument.ACCOUNT_ID
    assert statement == balance
    assert outcomes(path) == [("a_tool", "refused", PAYEE)] * 2
