"""Confirmation codes at the bank's desk: those that are good, and no others."""

import pytest

from banking_server.bank.storage import Bank
from banking_server.bank.transfers.desk import list_codes
from banking_server.bank.transfers.outcomes import Posted

from ..kit.words import SAVINGS
from .support import CODE_KEY, HOUR, MINUTE, NOW, confirm, prepared

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def shown(bank: Bank, customer: str | None = None, at: object = NOW) -> list[tuple[str, str]]:
    codes = await list_codes(bank, CODE_KEY, at, customer)  # type: ignore[arg-type]
    return [(each.transfer.transfer_id, each.code) for each in codes]


async def test_the_desk_shows_the_codes_that_are_good(bank: Bank) -> None:
    first = await prepared(bank, "1.00")
    theirs = await prepared(
        bank, "2.00", source="acc_savings_002", target="acc_checking_002", customer="CUST002"
    )
    used, cancelled = await prepared(bank, "3.00"), await prepared(bank, "4.00")
    assert isinstance(await confirm(bank, used.transfer.transfer_id), Posted)
    await confirm(bank, cancelled.transfer.transfer_id, agreed=False, code="")
    for _ in range(4):
        await confirm(bank, cancelled.transfer.transfer_id, agreed=False, code="")
    large = await prepared(bank, "12000", source=SAVINGS, target="acc_everyday_001")
    mine = [(one.transfer.transfer_id, one.code) for one in (first, large)]
    assert sorted(await shown(bank, "CUST001")) == sorted(mine)
    assert await shown(bank, "CUST002") == [(theirs.transfer.transfer_id, theirs.code)]
    assert sorted(await shown(bank)) == sorted([*mine, (theirs.transfer.transfer_id, theirs.code)])
    waiting = {
        each.transfer.transfer_id: each.needs_manager
        for each in await list_codes(bank, CODE_KEY, NOW, "CUST001")
    }
    assert waiting == {first.transfer.transfer_id: False, large.transfer.transfer_id: True}
    # What a manager has to approve may wait for longer.
    assert await shown(bank, "CUST001", NOW + 10 * MINUTE) == [mine[1]]
    assert await shown(bank, None, NOW + 24 * HOUR) == []
