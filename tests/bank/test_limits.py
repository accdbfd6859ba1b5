"""What a customer cannot repeat for ever: pending transfers, open handoffs, wrong codes."""

from dataclasses import replace
from pathlib import Path

import pytest

from banking_server.bank.handoffs import HandoffOpened, claim_handoff, open_handoff
from banking_server.bank.rules import Rules, TooMany
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.confirm import cancel_transfer
from banking_server.bank.transfers.outcomes import (
    OverThreshold,
    Posted,
    Prepared,
    VoidedForCodes,
    WrongCode,
)

from ..kit.words import EVERYDAY, SAVINGS, wrong
from .support import HOUR, MINUTE, NOW, call, check_books, confirm, outcomes, prepare, prepared

pytestmark = [pytest.mark.anyio, pytest.mark.on_each, pytest.mark.quick]


@pytest.fixture
async def bank(bank: Bank) -> Bank:
    """A bank that allows little."""
    bank.rules = Rules(max_pending_transfers=2, max_open_handoffs=2, max_wrong_codes_an_hour=6)
    return bank


THEIRS = {"source": "acc_savings_002", "target": "acc_checking_002", "customer": "CUST002"}


async def test_pending_transfers_are_limited(bank: Bank, path: Path) -> None:
    first = await prepared(bank, "1.00")
    await prepared(bank, "20000.00", source=SAVINGS, target=EVERYDAY)
    outcome = await prepare(bank, "2.00")
    assert isinstance(outcome, TooMany)
    assert outcome.message.startswith("You have 2 unconfirmed transfers")
    assert outcomes(path)[-1] == ("prepare", "too_many", None)
    # What is there already can be asked for again, and is no further one.
    assert await prepared(bank, "1.00") == first
    # Somebody else's do not count.
    await prepared(bank, "1.00", **THEIRS)
    # One that is cancelled, or has expired, makes room.
    await cancel_transfer(bank, call("cancel"), first.transfer.transfer_id)
    await prepared(bank, "3.00")
    assert isinstance(await prepare(bank, "4.00"), TooMany)
    assert isinstance(await prepare(bank, "4.00", at=NOW + 11 * MINUTE), Prepared)
    check_books(path, NOW)


async def test_open_handoffs_are_limited(bank: Bank, path: Path) -> None:
    async def ask(reason: str, customer: str = "CUST001") -> object:
        return await open_handoff(
            bank, call("request", customer=customer), reason=reason, choice=None
        )

    first = await ask("one")
    await ask("two")
    refused = await ask("three")
    assert isinstance(refused, TooMany)
    assert refused.message.startswith("You already have 2 requests waiting")
    assert outcomes(path)[-1] == ("request", "too_many", None)
    assert await ask("one") == first
    assert isinstance(await ask("three", "CUST002"), HandoffOpened)
    assert isinstance(first, HandoffOpened)
    await claim_handoff(bank, first.handoff.handoff_id, agent="Alex", now=NOW)
    assert isinstance(await ask("three"), HandoffOpened)


async def test_wrong_codes_per_hour_are_limited(bank: Bank, path: Path) -> None:
    bank.rules = replace(bank.rules, max_pending_transfers=10)
    late = NOW + 5 * MINUTE

    async def guess(transfer: Prepared | OverThreshold, *, right: bool = False) -> object:
        code = transfer.code if right else wrong(transfer.code)
        return await confirm(bank, transfer.transfer.transfer_id, agreed=False, code=code, at=late)

    one, two = await prepared(bank, "1.00"), await prepared(bank, "2.00")
    for _ in range(4):
        assert isinstance(await guess(one), WrongCode)
    assert isinstance(await guess(one), VoidedForCodes)
    assert isinstance(await guess(two), WrongCode)
    # From here on nobody learns whether a code is right.
    for right in (False, True):
        assert isinstance(await guess(two, right=right), TooMany)
    assert outcomes(path)[-1] == ("confirm", "too_many", None)
    # The customer's own yes still counts, and so do other customers' codes.
    theirs = await prepared(bank, "1.00", **THEIRS)
    outcome = await confirm(
        bank, theirs.transfer.transfer_id, agreed=False, code=theirs.code, customer="CUST002"
    )
    assert isinstance(outcome, Posted)
    assert isinstance(await confirm(bank, two.transfer.transfer_id, at=late), Posted)
    check_books(path, NOW)


async def test_wrong_codes_expire_after_an_hour(bank: Bank) -> None:
    bank.rules = replace(bank.rules, max_wrong_codes_an_hour=1)
    one = await prepared(bank, "1.00")
    transfer_id = one.transfer.transfer_id
    await confirm(bank, transfer_id, agreed=False, code=wrong(one.code))
    soon = NOW + HOUR - MINUTE
    two = await prepared(bank, "2.00", at=soon)
    for at, outcome in ((soon, TooMany), (NOW + HOUR, Posted)):
        taken = await confirm(bank, two.transfer.transfer_id, agreed=False, code=two.code, at=at)
        assert isinstance(taken, outcome)
