"""Confirming and cancelling: what the model of `test_state_machine` does not look at.

That is who may, what was declined, what is recorded and said, and many calls at once.
"""

import asyncio
from dataclasses import replace

import pytest

from banking_server.bank.accounts import Balance, get_balance
from banking_server.bank.approvals import decide_approval, request_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import (
    AccountLocked,
    ApprovalRefused,
    Cancelled,
    Declined,
    Expired,
    Posted,
    Scheduled,
    TransferFailed,
    Voided,
    VoidedForCodes,
    WrongCode,
    cancel_transfer,
    decline_transfer,
    settle,
)

from ..kit.words import EVERYDAY, SAVINGS, wrong
from .support import (
    BAD_IDS,
    DAY,
    MINUTE,
    NOW,
    call,
    check_books,
    confirm,
    outcomes,
    prepared,
    set_flag,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def balances(bank: Bank, account_id: str) -> tuple[int, int]:
    balance = await get_balance(bank, call("balance"), account_id)
    assert isinstance(balance, Balance)
    return balance.posted_minor, balance.available_minor


async def cancel(bank: Bank, transfer_id: str, *, customer: str = "CUST001", at=NOW) -> object:  # type: ignore[no-untyped-def]
    return await cancel_transfer(bank, call("cancel", at=at, customer=customer), transfer_id)


@pytest.mark.parametrize("by_code", [True, False])
async def test_a_yes_or_the_code_posts(bank: Bank, path: Location, by_code: bool) -> None:
    outcome = await prepared(bank, memo="Saving")
    transfer_id = outcome.transfer.transfer_id
    later = NOW + MINUTE
    code = outcome.code if by_code else None
    receipt = await confirm(bank, transfer_id, agreed=not by_code, code=code, at=later)
    assert isinstance(receipt, Posted)
    assert (receipt.transfer.status, receipt.transfer.posted_at) == ("posted", later)
    assert receipt.compliance_rule is None
    assert await balances(bank, EVERYDAY) == (175_040, 175_040)
    assert await balances(bank, SAVINGS) == (2_510_000, 2_510_000)
    assert ("confirm", "posted", transfer_id) in outcomes(path)
    # Neither a wrong code nor a lock changes what a receipt says.
    set_flag(path, EVERYDAY, "is_locked", True)
    assert await confirm(bank, transfer_id, code=wrong(outcome.code), at=NOW + DAY) == receipt
    check_books(path, later)


@pytest.mark.on_each
async def test_twenty_at_once_post_once(bank: Bank, path: Location) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    receipts = await asyncio.gather(
        *(
            confirm(
                bank, transfer_id, agreed=n % 2 == 0, code=outcome.code, at=NOW + n * MINUTE / 9
            )
            for n in range(20)
        )
    )
    assert isinstance(receipts[0], Posted)
    assert receipts == [receipts[0]] * 20
    assert sql(path, "SELECT count(*) FROM posting WHERE transfer_id = ?", transfer_id) == [(1,)]
    assert await balances(bank, EVERYDAY) == (175_040, 175_040)
    check_books(path, NOW)


@pytest.mark.on_each
async def test_a_yes_to_a_question_that_was_declined_since(bank: Bank, path: Location) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    declined = await decline_transfer(bank, call("confirm"), transfer_id)
    late = await confirm(bank, transfer_id)
    assert declined == late == Declined(replace(outcome.transfer, declines=1))
    assert [o for _, o, _ in outcomes(path)][1:] == ["declined", "declined"]
    # The code is another act.
    assert isinstance(await confirm(bank, transfer_id, agreed=False, code=outcome.code), Posted)
    assert isinstance(
        await decline_transfer(bank, call("confirm", customer="CUST002"), transfer_id), NotFound
    )


async def test_a_no_that_comes_late_says_what_became_of_the_transfer(
    bank: Bank, path: Location
) -> None:
    made, cancelled, forgotten = [
        (await prepared(bank, amount)).transfer.transfer_id for amount in ("1", "2", "3")
    ]
    receipt = await confirm(bank, made)
    await cancel(bank, cancelled)
    assert await decline_transfer(bank, call("confirm"), made) == receipt
    assert isinstance(await decline_transfer(bank, call("confirm"), cancelled), Voided)
    assert isinstance(
        await decline_transfer(bank, call("confirm", at=NOW + DAY), forgotten), Expired
    )
    assert sql(path, "SELECT sum(declines) FROM transfer") == [(0,)]


async def test_five_wrong_codes_void_even_with_a_yes(bank: Bank, path: Location) -> None:
    outcome, other = await prepared(bank), await prepared(bank, "1.00")
    transfer_id = outcome.transfer.transfer_id
    # Another transfer's code is wrong, and so is any text.
    for left, code in ((4, other.code), (3, ""), (2, "\ud800"), (1, "1" * 1_000_000)):
        tried = await confirm(bank, transfer_id, code=code)
        assert isinstance(tried, WrongCode)
        assert tried.attempts_left == left
        assert tried.transfer.status == "pending"
    last = await confirm(bank, transfer_id, code="\x00")
    assert isinstance(last, VoidedForCodes)
    assert last.transfer.reason == "too many wrong confirmation codes"
    after = await confirm(bank, transfer_id, code=outcome.code)
    assert after == Voided(last.transfer)
    assert [o for _, o, _ in outcomes(path)][2:] == [
        *["wrong_code"] * 4,
        "voided_for_codes",
        "voided",
    ]


async def test_somebody_elses_and_unknown_transfers_are_the_same(bank: Bank) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    expected = NotFound(Argument.TRANSFER_ID, transfer_id)
    for code in (outcome.code, wrong(outcome.code), None):
        assert await confirm(bank, transfer_id, code=code, customer="CUST002") == expected
    assert await cancel(bank, transfer_id, customer="CUST002") == expected
    first_wrong = await confirm(bank, transfer_id, code=wrong(outcome.code))
    assert first_wrong.attempts_left == 4
    for bad in BAD_IDS:
        expected = NotFound(Argument.TRANSFER_ID, excerpt(bad))
        assert await confirm(bank, bad) == expected
        assert await cancel(bank, bad) == expected


async def test_what_failed_when_it_was_due_stays_failed(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank, on="2026-03-05")).transfer.transfer_id
    assert isinstance(await confirm(bank, transfer_id), Scheduled)
    set_flag(path, EVERYDAY, "is_locked", True)
    await settle(bank, as_of=(NOW + DAY).date(), now=NOW + DAY)
    failed = await confirm(bank, transfer_id)
    assert isinstance(failed, TransferFailed)
    assert failed.transfer.reason == "Everyday Checking (acc_everyday_001) is locked."
    assert isinstance(await cancel(bank, transfer_id), Refused)


