"""A manager's approval: what is shown of it, said of it and recorded."""

import pytest

from banking_server.bank.approvals import (
    ApprovalGranted,
    ApprovalRequested,
    decide_approval,
    list_open_approvals,
    request_approval,
)
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, Refused
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.cancel import cancel_transfer

from ..kit.words import EVERYDAY, SAVINGS
from .support import DAY, HOUR, NOW, call, outcomes, prepared

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def over(bank: Bank, amount: str = "10000.01") -> str:
    return (await prepared(bank, amount, source=SAVINGS, target=EVERYDAY)).transfer.transfer_id


async def requested(bank: Bank, transfer_id: str) -> ApprovalRequested:
    outcome = await request_approval(bank, call("request"), transfer_id, reason="A car")
    assert isinstance(outcome, ApprovalRequested), outcome
    return outcome


async def decide(
    bank: Bank, approval_id: str, granted: bool, manager: str = "Mo", at: object = NOW
) -> object:
    return await decide_approval(bank, approval_id, granted=granted, manager=manager, now=at)  # type: ignore[arg-type]


async def test_a_decision_is_taken_once(bank: Bank, path: Location) -> None:
    transfer_id = await over(bank)
    approval_id = (await requested(bank, transfer_id)).approval.approval_id
    view = await decide(bank, approval_id, True)
    assert await decide(bank, approval_id, True, "Somebody else", NOW + HOUR) == view
    again = await request_approval(bank, call(), transfer_id, reason="again")
    assert isinstance(again, ApprovalGranted)
    other_way = await decide(bank, approval_id, False)
    assert isinstance(other_way, Refused)
    assert "was granted by Mo" in other_way.message
    assert [event for event in outcomes(path) if event[0].startswith("approvals")] == [
        ("approvals grant", "granted", approval_id),
        ("approvals grant", "granted", approval_id),
        ("approvals refuse", "not_decided", approval_id),
    ]


async def test_the_desk_lists_what_can_still_be_decided(bank: Bank) -> None:
    expired, cancelled = await over(bank, "10001.00"), await over(bank, "10002.00")
    for transfer_id in (expired, cancelled):
        await requested(bank, transfer_id)
    open_ones = await list_open_approvals(bank, NOW)
    assert {each.transfer.transfer_id for each in open_ones} == {expired, cancelled}
    await cancel_transfer(bank, call(), cancelled)
    (left,) = await list_open_approvals(bank, NOW)
    assert left.transfer.transfer_id == expired
    assert await list_open_approvals(bank, NOW + DAY) == []
    for each in open_ones:
        outcome = await decide(bank, each.approval.approval_id, True, at=NOW + DAY)
        assert isinstance(outcome, Refused)
        assert outcome.field == Argument.APPROVAL_ID
