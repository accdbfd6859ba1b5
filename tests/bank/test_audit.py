"""Every call leaves one event, with what the call changed and nothing secret."""

from dataclasses import replace
from pathlib import Path

import pytest

from banking_server.bank import (
    accounts,
    approvals,
    audit,
    compliance,
    handoffs,
    rules,
    statement,
)
from banking_server.bank.audit import Call, list_events, record
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers import outcomes

from ..kit.words import EVERYDAY, wrong
from .support import MINUTE, NOW, call, confirm, prepare, prepared, sql

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_an_event_says_who_when_what_and_in_which_chain(bank: Bank) -> None:
    the_call = replace(call("a_tool"), chain_id="c1", chain_level=2, chain_previous_tool="before")
    assert not the_call.recorded
    await accounts.get_balance(bank, the_call, EVERYDAY)
    assert the_call.recorded
    (event,) = await list_events(bank)
    assert (event.at, event.at.tzinfo is not None) == (NOW, True)
    assert (event.customer_id, event.tool, event.outcome) == ("CUST001", "a_tool", "balance")
    assert event.subject == EVERYDAY
    assert (event.chain_id, event.chain_level, event.chain_previous_tool) == ("c1", 2, "before")


async def test_events_are_listed_oldest_first_for_one_or_all(bank: Bank) -> None:
    await record(bank, call("one", at=NOW + MINUTE), "x")
    await record(bank, call("two", customer="CUST002"), "x")
    await record(bank, call("three"), "x")
    assert [e.tool for e in await list_events(bank)] == ["one", "two", "three"]
    assert [e.tool for e in await list_events(bank, "CUST001")] == ["one", "three"]
    assert await list_events(bank, "CUST009") == []
    assert await list_events(bank, "\ud800") == []


async def test_they_are_listed_by_the_page(bank: Bank) -> None:
    def many(tx: Transaction) -> None:
        for _ in range(audit.EVENTS_A_PAGE + 1):
            for customer in ("CUST001", "CUST002"):
                audit.add_event(tx, call(customer=customer), "x", None)

    await bank.write(many)
    seen: list[int] = []
    while page := await list_events(bank, "CUST002", after=seen[-1] if seen else 0):
        assert len(page) <= audit.EVENTS_A_PAGE
        seen += [event.event_id for event in page]
    assert len(set(seen)) == len(seen) == audit.EVENTS_A_PAGE + 1


async def test_what_callers_say_is_made_safe_to_keep(bank: Bank) -> None:
    for text in ("\ud800", "\x00", "x" * 1_000_000, "\u202e", ""):
        the_call = Call(text, text, NOW, chain_id=text, chain_level=3, chain_previous_tool=text)
        await record(bank, the_call, "x")
        event = (await list_events(bank, text))[-1]
        for kept in (event.customer_id, event.tool, event.chain_id, event.chain_previous_tool):
            assert kept is not None
            assert len(kept) <= 128
            assert kept.isprintable()
    for level in (0, -1, 2**63, 10**100):
        await record(bank, replace(call(), chain_level=level), "x")
        assert (await list_events(bank))[-1].chain_level is None


async def test_an_event_commits_with_what_the_call_changed_or_not_at_all(
    bank: Bank, path: Path
) -> None:
    sql(
        path,
        """CREATE TRIGGER no_room_for_events BEFORE INSERT ON audit_event
           BEGIN SELECT RAISE(ABORT, 'no_room_for_events'); END""",
    )
    the_call = call()
    with pytest.raises(Exception, match="no_room_for_events"):
        await prepare(bank)
    with pytest.raises(Exception, match="no_room_for_events"):
        await record(bank, the_call, "x")
    assert not the_call.recorded
    assert sql(path, "SELECT * FROM transfer") == []


async def test_no_code_is_ever_stored(bank: Bank, path: Path) -> None:
    outcome = await prepared(bank)
    await confirm(bank, outcome.transfer.transfer_id, agreed=False, code=wrong(outcome.code))
    await confirm(bank, outcome.transfer.transfer_id, agreed=False, code=outcome.code)
    await bank.close()
    stored = b"".join(file.read_bytes() for file in path.parent.glob("bank.db*"))
    assert outcome.code.encode() not in stored
    assert wrong(outcome.code).encode() not in stored


def test_every_outcome_has_a_word_of_its_own() -> None:
    kinds = {
        kind
        for module in (rules, accounts, statement, outcomes, handoffs, approvals, compliance)
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "recorded_as")
    }
    assert len({kind.recorded_as for kind in kinds}) == len(kinds) > 25
