"""Looking at accounts: the list, balances and statements."""

import pytest

from ..kit.bank import World, structured, words
from ..kit.words import ACCOUNTS, EVERYDAY, LOCKED, PAYEE, STATEMENT

pytestmark = pytest.mark.anyio


async def test_accounts_are_listed(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as customer:
        result = await customer.call(ACCOUNTS)
    accounts = structured(result)["accounts"]
    ids = [account["accountId"] for account in accounts]
    assert ids == sorted(ids)
    assert len(ids) == 7
    by_id = {account["accountId"]: account for account in accounts}
    assert by_id[LOCKED] == {
        "accountId": "acc_checking_001",
        "accountName": "Primary Checking",
        "accountType": "checking",
        "canTransferFrom": True,
        "canTransferTo": True,
        "isLocked": True,
        "currency": "USD",
        "balance": 5250.75,
        "posted": 5250.75,
        "reserved": 0,
        "available": 5250.75,
    }
    assert by_id[PAYEE] == {
        "accountId": PAYEE,
        "accountName": "Rent Payments",
        "accountType": "external",
        "canTransferFrom": False,
        "canTransferTo": True,
        "isLocked": False,
        "accountHolder": "Fictional Homes Ltd",
        "currency": "USD",
    }
    assert all(account_id in words(result) for account_id in ids)
    assert "acc_equity" not in words(result)
    assert world.outcomes() == [(ACCOUNTS, "listed")]


async def test_a_statement_states_the_spending_of_last_month(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.call(STATEMENT, accountId=EVERYDAY, month="last")
        content = structured(result)
        more = await customer.call(
            STATEMENT, accountId=EVERYDAY, month="last", cursor=content["nextCursor"]
        )
        this = await customer.call(STATEMENT, accountId=EVERYDAY, month="this")
    assert words(result).splitlines()[0] == (
        "Everyday Checking (acc_everyday_001), February 2026: 1,750.50 USD spent and 250.00 USD "
        "moved to your own accounts, 2,000.50 USD went out in total; 1,900.00 USD came in."
    )
    assert (content["accountId"], content["accountName"]) == (EVERYDAY, "Everyday Checking")
    assert (content["since"], content["until"]) == ("2026-02-01", "2026-02-28")
    totals = {name: content[name] for name in ("totalSpent", "totalDebits", "totalCredits")}
    assert totals == {"totalSpent": 1750.5, "totalDebits": 2000.5, "totalCredits": 1900}
    assert words(more).splitlines()[0].endswith("February 2026: older entries.")
    assert "totalSpent" not in structured(more)
    assert words(this).splitlines()[0] == (
        "Everyday Checking (acc_everyday_001), March 2026 (today is 2026-03-02): 20.07 USD spent, "
        "which is all that went out; 0.00 USD came in."
    )
