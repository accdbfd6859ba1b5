"""What went through an account: newest first, a page at a time, and nobody else's."""

import base64
from datetime import date, timedelta
from itertools import pairwise

import pytest

from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.statement import Statement, Totals, get_statement
from banking_server.bank.storage import Bank

from ..kit.words import EVERYDAY, SAVINGS
from .support import DAY, FOREIGN, NOW, call, outcomes, posted

pytestmark = pytest.mark.anyio


async def statement(
    bank: Bank, account_id: str = EVERYDAY, days: int = 30, cursor: str | None = None
) -> Statement:
    found = await get_statement(bank, call("statement"), account_id, days=days, cursor=cursor)
    assert isinstance(found, Statement), found
    return found


async def test_a_statement_is_newest_first_and_adds_up(bank: Bank, path: Location) -> None:
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
    amounts = [line.amount_minor for line in lines]
    came_in, went_out = sum(a for a in amounts if a > 0), -sum(a for a in amounts if a < 0)
    assert (first.totals, second.totals) == (Totals(came_in, went_out), None)
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
    assert (found.lines, found.next_cursor, found.totals) == ((), None, Totals(0, 0))


@pytest.mark.parametrize("days", [0, -1, 366, 10**30])
async def test_days_out_of_range(bank: Bank, days: int) -> None:
    outcome = await get_statement(bank, call(), EVERYDAY, days=days, cursor=None)
    assert isinstance(outcome, Refused)
    assert outcome.field == Argument.DAYS


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
    assert outcome.field == Argument.CURSOR


@pytest.mark.parametrize(("account_id", "days"), [(SAVINGS, 30), (EVERYDAY, 31)])
async def test_a_cursor_is_for_one_account_and_period(
    bank: Bank, account_id: str, days: int
) -> None:
    cursor = (await statement(bank)).next_cursor
    outcome = await get_statement(bank, call(), account_id, days=days, cursor=cursor)
    assert isinstance(outcome, Refused)
    assert outcome.field == Argument.CURSOR


async def test_a_forged_cursor_reaches_no_further_than_the_account(bank: Bank) -> None:
    cursor = (await statement(bank)).next_cursor
    assert cursor is not None
    place = base64.urlsafe_b64decode(cursor).decode().split()
    place[2] = str(NOW.date() - timedelta(days=3000))
    found = await statement(bank, cursor=forged(" ".join(place)))
    assert found.lines[-1].description == "Opening balance"
    assert found.lines[-1].counter_account_name is None
