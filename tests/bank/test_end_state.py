"""What is there when all is done, as it is stored."""

import pytest

from banking_server.bank.approvals import request_approval
from banking_server.bank.end_state import read_end_state
from banking_server.bank.handoffs import open_handoff
from banking_server.bank.storage import Bank

from ..kit.words import EVERYDAY, SAVINGS
from .support import call, posted, prepared

pytestmark = pytest.mark.anyio


async def test_a_new_bank_has_seen_nothing(bank: Bank) -> None:
    state = await read_end_state(bank)
    assert (state.transfers, state.handoffs, state.approvals) == ([], [], [])


async def test_everybodys_records_are_there(bank: Bank) -> None:
    small = (await posted(bank, "25.50")).transfer.transfer_id
    large = (await prepared(bank, "10000.01", source=SAVINGS, target=EVERYDAY)).transfer.transfer_id
    await request_approval(bank, call(), large, reason="A car")
    await open_handoff(bank, call(customer="CUST002"), reason="Lost card", choice="callback")

    state = await read_end_state(bank)
    assert {each.transfer_id: (each.status, each.amount_minor) for each in state.transfers} == {
        small: ("posted", 2_550),
        large: ("pending", 1_000_001),
    }
    assert [(each.transfer_id, each.status) for each in state.approvals] == [(large, "requested")]
    assert [(each.customer_id, each.reason, each.choice) for each in state.handoffs] == [
        ("CUST002", "Lost card", "callback")
    ]
