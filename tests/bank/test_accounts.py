"""What customers see of their accounts, and that they see nothing of anybody else's."""

import base64
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from banking_server.bank.accounts import (
    AccountView,
    Balance,
    Statement,
    credit_accounts,
    debit_accounts,
    find_account,
    get_balance,
    get_statement,
    list_accounts,
    list_customers,
)
from banking_server.bank.rules import NotFound, Refused, excerpt
from banking_server.bank.storage import Bank

from ..kit.words import DEPOSIT, EURO, EVERYDAY, LOCKED, PAYEE, RETIREMENT, SAVINGS
from .support import BAD_IDS, DAY, FOREIGN, MINUTE, NOW, call, outcomes, posted, prepared

pytestmark = pytest.mark.anyio


def ids(views: list[AccountView]) -> list[str]:
    return [view.account_id for view in views]


async def test_customers(bank: Bank) -> None:
    assert await list_customers(bank) == ["CUST001", "CUST002", "CUST003"]


async def test_the_list_is_the_callers_own_in_order(bank: Bank, path: Path) -> None:
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


async def test_accounts_to_choose_from(bank: Bank) -> None:
    assert ids(await debit_accounts(bank, "CUST001", NOW)) == [LOCKED, EURO, EVERYDAY, SAVINGS]
    assert ids(await credit_accounts(bank, "CUST001", NOW)) == sorted(
        [LOCKED, EURO, EVERYDAY, SAVINGS, RETIREMENT, PAYEE]
    )


async def test_questions_are_not_audited(bank: Bank, path: Path) -> None:
    await find_account(bank, "CUST001", SAVINGS, NOW)
    await debit_accounts(bank, "CUST001", NOW)
    await credit_accounts(bank, "CUST001", NOW)
    assert outcomes(path) == []


async def test_a_balance_counts_reservations_until_they_expire(bank: Bank, path: Path) -> None:
    await prepared(bank, "100.00")
    expected = Balance(EVERYDAY, "Everyday Checking", "USD", 185_040, 10_000, 175_040, NOW)
    assert await get_balance(bank, call("balance"), EVERYDAY) == expected
    later = await get_balance(bank, call(at=NOW + 10 * MINUTE), EVERYDAY)
    assert isinstance(later, Balance)
    assert (later.reserved_minor, later.available_minor) == (0, 185_040)
    assert outcomes(path)[1] == ("balance", "balance", EVERYDAY)


@pytest.mark.parametrize("account_id", BAD_IDS)
async def test_foreign_and_unknown_accounts_are_the_same(bank: Bank, account_id: str) -> None:
    expected = NotFound("accountId", excerpt(account_id))
    assert await get_balance(bank, call(), account_id) == expected
    assert await get_statement(bank, call(), account_id, days=30, cursor=None) == expected
    assert await find_account(bank, "CUST001", account_id, NOW) is None


async def test_the_banks_own_account_is_nobodys(bank: Bank) -> None:
    equity = "acc_equity_usd"
    assert await get_balance(bank, call(), equity) == NotFound("accountId", equity)


async def test_a_payees_figures_are_refused(bank: Bank, path: Path) -> None:
    for outcome in (
        await get_balance(bank, call(), PAYEE),
        await get_statement(bank, call(), PAYEE, days=30, cursor=None),
    ):
        assert isinstance(outcome, Refused)
        assert outcome.field == "accountId"
    assert outcomes(path) == [("a_tool", "refused", PAYEE)] * 2


# --- statements


async def statement(
    bank: Bank, account_id: str = EVERYDAY, days: int = 30, cursor: str | None = None
) -> Statement:
    found = await get_statement(bank, call("statement"), account_id, days=days, cursor=cursor)
    assert isinstance(found, Statement), found
    return found


