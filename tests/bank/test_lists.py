"""What the bank lists for customers and for its desks, and what can still be done about it."""

from datetime import datetime
from decimal import Decimal

import pytest

from banking_server.bank.accounts import list_accounts
from banking_server.bank.approvals import decide_approval, list_open_approvals, request_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import cancel_transfer
from banking_server.bank.transfers.outcomes import Prepared
from banking_server.bank.transfers.prepare import Wish, find_needed_account
from banking_server.bank.transfers.records import list_codes

from ..kit.words import DEPOSIT, EURO, EVERYDAY, LOCKED, PAYEE, RETIREMENT, SAVINGS
from .support import (
    BAD_IDS,
    CODE_KEY,
    DAY,
    MINUTE,
    NOW,
    call,
    confirm,
    outcomes,
    prepare,
    prepared,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_the_account_choices_are_those_that_prepare_accepts(
    bank: Bank, path: Location
) -> None:
    async def choices(source: str | None) -> list[str] | None:
        wish = Wish(Decimal("0.01"), None, None, source)
        needed = await find_needed_account(bank, call(), wish)
        return None if needed is None else [each.account_id for each in needed.accounts]

    assert await choices(None) == [LOCKED, EURO, EVERYDAY, SAVINGS]
    found = {each: await choices(each) for each in (EURO, LOCKED, DEPOSIT, PAYEE, *BAD_IDS)}
    assert found == {**dict.fromkeys(found), EURO: []}
    targets = await choices(EVERYDAY)
    assert targets == [LOCKED, PAYEE, RETIREMENT, SAVINGS]
    assert outcomes(path) == []  # These are questions of a form, and no calls.
    for account in await list_accounts(bank, call()):
        outcome = await prepare(bank, "0.01", source=EVERYDAY, target=account.account_id)
        assert isinstance(outcome, Prepared) == (account.account_id in targets)


async def test_only_undecided_approvals_of_pending_transfers_are_listed(
    bank: Bank, path: Location
) -> None:
    asked = {}
    for amount in ("10001.00", "10002.00", "10003.00"):
        over = await prepared(bank, amount, source=SAVINGS, target=EVERYDAY)
        transfer_id = over.transfer.transfer_id
        outcome = await request_approval(bank, call(), transfer_id, reason="A car")
        asked[transfer_id] = outcome.approval.approval_id  # type: ignore[union-attr]
        if len(asked) == 2:
            await cancel_transfer(bank, call(), transfer_id)
    expires, cancelled, granted = asked
    waiting = await list_open_approvals(bank, NOW)
    assert {each.transfer.transfer_id for each in waiting} == {expires, granted}
    assert await list_open_approvals(bank, NOW + DAY) == []

    async def decide(transfer_id: str, *, at: datetime = NOW, manager: str = "Mo") -> object:
        request = asked[transfer_id]
        return await decide_approval(bank, request, granted=True, manager=manager, now=at)

    for late in (await decide(expires, at=NOW + DAY), await decide(cancelled)):
        assert isinstance(late, Refused)
        assert late.field == Argument.APPROVAL_ID
    once = await decide(granted)
    assert await decide(granted, at=NOW + MINUTE, manager="Somebody else") == once
    assert [event[1] for event in outcomes(path)[-4:]] == [
        *("not_decided", "not_decided", "granted", "granted")
    ]


async def test_valid_codes_are_listed(bank: Bank) -> None:
    one, used = await prepared(bank, "1.00"), await prepared(bank, "2.00")
    await confirm(bank, used.transfer.transfer_id)
    large = await prepared(bank, "12000", source=SAVINGS, target=EVERYDAY)
    listed = {
        each.transfer.transfer_id: (each.code, each.needs_manager)
        for each in await list_codes(bank, CODE_KEY, NOW)
    }
    assert listed == {
        one.transfer.transfer_id: (one.code, False),
        large.transfer.transfer_id: (large.code, True),
    }
    # What a manager has to approve may wait for longer.
    (left,) = await list_codes(bank, CODE_KEY, NOW + 10 * MINUTE, "CUST001")
    assert left.transfer.transfer_id == large.transfer.transfer_id
    assert await list_codes(bank, CODE_KEY, NOW, "CUST002") == []
