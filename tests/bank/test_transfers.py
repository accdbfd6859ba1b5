"""Preparing, confirming and settling: what `test_rules` and the model of `test_state_machine` lack.

That is which argument is named first, what a late no is told, in which order is settled, and that a
wrong clock is told of, since its dates stay in the books.
"""

import asyncio
import logging
from datetime import date
from pathlib import Path

import pytest

from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import cancel_transfer, decline_transfer, settle
from banking_server.bank.transfers.outcomes import Expired, Posted, Scheduled, TransferView, Voided
from banking_server.bank.transfers.records import confirmation_code

from .support import (
    DAY,
    MINUTE,
    NOW,
    call,
    check_books,
    confirm,
    open_bank,
    outcomes,
    posted,
    prepare,
    prepared,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_an_expired_transfer_is_replaced_once(bank: Bank, path: Location) -> None:
    expired = (await prepared(bank)).transfer.transfer_id
    later = NOW + DAY
    new = await prepared(bank, expired=expired, at=later)
    assert await prepared(bank, expired=expired, at=later) == new
    transfer_id = new.transfer.transfer_id
    assert isinstance(await confirm(bank, transfer_id, at=later), Posted)
    again = await prepare(bank, expired=expired, at=later)
    assert isinstance(again, Refused)
    assert (again.field, again.subject) == (Argument.EXPIRED_TRANSFER_ID, transfer_id)
    assert sql(path, "SELECT count(*) FROM transfer") == [(2,)]
    # Without it, or with other details, another transfer is meant.
    others = [await prepared(bank, at=later), await prepared(bank, "9", expired=expired, at=later)]
    assert len({new.transfer.transfer_id, *(each.transfer.transfer_id for each in others)}) == 3
    for unknown in ("tr_0", "\x00", "x" * 99):
        outcome = await prepare(bank, "8", expired=unknown, at=later)
        assert outcome == NotFound(Argument.EXPIRED_TRANSFER_ID, excerpt(unknown))


async def test_a_code_depends_on_the_key_and_the_transfer_only() -> None:
    # RFC 4226 truncation over HMAC-SHA256: held still, so that a restart changes no code.
    assert confirmation_code(b"key", "tr_1") == "389794"
    assert confirmation_code(b"key", "tr_2") != confirmation_code(b"key", "tr_1")
    assert confirmation_code(b"other", "tr_1") != confirmation_code(b"key", "tr_1")


async def test_a_late_no_returns_the_status_of_the_transfer(bank: Bank, path: Location) -> None:
    made, cancelled, forgotten = [
        (await prepared(bank, amount)).transfer.transfer_id for amount in ("1", "2", "3")
    ]
    receipt = await confirm(bank, made)
    await cancel_transfer(bank, call("cancel"), cancelled)
    assert await decline_transfer(bank, call("confirm"), made) == receipt
    assert isinstance(await decline_transfer(bank, call("confirm"), cancelled), Voided)
    late = NOW + DAY
    assert isinstance(await cancel_transfer(bank, call("cancel", at=late), forgotten), Refused)
    assert isinstance(await decline_transfer(bank, call("confirm", at=late), forgotten), Expired)
    assert sql(path, "SELECT sum(declines) FROM transfer") == [(0,)]


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
async def test_concurrent_settling_posts_each_transfer_once(bank: Bank, path: Location) -> None:
    due = {await scheduled(bank, f"{n}.00") for n in range(1, 9)}
    other = await open_bank(path)
    runs = await asyncio.gather(
        settle_tomorrow(bank), settle_tomorrow(other), settle_tomorrow(bank)
    )
    await other.close()
    settled = [view.transfer_id for run in runs for view in run]
    assert sorted(settled) == sorted(due)
    check_books(path, TOMORROW)


async def test_a_clock_behind_the_newest_entry_is_logged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bank = await open_bank(path)
    transfer_id = (await prepared(bank, at=NOW + 200 * DAY)).transfer.transfer_id
    await confirm(bank, transfer_id, at=NOW + 200 * DAY + MINUTE)
    assert caplog.messages == []
    await posted(bank)
    assert "The clock says 2026-03-04 10:00:00+00:00, but" in caplog.text
    await bank.close()
