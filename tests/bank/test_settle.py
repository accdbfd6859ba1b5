"""Settling: what is due is posted or fails with the reason; what is overdue expires."""

import asyncio
import sqlite3
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path

import anyio
import pytest

from banking_server.bank.audit import list_events
from banking_server.bank.compliance import ReportRecorded, record_report
from banking_server.bank.location import Location
from banking_server.bank.postgresql import connect
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import Scheduled, TransferView, settle

from ..kit.words import EVERYDAY, PAYEE, SAVINGS
from .records import find_transfer
from .support import (
    DAY,
    MINUTE,
    NOW,
    call,
    check_books,
    confirm,
    open_bank,
    outcomes,
    prepared,
    set_flag,
    sql,
)

pytestmark = pytest.mark.anyio

TOMORROW = NOW + DAY


async def scheduled(bank: Bank, amount: str = "100.00", on: str = "2026-03-05", **more: str) -> str:
    transfer_id = (await prepared(bank, amount, on=on, **more)).transfer.transfer_id  # type: ignore[arg-type]
    assert isinstance(await confirm(bank, transfer_id), Scheduled)
    return transfer_id


async def settle_tomorrow(bank: Bank) -> list[TransferView]:
    return await settle(bank, as_of=TOMORROW.date(), now=TOMORROW)


async def test_what_is_due_is_posted_once(bank: Bank, path: Location) -> None:
    transfer_id = await scheduled(bank)
    assert await settle(bank, as_of=NOW.date(), now=NOW) == []
    (view,) = await settle_tomorrow(bank)
    assert (view.transfer_id, view.status, view.posted_at) == (transfer_id, "posted", TOMORROW)
    assert await settle_tomorrow(bank) == []
    assert await find_transfer(bank, "CUST001", transfer_id, NOW) == view
    event = (await list_events(bank))[-1]
    assert (event.tool, event.outcome, event.subject) == ("settle", "posted", transfer_id)
    assert (event.customer_id, event.at) == ("CUST001", TOMORROW)
    check_books(path, TOMORROW)


async def test_an_earlier_date_can_be_settled_for(bank: Bank) -> None:
    await scheduled(bank, on="2026-03-06")
    assert await settle(bank, as_of=date(2026, 3, 5), now=TOMORROW + 5 * DAY) == []
    (view,) = await settle(bank, as_of=date(2026, 3, 6), now=TOMORROW + 5 * DAY)
    assert view.status == "posted"


async def test_the_oldest_date_is_paid_first(bank: Bank, path: Location) -> None:
    later = await scheduled(bank, "1000.00", on="2026-03-06")
    sooner = await scheduled(bank, "1200.00", on="2026-03-05")
    views = await settle(bank, as_of=date(2026, 3, 6), now=NOW + 2 * DAY)
    assert [(view.transfer_id, view.status) for view in views] == [
        (sooner, "posted"),
        (later, "failed"),
    ]
    assert views[1].reason == (
        "1,000.00 USD is more than the 650.40 USD available in Everyday Checking "
        "(acc_everyday_001)."
    )
    assert outcomes(path)[-1] == ("settle", "failed", later)
    check_books(path, NOW + 2 * DAY)


@pytest.mark.parametrize(
    ("account_id", "flag", "value", "reason"),
    [
        (EVERYDAY, "is_locked", True, "Everyday Checking (acc_everyday_001) is locked."),
        (EVERYDAY, "can_transfer_from", False, "Nothing can be transferred from Everyday"),
        (SAVINGS, "can_transfer_to", False, "Nothing can be transferred to High Yield"),
    ],
)
async def test_what_can_no_longer_be_paid_fails(
    bank: Bank, path: Location, account_id: str, flag: str, value: bool, reason: str
) -> None:
    await scheduled(bank)
    set_flag(path, account_id, flag, value)
    (view,) = await settle_tomorrow(bank)
    assert view.status == "failed"
    assert view.reason is not None
    assert view.reason.startswith(reason)
    set_flag(path, account_id, flag, not value)
    assert await settle_tomorrow(bank) == []
    check_books(path, TOMORROW)


async def test_what_is_reserved_is_not_there_to_settle_with(bank: Bank) -> None:
    await scheduled(bank, "1000.00")
    await prepared(bank, "1000.00", at=TOMORROW)
    (view,) = await settle_tomorrow(bank)
    assert view.status == "failed"


async def test_a_lock_on_the_target_does_not_matter(bank: Bank, path: Location) -> None:
    await scheduled(bank)
    set_flag(path, SAVINGS, "is_locked", True)
    (view,) = await settle_tomorrow(bank)
    assert view.status == "posted"


async def test_overdue_pending_transfers_are_marked_expired(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    at = NOW + 10 * MINUTE
    assert await settle(bank, as_of=at.date(), now=at - MINUTE) == []
    (view,) = await settle(bank, as_of=at.date(), now=at)
    assert (view.transfer_id, view.status) == (transfer_id, "expired")
    assert outcomes(path)[-1] == ("settle", "expired", transfer_id)
    assert await settle(bank, as_of=at.date(), now=at) == []


async def test_a_reportable_posting_is_reported_with_it(bank: Bank, path: Location) -> None:
    transfer_id = await scheduled(bank, "3000.00", source=SAVINGS, target=PAYEE)
    await scheduled(bank, "2999.99", source=SAVINGS, target=PAYEE)
    await settle_tomorrow(bank)
    reports = sql(path, "SELECT transfer_id, rule, customer_id FROM compliance_report")
    assert reports == [(transfer_id, "external-payee-3000", "CUST001")]
    again = await record_report(bank, call(), transfer_id, "external-payee-3000")
    assert isinstance(again, ReportRecorded)
    assert sql(path, "SELECT report_id FROM compliance_report") == [(again.report.report_id,)]


async def test_several_settling_at_once_post_each_once(bank: Bank, path: Location) -> None:
    due = {await scheduled(bank, f"{n}.00") for n in range(1, 9)}
    other = await open_bank(path)
    runs = await asyncio.gather(
        settle_tomorrow(bank), settle_tomorrow(other), settle_tomorrow(bank)
    )
    await other.close()
    settled = [view.transfer_id for run in runs for view in run]
    assert sorted(settled) == sorted(due)
    check_books(path, TOMORROW)


async def test_with_nothing_to_do_nothing_is_written(bank: Bank, path: Location) -> None:
    with ExitStack() as until_the_end:
        # A write would have to wait for this one.
        if isinstance(path, Path):
            file = until_the_end.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            file.execute("BEGIN IMMEDIATE")
        else:
            other = until_the_end.enter_context(connect(path))
            until_the_end.enter_context(other.transaction())
            other.execute("LOCK TABLE customer, account, transfer, audit_event IN SHARE MODE")
        with anyio.fail_after(2):
            assert await settle_tomorrow(bank) == []
