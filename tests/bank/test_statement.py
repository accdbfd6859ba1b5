"""What went through an account: newest first, a page at a time, and nobody else's."""

import base64
import json
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused, Rules
from banking_server.bank.statement import Statement, Totals, get_statement
from banking_server.bank.storage import Bank

from ..kit.words import EVERYDAY
from .support import FOREIGN, NOW, call, outcomes, posted

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def statement(
    bank: Bank,
    days: int = 30,
    cursor: str | None = None,
    *,
    month: str | None = None,
    at: datetime = NOW,
) -> Statement:
    found = await get_statement(
        bank, call("statement", at=at), EVERYDAY, days=days, month=month, cursor=cursor
    )
    assert isinstance(found, Statement), found
    return found


async def test_a_statement_is_newest_first_and_adds_up(bank: Bank, path: Location) -> None:
    await posted(bank, "100.00", memo="Something")
    first = await statement(bank)
    assert (first.account_name, first.currency) == ("Everyday Checking", "USD")
    assert (first.period.first, first.period.last) == (date(2026, 2, 2), NOW.date())
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
    assert lines[-1].posted_at.date() >= first.period.first
    amounts = [line.amount_minor for line in lines]
    came_in, went_out = sum(a for a in amounts if a > 0), -sum(a for a in amounts if a < 0)
    # 100.00 now and 250.00 before went to the customer's own savings; the rent is spent.
    spent = went_out - 35_000
    assert (first.totals, second.totals) == (Totals(came_in, went_out, spent), None)
    assert outcomes(path)[-1] == ("statement", "statement", EVERYDAY)


@pytest.mark.on_each
async def test_entries_with_equal_times_keep_their_order(bank: Bank) -> None:
    for cents in range(1, 56):
        await posted(bank, f"0.{cents:02d}")
    first = await statement(bank, days=1)
    second = await statement(bank, days=1, cursor=first.next_cursor)
    amounts = [-line.amount_minor for line in first.lines + second.lines]
    assert amounts[:55] == list(range(55, 0, -1))


@pytest.mark.on_each
async def test_a_month_is_its_own_entries_and_totals(bank: Bank, path: Location) -> None:
    """Whatever came before and after it; on all its pages, and past midnight."""
    await posted(bank, "100.00")
    first = await statement(bank, month="last")
    assert (first.period.first, first.period.last) == (date(2026, 2, 1), date(2026, 2, 28))
    assert (len(first.lines), first.lines[0].posted_at.date()) == (50, date(2026, 2, 28))
    second = await statement(bank, month="last month", cursor=first.next_cursor)
    lines = first.lines + second.lines
    assert {line.posted_at.month for line in lines} == {2}
    assert (second.totals, second.next_cursor) == (None, None)
    went_out = -sum(line.amount_minor for line in lines if line.amount_minor < 0)
    came_in = sum(line.amount_minor for line in lines if line.amount_minor > 0)
    assert first.totals == Totals(came_in, went_out, went_out - 25_000)
    assert first.lines == (await statement(bank, month="2026-02", days=0)).lines
    # In April, what was last month is the month before the last.
    april = datetime(2026, 4, 1, tzinfo=UTC)
    later = await statement(bank, month="last", cursor=first.next_cursor, at=april)
    assert (later.lines, later.period) == (second.lines, first.period)
    assert (await statement(bank, month="last", at=april)).lines[0].amount_minor == -10_000
    assert (await statement(bank, month="this")).lines[0].amount_minor == -10_000


async def test_spending_is_not_summed_over_too_many_entries(bank: Bank) -> None:
    bank.rules = Rules(max_entries_for_spending_total=50)
    totals = (await statement(bank, month="last")).totals
    assert totals is not None
    assert totals.debits_minor > 100_000
    assert totals.spent_minor is None


def forged(*place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


@pytest.mark.on_each
async def test_an_invalid_cursor_is_refused(bank: Bank) -> None:
    for cursor in (
        *("", "\ud800", "A" * 1_000_000, forged(), base64.b64encode(b"\xff").decode()),
        forged(EVERYDAY, "30", "2026-02-02", f"{NOW}", 10**20),
        forged(EVERYDAY, "30", "2026-13-02", f"{NOW}", 3),
        forged(EVERYDAY, "30", "2026-02-02", "0001-01-01T00:00+14:00", 3),
        forged(EVERYDAY, "30", "2026-02-02", "2026-03-04T10:00", 3),
        forged(EVERYDAY, "last", "9999-12-01", f"{NOW}", 3),
        forged(EVERYDAY, "30", "2026-02-02", "\ud800", 3),
        forged(FOREIGN, "30", "2026-02-02", f"{NOW}", 3),
        (await statement(bank, days=31)).next_cursor,
        (await statement(bank, month="last")).next_cursor,
    ):
        outcome = await get_statement(bank, call(), EVERYDAY, days=30, cursor=cursor)
        assert isinstance(outcome, Refused)
        assert outcome.field == Argument.CURSOR


async def test_a_forged_cursor_reaches_no_further_than_the_account(bank: Bank) -> None:
    cursor = (await statement(bank)).next_cursor
    assert cursor is not None
    place = json.loads(base64.urlsafe_b64decode(cursor))
    place[2] = str(NOW.date() - timedelta(days=3000))
    found = await statement(bank, cursor=forged(*place))
    assert found.lines[-1].description == "Opening balance"
    assert found.lines[-1].counter_account_name is None
