"""Confirming: the customer's own act, once."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from banking_server.bank.accounts import Balance, get_balance
from banking_server.bank.approvals import decide_approval, request_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transfers import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    CodeMissing,
    Declined,
    Expired,
    OverThreshold,
    Posted,
    Prepared,
    Scheduled,
    TransferFailed,
    Voided,
    VoidedForCodes,
    WrongCode,
    cancel_transfer,
    decline_transfer,
    settle,
)

from ..kit.words import EVERYDAY, PAYEE, SAVINGS, wrong
from .records import find_transfer
from .support import (
    BAD_IDS,
    DAY,
    MINUTE,
    NOW,
    call,
    check_books,
    confirm,
    outcomes,
    posted,
    prepare,
    prepared,
    set_flag,
    sql,
)

pytestmark = pytest.mark.anyio


async def balances(bank: Bank, account_id: str) -> tuple[int, int]:
    balance = await get_balance(bank, call("balance"), account_id)
    assert isinstance(balance, Balance)
    return balance.posted_minor, balance.available_minor


async def cancel(bank: Bank, transfer_id: str, *, customer: str = "CUST001", at=NOW) -> object:  # type: ignore[no-untyped-def]
    return await cancel_transfer(bank, call("cancel", at=at, customer=customer), transfer_id)


CODES = ["none", "right", "wrong"]


def pick(given: str, code: str) -> str | None:
    """Return what is given as the code: nothing, the right one or a wrong one."""
    return {"none": None, "right": code, "wrong": wrong(code)}[given]


async def status(bank: Bank, transfer_id: str) -> str:
    view = await find_transfer(bank, "CUST001", transfer_id, NOW)
    assert view is not None
    return view.status


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
    check_books(path, later)


async def test_a_yes_and_the_right_code_post(bank: Bank) -> None:
    outcome = await prepared(bank)
    receipt = await confirm(bank, outcome.transfer.transfer_id, code=outcome.code)
    assert isinstance(receipt, Posted)


@pytest.mark.parametrize(
    ("agreed", "given"), [(True, "none"), (False, "right"), (False, "none"), (True, "wrong")]
)
@pytest.mark.parametrize("at", [NOW, NOW + DAY])
async def test_confirming_again_gives_the_same_receipt(
    bank: Bank, path: Location, agreed: bool, given: str, at: datetime
) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    receipt = await confirm(bank, transfer_id)
    set_flag(path, EVERYDAY, "is_locked", True)
    again = await confirm(bank, transfer_id, agreed=agreed, code=pick(given, outcome.code), at=at)
    assert again == receipt
    assert sql(path, "SELECT count(*) FROM posting WHERE transfer_id IS NOT NULL") == [(1,)]
    check_books(path, NOW)


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


async def test_neither_a_yes_nor_a_code(bank: Bank) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    for _ in range(6):  # That is no wrong code, and does not count as one.
        outcome = await confirm(bank, transfer_id, agreed=False)
        assert isinstance(outcome, CodeMissing)
        assert outcome.transfer.status == "pending"


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
    await cancel_transfer(bank, call("cancel"), cancelled)
    assert await decline_transfer(bank, call("confirm"), made) == receipt
    assert isinstance(await decline_transfer(bank, call("confirm"), cancelled), Voided)
    assert isinstance(
        await decline_transfer(bank, call("confirm", at=NOW + DAY), forgotten), Expired
    )
    assert sql(path, "SELECT sum(declines) FROM transfer") == [(0,)]
    check_books(path, NOW + DAY)


@pytest.mark.parametrize("agreed", [True, False])
async def test_five_wrong_codes_void_even_with_a_yes(
    bank: Bank, path: Location, agreed: bool
) -> None:
    outcome = await prepared(bank)
    transfer_id, code = outcome.transfer.transfer_id, wrong(outcome.code)
    for left in (4, 3, 2, 1):
        tried = await confirm(bank, transfer_id, agreed=agreed, code=code)
        assert isinstance(tried, WrongCode)
        assert tried.attempts_left == left
        assert tried.transfer.status == "pending"
    last = await confirm(bank, transfer_id, agreed=agreed, code=code)
    assert isinstance(last, VoidedForCodes)
    assert (last.transfer.status, last.transfer.reason) == (
        "voided",
        "too many wrong confirmation codes",
    )
    after = await confirm(bank, transfer_id, code=outcome.code)
    assert isinstance(after, Voided)
    assert after.transfer == last.transfer
    assert await balances(bank, EVERYDAY) == (185_040, 185_040)
    assert [o for _, o, _ in outcomes(path)][1:7] == [
        *["wrong_code"] * 4,
        "voided_for_codes",
        "voided",
    ]
    assert isinstance(await cancel(bank, transfer_id), Refused)


@pytest.mark.parametrize("code", ["", " ", "\ud800", "é", "\x00", "1" * 1_000_000, "１２３４５６"])  # noqa: RUF001
async def test_a_code_may_be_any_text(bank: Bank, code: str) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    assert isinstance(await confirm(bank, transfer_id, code=code), WrongCode)


async def test_four_wrong_codes_and_the_right_one(bank: Bank) -> None:
    outcome = await prepared(bank)
    for _ in range(4):
        await confirm(bank, outcome.transfer.transfer_id, agreed=False, code=wrong(outcome.code))
    receipt = await confirm(bank, outcome.transfer.transfer_id, agreed=False, code=outcome.code)
    assert isinstance(receipt, Posted)


async def test_another_transfers_code_is_wrong(bank: Bank) -> None:
    one, two = await prepared(bank, "1.00"), await prepared(bank, "2.00")
    assert one.code != two.code
    outcome = await confirm(bank, two.transfer.transfer_id, agreed=False, code=one.code)
    assert isinstance(outcome, WrongCode)


@pytest.mark.parametrize("transfer_id", BAD_IDS)
async def test_unknown_transfers(bank: Bank, transfer_id: str) -> None:
    expected = NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
    assert await confirm(bank, transfer_id) == expected
    assert await cancel(bank, transfer_id) == expected


async def test_somebody_elses_transfer_is_unknown_and_untouched(bank: Bank) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    expected = NotFound(Argument.TRANSFER_ID, transfer_id)
    for code in (outcome.code, wrong(outcome.code), None):
        assert await confirm(bank, transfer_id, code=code, customer="CUST002") == expected
    assert await cancel(bank, transfer_id, customer="CUST002") == expected
    again = await prepare(bank)
    assert isinstance(again, Prepared)
    first_wrong = await confirm(bank, transfer_id, code=wrong(outcome.code))
    assert first_wrong.attempts_left == 4


@pytest.mark.parametrize("given", CODES)
async def test_too_late(bank: Bank, path: Location, given: str) -> None:
    outcome = await prepared(bank, target=PAYEE, memo="m")
    transfer_id = outcome.transfer.transfer_id
    late = NOW + 10 * MINUTE
    expired = await confirm(bank, transfer_id, code=pick(given, outcome.code), at=late)
    assert isinstance(expired, Expired)
    assert expired.transfer.status == "expired"
    # What is marked expired stays so, whatever a clock says.
    assert isinstance(await confirm(bank, transfer_id), Expired)
    assert isinstance(await cancel(bank, transfer_id), Refused)
    assert sql(path, "SELECT status, wrong_codes FROM transfer") == [("expired", 0)]
    check_books(path, late)


async def test_just_in_time(bank: Bank) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    in_time = NOW + 10 * MINUTE - MINUTE / 60_000_000
    assert isinstance(await confirm(bank, transfer_id, at=in_time), Posted)


@pytest.mark.parametrize("given", CODES)
async def test_locked_meanwhile(bank: Bank, path: Location, given: str) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    set_flag(path, EVERYDAY, "is_locked", True)
    locked = await confirm(bank, transfer_id, code=pick(given, outcome.code))
    assert isinstance(locked, AccountLocked)
    assert locked.account.account_id == EVERYDAY
    assert sql(path, "SELECT status, wrong_codes FROM transfer") == [("pending", 0)]
    set_flag(path, EVERYDAY, "is_locked", False)
    assert isinstance(await confirm(bank, transfer_id), Posted)


@pytest.mark.parametrize(
    ("account_id", "flag", "field"),
    [
        (EVERYDAY, "can_transfer_from", Argument.FROM_ACCOUNT_ID),
        (SAVINGS, "can_transfer_to", Argument.TO_ACCOUNT_ID),
    ],
)
async def test_flags_are_checked_again(
    bank: Bank, path: Location, account_id: str, flag: str, field: str
) -> None:
    transfer_id = (await prepared(bank)).transfer.transfer_id
    set_flag(path, account_id, flag, False)
    outcome = await confirm(bank, transfer_id)
    assert isinstance(outcome, Refused)
    assert outcome.field == field
    assert outcomes(path)[-1] == ("confirm", "refused", transfer_id)
    assert await status(bank, transfer_id) == "pending"
    set_flag(path, account_id, flag, True)
    assert isinstance(await confirm(bank, transfer_id), Posted)


async def test_funds_are_checked_again(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank, "1850.40")).transfer.transfer_id
    # Something this program does not do: reserve what is reserved already.
    sql(
        path,
        """INSERT INTO transfer SELECT 'tr_other', customer_id, from_account_id, to_account_id, 1,
           currency, scheduled_date, memo, status, reason, approval, wrong_codes, created_at,
           expires_at, posted_at, declines FROM transfer""",
    )
    sql(path, "UPDATE account SET debits_pending_minor = 185041 WHERE account_id = ?", EVERYDAY)
    outcome = await confirm(bank, transfer_id)
    assert isinstance(outcome, Refused)
    assert outcome.field == "amount"
    assert await status(bank, transfer_id) == "pending"


async def test_the_last_cent_can_be_confirmed(bank: Bank, path: Location) -> None:
    await posted(bank, "1850.40")
    assert await balances(bank, EVERYDAY) == (0, 0)
    check_books(path, NOW)


# --- dated in the future


async def test_a_future_date_is_scheduled_and_reserves_nothing(bank: Bank, path: Location) -> None:
    outcome = await prepared(bank, "1000.00", on="2026-03-05")
    transfer_id = outcome.transfer.transfer_id
    assert await balances(bank, EVERYDAY) == (185_040, 85_040)
    first = await confirm(bank, transfer_id)
    assert isinstance(first, Scheduled)
    assert (first.transfer.status, first.transfer.posted_at) == ("scheduled", None)
    assert await balances(bank, EVERYDAY) == (185_040, 185_040)
    for at in (NOW + MINUTE, NOW + 3 * DAY):
        assert await confirm(bank, transfer_id, at=at) == first
    assert sql(path, "SELECT count(*) FROM posting WHERE transfer_id IS NOT NULL") == [(0,)]


async def test_a_date_that_has_come_by_the_confirmation_posts(bank: Bank) -> None:
    late_evening = NOW.replace(hour=23, minute=55)
    outcome = await prepared(bank, on="2026-03-05", at=late_evening)
    receipt = await confirm(bank, outcome.transfer.transfer_id, at=late_evening + 6 * MINUTE)
    assert isinstance(receipt, Posted)


async def test_what_failed_stays_failed(bank: Bank, path: Location) -> None:
    transfer_id = (await prepared(bank, on="2026-03-05")).transfer.transfer_id
    await confirm(bank, transfer_id)
    set_flag(path, EVERYDAY, "is_locked", True)
    await settle(bank, as_of=(NOW + DAY).date(), now=NOW + DAY)
    set_flag(path, EVERYDAY, "is_locked", False)
    failed = await confirm(bank, transfer_id)
    assert isinstance(failed, TransferFailed)
    assert failed.transfer.reason == "Everyday Checking (acc_everyday_001) is locked."
    assert isinstance(await cancel(bank, transfer_id), Refused)


# --- above the threshold


async def test_approval_comes_before_the_code(bank: Bank, path: Location) -> None:
    outcome = await prepare(bank, "10000.01", source=SAVINGS, target=EVERYDAY)
    assert isinstance(outcome, OverThreshold)
    transfer_id = outcome.transfer.transfer_id
    for code in (None, outcome.code, wrong(outcome.code)):
        waiting = await confirm(bank, transfer_id, code=code)
        assert isinstance(waiting, ApprovalOutstanding)
        assert not waiting.requested
    requested = await request_approval(bank, call(), transfer_id, reason="A car")
    waiting = await confirm(bank, transfer_id)
    assert isinstance(waiting, ApprovalOutstanding)
    assert waiting.requested
    assert sql(path, "SELECT wrong_codes FROM transfer") == [(0,)]
    approval_id = requested.approval.approval_id  # type: ignore[union-attr]
    await decide_approval(bank, approval_id, granted=True, manager="Mo", now=NOW)
    assert isinstance(await confirm(bank, transfer_id, agreed=False), CodeMissing)
    assert isinstance(await confirm(bank, transfer_id, agreed=False, code=outcome.code), Posted)


async def test_a_refusal_voids(bank: Bank) -> None:
    transfer_id = (
        await prepared(bank, "10000.01", source=SAVINGS, target=EVERYDAY)
    ).transfer.transfer_id
    requested = await request_approval(bank, call(), transfer_id, reason="A car")
    approval_id = requested.approval.approval_id  # type: ignore[union-attr]
    await decide_approval(bank, approval_id, granted=False, manager="Mo", now=NOW)
    outcome = await confirm(bank, transfer_id)
    assert isinstance(outcome, ApprovalRefused)
    assert (outcome.transfer.status, outcome.transfer.approval) == ("voided", "refused")
    assert outcome.transfer.reason == "refused by a manager"


async def test_after_a_day_it_is_too_late(bank: Bank) -> None:
    transfer_id = (
        await prepared(bank, "10000.01", source=SAVINGS, target=EVERYDAY)
    ).transfer.transfer_id
    assert isinstance(await confirm(bank, transfer_id, at=NOW + DAY), Expired)


# --- compliance


@pytest.mark.parametrize(
    ("amount", "target", "rule"),
    [
        ("3000.00", PAYEE, "external-payee-3000"),
        ("2999.99", PAYEE, None),
        ("3000.00", EVERYDAY, None),
    ],
)
async def test_the_receipt_names_the_compliance_rule_every_time(
    bank: Bank, amount: str, target: str, rule: str | None
) -> None:
    receipt = await posted(bank, amount, source=SAVINGS, target=target)
    assert receipt.compliance_rule == rule
    assert await confirm(bank, receipt.transfer.transfer_id) == receipt