async def test_a_statement_is_newest_first_and_adds_up(bank: Bank, path: Path) -> None:
    await posted(bank, "100.00", memo="Something")
    first = await statement(bank)
    assert (first.account_name, first.currency) == ("Everyday Checking", "USD")
    assert first.since == date(2026, 2, 2)
    assert len(first.lines) == 50
    newest = first.lines[0]
    assert (newest.description, newest.counter_account_name) == ("Something", "High Yield Savings")
    assert (newest.amount_minor, newest.balance_minor, newest.posted_at) == (-10_000, 175_040, NOW)
    second = await statement(bank, cursor=first.next_cursor)
    assert second.next_cursor is None
    lines = first.lines + second.lines
    assert len(lines) > 60
    for line, before in pairwise(lines):
        assert line.posted_at >= before.posted_at
        assert line.balance_minor - line.amount_minor == before.balance_minor
    assert lines[-1].posted_at.date() >= first.since
    assert outcomes(path)[-1] == ("statement", "statement", EVERYDAY)


async def test_the_other_side_is_named_if_it_is_the_customers(bank: Bank) -> None:
    everyday = (await statement(bank, days=6)).lines
    names = {line.description: line.counter_account_name for line in everyday}
    assert names["Rent"] == "Rent Payments"
    assert names["Monthly saving"] == "High Yield Savings"
    assert set(names.values()) == {"Rent Payments", "High Yield Savings", None}


async def test_lines_of_one_moment_keep_their_order(bank: Bank) -> None:
    for cents in range(1, 56):
        await posted(bank, f"0.{cents:02d}")
    first = await statement(bank, days=1)
    second = await statement(bank, days=1, cursor=first.next_cursor)
    amounts = [-line.amount_minor for line in first.lines + second.lines]
    assert amounts[:55] == list(range(55, 0, -1))


async def test_a_page_is_not_disturbed_by_new_entries_or_midnight(bank: Bank) -> None:
    first = await statement(bank)
    expected = await statement(bank, cursor=first.next_cursor)
    await posted(bank, "5.00")
    later = await get_statement(
        bank, call(at=NOW + DAY), EVERYDAY, days=30, cursor=first.next_cursor
    )
    assert later == expected


async def test_a_period_with_nothing_in_it(bank: Bank) -> None:
    found = await get_statement(bank, call(at=NOW + 400 * DAY), EVERYDAY, days=1, cursor=None)
    assert isinstance(found, Statement)
    assert (found.lines, found.next_cursor) == ((), None)


@pytest.mark.parametrize("days", [0, -1, 366, 10**30])
async def test_days_out_of_range(bank: Bank, days: int) -> None:
    outcome = await get_statement(bank, call(), EVERYDAY, days=days, cursor=None)
    assert isinstance(outcome, Refused)
    assert outcome.field == "days"


def forged(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "\ud800", "é", "\x00", "A" * 1_000_000, forged("")),
        forged(f"{EVERYDAY} 30 2026-02-02 99999999"),  # no such line
        forged(f"{EVERYDAY} 30 2026-02-02 999999999999999999"),
        forged(f"{EVERYDAY} 30 2026-02-02 99999999999999999999"),
        forged(f"{EVERYDAY} 30 2026-13-02 3"),
        forged(f"{EVERYDAY} 30 2026-02-02 \ud800"),
        forged(f"{FOREIGN} 30 2026-02-02 3"),
        forged("[" * 5000),
    ],
)
async def test_what_is_no_cursor_is_refused(bank: Bank, cursor: str) -> None:
    outcome = await get_statement(bank, call(), EVERYDAY, days=30, cursor=cursor)
    assert isinstance(outcome, Refused)
    assert outcome.field == "cursor"


async def test_a_cursor_is_for_one_account_and_period(bank: Bank) -> None:
    cursor = (await statement(bank)).next_cursor
    for account_id, days in ((SAVINGS, 30), (EVERYDAY, 31)):
        outcome = await get_statement(bank, call(), account_id, days=days, cursor=cursor)
        assert isinstance(outcome, Refused)
        assert outcome.field == "cursor"


async def test_a_forged_cursor_reaches_no_further_than_the_account(bank: Bank) -> None:
    cursor = (await statement(bank)).next_cursor
    assert cursor is not None
    place = base64.urlsafe_b64decode(cursor).decode().split()
    place[2] = str(NOW.date() - timedelta(days=3000))
    found = await statement(bank, cursor=forged(" ".join(place)))
    assert found.lines[-1].description == "Opening balance"
    assert found.lines[-1].counter_account_name is None
