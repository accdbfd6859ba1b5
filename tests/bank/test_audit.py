"""Every call leaves one event, with what the call changed and nothing secret."""

from dataclasses import replace

import pytest

from banking_server.bank import accounts, approvals, audit, compliance, handoffs, rules, statement
from banking_server.bank.audit import Call, list_events, record
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers import outcomes

from .support import NOW, call

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_events_are_listed_in_pages(bank: Bank) -> None:
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


async def test_callers_text_is_sanitized_before_it_is_stored(bank: Bank) -> None:
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


def test_outcomes_have_unique_audit_names() -> None:
    kinds = {
        kind
        for module in (rules, accounts, statement, outcomes, handoffs, approvals, compliance)
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "recorded_as")
    }
    assert len({kind.recorded_as for kind in kinds}) == len(kinds) > 25
