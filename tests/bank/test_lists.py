"""What the bank lists for customers and for its desks, and what can still be done about it."""

from datetime import datetime

import pytest

from banking_server.bank.approvals import decide_approval, list_open_approvals, request_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import cancel_transfer

from ..kit.words import EVERYDAY, SAVINGS
from .support import DAY, MINUTE, NOW, call, outcomes, prepared

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
