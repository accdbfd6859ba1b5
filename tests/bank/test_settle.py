"""Settling: what is due is posted or fails with the reason; what is overdue expires."""

import asyncio
from datetime import date

import pytest

from banking_server.bank.location import Location
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.outcomes import Scheduled, TransferView
from banking_server.bank.transfers.settle import settle

from .support import (
    DAY,
    NOW,
    check_books,
    confirm,
    open_bank,
    outcomes,
    prepared,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

TOMORROW = NOW + DAY


async def scheduled(bank: Bank, amount: str = "100.00", on: str = "2026-03-05", **more: str) -> str:
    transfer_id = (await prepared(bank, amount, on=on, **more)).transfer.transfer_id  # type: ignore[arg-type]
    assert isinstance(await confirm(bank, transfer_id), Scheduled)
    return transfer_id


async def settle_tomorrow(bank: Bank) -> list[TransferView]:
    return await settle(bank, as_of=TOMORROW.date(), now=TOMORROW)


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
