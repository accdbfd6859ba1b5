"""What the bank lists for customers and for its desks, and what can still be done about it."""

from datetime import datetime

import pytest

from banking_server.bank.approvals import decide_approval, list_open_approvals, request_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import cancel_transfer
from banking_server.bank.transfers.records import list_codes

from ..kit.words import EVERYDAY, SAVINGS
from .support import CODE_KEY, DAY, MINUTE, NOW, call, confirm, outcomes, prepared

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


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
