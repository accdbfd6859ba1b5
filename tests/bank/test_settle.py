"""Settling: what is due is posted or fails with the reason; what is overdue expires."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import anyio
import pytest

from banking_server.bank.audit import list_events
from banking_server.bank.location import Location
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import Scheduled, TransferView, settle

from ..kit.words import PAYEE, SAVINGS
from .records import find_transfer
from .support import (
    DAY,
    NOW,
    check_books,
    confirm,
    open_bank,
    outcomes,
    prepared,
    set_flag,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

TOMORROW = NOW + DAY


async def scheduled(bank: Bank, amount: str = "100.00", on: str = "2026-03-05", **more: str) -> str:
    transfer_id = (await prepared(bank, amount, on=on, **more)).transfer.transfer_id  # type: ignore[arg-type]
    assert isinstance(await confirm(bank, transfer_id), Scheduled)
    return transfer_id


async def settle_tomorrow(bank: Bank) -> list[TransferView]:
    return await settle(bank, as_of=TOMORROW.date(), now=TOMORROW)


async def test_what_is_due_is_posted_once(bank: Bank, path: Location) -> None:
    transfer_id = await scheduled(bank)
    set_flag(path, SAVINGS, "is_locked", True)  # Its target, which does not matter.
    assert await settle(bank, as_of=NOW.date(), now=NOW) == []
    (view,) = await settle_tomorrow(bank)
    assert (view.transfer_id, view.status, view.posted_at) == (transfer_id, "posted", TOMORROW)
    assert await settle_tomorrow(bank) == []
    assert await find_transfer(bank, "CUST001", transfer_id, NOW) == view
    event = (await list_events(bank))[-1]
    assert (event.tool, event.outcome, event.subject) == ("settle", "posted", transfer_id)
    assert (event.customer_id, event.at) == ("CUST001", TOMORROW)


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


async def test_a_reportable_posting_is_reported_with_it(bank: Bank, path: Location) -> None:
    transfer_id = await scheduled(bank, "3000.00", source=SAVINGS, target=PAYEE)
    await scheduled(bank, "2999.99", source=SAVINGS, target=PAYEE)
    await settle_tomorrow(bank)
    reports = sql(path, "SELECT transfer_id, rule, customer_id FROM compliance_report")
    assert reports == [(transfer_id, "external-payee-3000", "CUST001")]


@pytest.mark.on_each
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


async def test_with_nothing_to_do_nothing_is_written(bank: Bank, path: Path) -> None:
    # A write would have to wait for this one.
    with closing(sqlite3.connect(path, isolation_level=None)) as other, anyio.fail_after(2):
        other.execute("BEGIN IMMEDIATE")
        assert await settle_tomorrow(bank) == []
