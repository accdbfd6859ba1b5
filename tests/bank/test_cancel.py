"""Cancelling: before the money has moved, and as often as one likes."""

import pytest

from banking_server.bank.accounts import Balance, get_balance
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import Cancelled, Voided, cancel_transfer

from ..kit.words import EVERYDAY
from .support import DAY, MINUTE, NOW, call, confirm, outcomes, posted, prepared, set_flag, sql

pytestmark = pytest.mark.anyio


async def balances(bank: Bank, account_id: str) -> tuple[int, int]:
    balance = await get_balance(bank, call("balance"), account_id)
    assert isinstance(balance, Balance)
    return balance.posted_minor, balance.available_minor


async def cancel(bank: Bank, transfer_id: str, *, customer: str = "CUST001", at=NOW) -> object:  # type: ignore[no-untyped-def]
    return await cancel_transfer(bank, call("cancel", at=at, customer=customer), transfer_id)


@pytest.mark.parametrize("on", [None, "2026-03-05"])
async def test_pending_and_scheduled_can_be_cancelled(
    bank: Bank, path: Location, on: str | None
) -> None:
    transfer_id = (await prepared(bank, on=on)).transfer.transfer_id
    if on:
        await confirm(bank, transfer_id)
    outcome = await cancel(bank, transfer_id)
    assert isinstance(outcome, Cancelled)
    assert (outcome.transfer.status, outcome.transfer.reason) == (
        "voided",
        "cancelled by the customer",
    )
    assert await cancel(bank, transfer_id, at=NOW + DAY) == outcome
    assert await balances(bank, EVERYDAY) == (185_040, 185_040)
    assert isinstance(await confirm(bank, transfer_id), Voided)
    assert ("cancel", "cancelled", transfer_id) in outcomes(path)


async def test_a_locked_accounts_transfer_can_be_cancelled(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    set_flag(path, EVERYDAY, "is_locked", True)
    assert isinstance(await cancel(bank, transfer_id), Cancelled)


async def test_what_is_posted_cannot_be_cancelled(bank: Bank, path: Location) -> None:
    receipt = await posted(bank)
    transfer_id = receipt.transfer.transfer_id
    outcome = await cancel(bank, transfer_id)
    assert isinstance(outcome, Refused)
    assert outcome.field == Argument.TRANSFER_ID
    assert outcomes(path)[-1] == ("cancel", "refused", transfer_id)
    assert await confirm(bank, transfer_id) == receipt


async def test_what_has_expired_cannot_be_cancelled(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    outcome = await cancel(bank, transfer_id, at=NOW + 10 * MINUTE)
    assert isinstance(outcome, Refused)
    assert "is expired" in outcome.message
    assert sql(path, "SELECT status FROM transfer") == [("expired",)]
