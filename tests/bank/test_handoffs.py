"""Handoffs: one open record per matter, a choice, and the agents' desk."""

import asyncio

import pytest

from banking_server.bank.handoffs import (
    ChoiceRecorded,
    HandoffOpened,
    choose,
    claim_handoff,
    find_open_handoff,
    open_handoff,
)
from banking_server.bank.location import Location
from banking_server.bank.models import HandoffChoice
from banking_server.bank.rules import DEFAULT_REASON, Argument, Refused
from banking_server.bank.storage import Bank

from .support import NOW, call, prepared, sql

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

REASON = "Customer attempted to transfer from locked account: Primary Checking (acc_checking_001)"


async def opened(
    bank: Bank,
    reason: str | None = REASON,
    choice: HandoffChoice | None = None,
    customer: str = "CUST001",
) -> HandoffOpened:
    outcome = await open_handoff(
        bank, call("request", customer=customer), reason=reason, choice=choice
    )
    assert isinstance(outcome, HandoffOpened), outcome
    return outcome


@pytest.mark.on_each
async def test_concurrent_requests_open_one_handoff(bank: Bank, path: Location) -> None:
    all_of_them = await asyncio.gather(*(opened(bank) for _ in range(10)))
    assert len({each.handoff.handoff_id for each in all_of_them}) == 1
    assert sql(path, "SELECT count(*) FROM handoff") == [(1,)]


@pytest.mark.on_each
async def test_an_equal_reason_returns_the_open_handoff(bank: Bank, path: Location) -> None:
    first = await opened(bank)
    again = await opened(bank, choice="callback")
    assert again.handoff.handoff_id == first.handoff.handoff_id
    assert again.handoff.choice == "callback"
    # A choice that was made stays; it is changed by choosing.
    assert (await opened(bank, choice="realtime")).handoff == again.handoff
    others = [await opened(bank, None), await opened(bank, customer="CUST002")]
    assert others[0].handoff.reason == DEFAULT_REASON
    ids = {each.handoff.handoff_id for each in (first, *others)}
    assert len(ids) == 3
    assert await find_open_handoff(bank, "CUST003", REASON) is None
    # After a claim, the same reason opens anew.
    await claim_handoff(bank, first.handoff.handoff_id, agent="Ada", now=NOW)
    assert await find_open_handoff(bank, "CUST001", REASON) is None
    assert (await opened(bank)).handoff.handoff_id not in ids
    assert sql(path, "SELECT count(*) FROM handoff") == [(4,)]


async def test_reasons_about_the_same_account_or_transfer_share_a_handoff(
    bank: Bank,
) -> None:
    first = (await opened(bank)).handoff
    worded = (await opened(bank, "Please unlock acc_checking_001.")).handoff
    assert worded == first
    assert await find_open_handoff(bank, "CUST001", "acc_checking_001?") == first
    transfer_id = (await prepared(bank)).transfer.transfer_id
    about = (await opened(bank, f"Approval of {transfer_id}")).handoff
    assert (await opened(bank, f"What became of transfer {transfer_id}?")).handoff == about
    # The words alone, what is not an id of theirs, and another of theirs are other matters.
    others = [
        "Customer attempted to transfer from locked account",
        "About acc_nowhere",
        "Again about acc_nowhere",
        "About acc_checking_002",
        "Again about acc_checking_002",
        "About acc_savings_001",
    ]
    ids = {(await opened(bank, reason)).handoff.handoff_id for reason in others}
    assert len({*ids, first.handoff_id, about.handoff_id}) == len(others) + 2
    stranger = await opened(bank, "Please unlock acc_checking_001.", customer="CUST002")
    assert stranger.handoff.handoff_id != first.handoff_id


async def test_a_claimed_handoff_keeps_its_choice(bank: Bank) -> None:
    handoff_id = (await opened(bank, choice="callback")).handoff.handoff_id
    await claim_handoff(bank, handoff_id, agent="Ada", now=NOW)
    refused = await choose(bank, call(), handoff_id, "realtime")
    assert isinstance(refused, Refused)
    assert refused.field == Argument.HANDOFF_ID
    assert isinstance(await choose(bank, call(), handoff_id, "callback"), ChoiceRecorded)
