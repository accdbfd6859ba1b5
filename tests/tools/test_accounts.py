"""Looking at accounts: the list, the resource, balances and statements."""

import base64
import json
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from ..kit.bank import START, Customer, World, facts, refused, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, LOCKED, PAYEE, SAVINGS, STATEMENT

pytestmark = pytest.mark.anyio


async def test_the_list(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as customer:
        result = await customer.call(ACCOUNTS)
        resource = await customer.client.read_resource("banking://accounts")
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
    (content,) = resource.contents
    assert content.mime_type == "application/json"
    assert json.loads(content.text) == facts(result)  # type: ignore[union-attr]
    assert world.outcomes() == [(ACCOUNTS, "listed"), ("resources/read", "listed")]


async def test_the_resource_is_listed_and_is_the_callers(world: World) -> None:
    async with world.customer("CUST002") as customer:
        (resource,) = (await customer.client.list_resources()).resources
        assert str(resource.uri) == "banking://accounts"
        content = (await customer.client.read_resource("banking://accounts")).contents[0]
        with pytest.raises(Exception, match=r"banking://account"):
            await customer.client.read_resource("banking://accounts/CUST001")
    accounts = json.loads(content.text)["accounts"]  # type: ignore[union-attr]
    assert {account["accountId"][-4:] for account in accounts} == {"_002"}
    assert {event["customer_id"] for event in world.events()} == {"CUST002"}


async def test_a_balance(world: World) -> None:
    async with world.customer() as customer:
        await customer.prepare(amount=0.4)
        result = await customer.call(BALANCE, accountId=EVERYDAY)
        said = refused(await customer.call(BALANCE, accountId=PAYEE), "accountId")
    assert facts(result) == {
        "accountId": EVERYDAY,
        "posted": 1850.4,
        "reserved": 0.4,
        "available": 1850,
        "currency": "USD",
        "asOf": "2026-03-02T10:00:00Z",
    }
    assert "payee" in said
    assert world.outcomes()[-2:] == [(BALANCE, "balance"), (BALANCE, "refused")]


async def pages(customer: Customer, **arguments: Any) -> list[dict[str, Any]]:
    found = [structured(await customer.call(STATEMENT, **arguments))]
    while "nextCursor" in found[-1]:
        assert len(found) < 10
        more = {**arguments, "cursor": found[-1]["nextCursor"]}
        found.append(structured(await customer.call(STATEMENT, **more)))
    return found


async def test_a_statement_over_all_its_pages(world: World) -> None:
    async with world.customer() as customer:
        found = await pages(customer, accountId=EVERYDAY, days=365)
        short = await pages(customer, accountId=EVERYDAY)
    assert [len(page["entries"]) for page in found][:-1] == [50] * (len(found) - 1)
    entries = [entry for page in found for entry in page["entries"]]
    ((count,),) = world.sql("SELECT count(*) FROM entry WHERE account_id = ?", EVERYDAY)
    assert len(entries) == count > 50
    times = [entry["postedAt"] for entry in entries]
    assert times == sorted(times, reverse=True)
    assert entries[0]["balance"] == 1850.4
    for newer, older in pairwise(entries):
        before = Decimal(str(newer["balance"])) - Decimal(str(newer["amount"]))
        assert before == Decimal(str(older["balance"]))
    assert Decimal(str(entries[-1]["balance"])) == Decimal(str(entries[-1]["amount"]))
    assert any(entry.get("counterparty") == "Rent Payments" for entry in entries)
    assert "The bank's own" not in str(found)

    since = (START - timedelta(days=30)).date().isoformat()
    kept = [entry for page in short for entry in page["entries"]]
    assert kept == [entry for entry in entries if entry["postedAt"] >= since]
    assert len(short) > 1


async def test_days_that_a_statement_may_go_back(world: World) -> None:
    async with world.customer() as customer:
        for days in (1, 1.0, 365):
            result = await customer.call(STATEMENT, accountId=EVERYDAY, days=days)
            assert not result.is_error


async def test_an_empty_statement_says_so(world: World) -> None:
    async with world.customer() as customer:
        world.clock.move(days=200)
        result = await customer.call(STATEMENT, accountId=EVERYDAY, days=1)
    assert structured(result)["entries"] == []
    assert words(result) == (
        "Everyday Checking (acc_everyday_001), 2026-09-17 to 2026-09-18 (today is 2026-09-18): "
        "no entries."
    )


async def test_what_was_spent_last_month_needs_no_arithmetic(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.call(STATEMENT, accountId=EVERYDAY, month="last")
        content = structured(result)
        more = await customer.call(
            STATEMENT, accountId=EVERYDAY, month="last", cursor=content["nextCursor"]
        )
        this = await customer.call(STATEMENT, accountId=EVERYDAY, month="this")
        refused(await customer.call(STATEMENT, accountId=EVERYDAY, month="soon"), "month")
        refused(await customer.call(STATEMENT, accountId=EVERYDAY, month=10), "month")
    assert words(result).splitlines()[0] == (
        "Everyday Checking (acc_everyday_001), February 2026: 1,750.50 USD spent and 250.00 USD "
        "moved to your own accounts, 2,000.50 USD went out in all; 1,900.00 USD came in."
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


def forged(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


BAD_CURSORS: list[Any] = [
    *("", "not base64!", "\ud800", "x" * 1_000_000, 5),
    lambda given: given[:-1],
    lambda given: given[::-1],
    *(
        forged(text)
        for text in (
            "",
            "\x00",
            f"{EVERYDAY} 365 2025-03-02",
            f"{EVERYDAY} 365 2025-13-42 1",
            f"{EVERYDAY} 365 2025-03-02 -1",
            f"{EVERYDAY} 365 2025-03-02 1 OR 1=1",
            "acc_checking_002 365 2025-03-02 1",
        )
    ),
]


async def first_cursor(customer: Customer) -> str:
    page = structured(await customer.call(STATEMENT, accountId=EVERYDAY, days=365))
    return str(page["nextCursor"])


async def test_a_cursor_that_was_not_given_is_refused(world: World) -> None:
    (theirs,) = world.sql(
        "SELECT posting_id FROM entry WHERE account_id = 'acc_checking_002' LIMIT 1"
    )
    async with world.customer() as customer:
        given = await first_cursor(customer)
        for bad in (*BAD_CURSORS, forged(f"{EVERYDAY} 365 2025-03-02 {theirs[0]}")):
            cursor = bad(given) if callable(bad) else bad
            result = await customer.call(STATEMENT, accountId=EVERYDAY, days=365, cursor=cursor)
            refused(result, "cursor")


async def test_a_cursor_is_good_for_its_own_statement_only(world: World) -> None:
    async with world.customer() as customer, world.customer("CUST002") as other:
        cursor = await first_cursor(customer)
        for who, account, days in (
            (customer, EVERYDAY, 30),
            (customer, SAVINGS, 365),
            (other, "acc_checking_002", 365),
        ):
            result = await who.call(STATEMENT, accountId=account, days=days, cursor=cursor)
            refused(result, "cursor")
        good = await customer.call(STATEMENT, accountId=EVERYDAY, days=365, cursor=cursor)
    assert not good.is_error
