"""What customers see of their accounts, and that they see nothing of anybody else's."""

import pytest

from banking_server.bank.accounts import (
    AccountView,
    debit_accounts,
    get_balance,
    list_accounts,
    payable_accounts,
)
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.statement import get_statement
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.outcomes import Prepared

from ..kit.words import DEPOSIT, EURO, EVERYDAY, LOCKED, PAYEE, RETIREMENT, SAVINGS
from .support import BAD_IDS, NOW, call, outcomes, posted, prepare

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def ids(views: list[AccountView]) -> list[str]:
    return [view.account_id for view in views]


async def test_accounts_to_pay_from_and_to_are_those_that_prepare_accepts(
    bank: Bank, path: Location
) -> None:
    assert ids(await debit_accounts(bank, "CUST001", NOW)) == [LOCKED, EURO, EVERYDAY, SAVINGS]
    found = {
        source: await payable_accounts(bank, "CUST001", source, NOW)
        for source in (EVERYDAY, EURO, LOCKED, DEPOSIT, PAYEE, *BAD_IDS)
    }
    assert outcomes(path) == []  # These are questions of a form, and no calls.
    assert {source for source, payable in found.items() if payable is not None} == {EVERYDAY, EURO}
    assert found[EURO] == []
    targets = ids(found[EVERYDAY] or [])
    assert targets == [LOCKED, PAYEE, RETIREMENT, SAVINGS]
    for account in await list_accounts(bank, call()):
        outcome = await prepare(bank, "0.01", source=EVERYDAY, target=account.account_id)
        assert isinstance(outcome, Prepared) == (account.account_id in targets)


async def test_a_payees_figures_are_not_shown(bank: Bank, path: Location) -> None:
    await posted(bank, "12.00", target=PAYEE)
    (payee,) = [each for each in await list_accounts(bank, call()) if each.account_id == PAYEE]
    assert payee.account_holder == "Fictional Homes Ltd"
    assert (payee.posted_minor, payee.reserved_minor, payee.available_minor) == (None, None, None)
    balance = await get_balance(bank, call(), PAYEE)
    assert isinstance(balance, Refused)
    assert balance.field == Argument.ACCOUNT_ID
    assert await get_statement(bank, call(), PAYEE, days=30, cursor=None) == balance
    assert outcomes(path)[-2:] == [("a_tool", "refused", PAYEE)] * 2