async def test_a_lock_comes_before_approval_and_approval_before_the_code(
    bank: Bank, path: Location
) -> None:
    outcome = await prepared(bank, "10000.01", source=SAVINGS, target=EVERYDAY)
    transfer_id, code = outcome.transfer.transfer_id, wrong(outcome.code)
    assert not (await confirm(bank, transfer_id, code=code)).requested
    asked = await request_approval(bank, call(), transfer_id, reason="A car")
    assert (await confirm(bank, transfer_id, code=code)).requested
    set_flag(path, SAVINGS, "is_locked", True)
    assert isinstance(await confirm(bank, transfer_id, code=code), AccountLocked)
    approval_id = asked.approval.approval_id  # type: ignore[union-attr]
    await decide_approval(bank, approval_id, granted=False, manager="Mo", now=NOW)
    assert isinstance(await confirm(bank, transfer_id, code=code), ApprovalRefused)
    assert sql(path, "SELECT wrong_codes FROM transfer") == [(0,)]


# --- cancelling


@pytest.mark.parametrize("on", [None, "2026-03-05"])
async def test_pending_and_scheduled_can_be_cancelled(
    bank: Bank, path: Location, on: str | None
) -> None:
    transfer_id = (await prepared(bank, on=on)).transfer.transfer_id
    if on:
        await confirm(bank, transfer_id)
    set_flag(path, EVERYDAY, "is_locked", True)
    outcome = await cancel(bank, transfer_id)
    assert isinstance(outcome, Cancelled)
    assert outcome.transfer.reason == "cancelled by the customer"
    assert await cancel(bank, transfer_id, at=NOW + DAY) == outcome
    assert await balances(bank, EVERYDAY) == (185_040, 185_040)
    assert ("cancel", "cancelled", transfer_id) in outcomes(path)
