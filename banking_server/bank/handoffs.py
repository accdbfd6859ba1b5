"""Handoffs: a customer waits for a human agent, and the agent's desk takes over."""

import re
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.audit import Call, add_event, read_and_audit, write_and_audit
from banking_server.bank.models import (
    TABLES,
    Account,
    Customer,
    Handoff,
    HandoffChoice,
    Transfer,
    is_id,
    new_id,
)
from banking_server.bank.rules import Argument, NotFound, Outcome, Refused, TooMany
from banking_server.bank.storage import Bank, find_owned, find_record
from banking_server.bank.transaction import Transaction, has_status, records


@dataclass(frozen=True)
class _AboutHandoff(Outcome):
    handoff: Handoff

    @property
    def subject(self) -> str:
        """The handoff, for the audit trail."""
        return self.handoff.handoff_id


@dataclass(frozen=True)
class HandoffOpened(_AboutHandoff, recorded_as="handoff_opened"):
    """There is an open handoff for this reason, opened now or earlier."""


@dataclass(frozen=True)
class ChoiceRecorded(_AboutHandoff, recorded_as="choice_recorded"):
    """The handoff has the customer's choice."""


@dataclass(frozen=True)
class HandoffSeen(_AboutHandoff, recorded_as="handoff_seen"):
    """The handoff, unchanged."""


async def find_open_handoff(bank: Bank, customer_id: str, reason: str | None) -> Handoff | None:
    """Return the customer's open handoff for this reason. Not audited: for questions to them."""
    checked = rules.check_reason(bank.rules, reason)
    if isinstance(checked, Refused) or not is_id(customer_id):
        return None
    return await bank.read(lambda tx: _find_open(tx, customer_id, checked))


async def open_handoff(
    bank: Bank, call: Call, *, reason: str | None, choice: HandoffChoice | None
) -> HandoffOpened | Refused | TooMany:
    """Open a handoff, or return the open one for the same reason.

    Reasons that name the same account or transfer of the customer count as the same, however a
    repeated call words them.
    An open handoff without a choice gets this one. The default reason is
    `rules.DEFAULT_REASON`.
    """

    def rule(tx: Transaction) -> HandoffOpened | Refused | TooMany:
        checked = rules.check_reason(bank.rules, reason)
        if isinstance(checked, Refused):
            return checked
        if find_record(tx, Customer, call.customer_id) is None:
            return Refused(Argument.CUSTOMER_ID, "You are not a customer of this bank.")
        handoff = _find_open(tx, call.customer_id, checked)
        if handoff is None:
            waiting = tx.all(_OPEN, customer_id=call.customer_id)
            stopped = rules.check_open_handoffs(bank.rules, len(waiting))
            if stopped:
                return stopped
            handoff = Handoff(
                handoff_id=new_id("ho"),
                customer_id=call.customer_id,
                reason=checked,
                choice=choice,
                created_at=call.at,
            )
            tx.add(handoff)
        elif handoff.choice is None and choice is not None:
            tx.change(handoff, choice=choice)
        return HandoffOpened(handoff)

    return await write_and_audit(bank, call, rule)


async def look_at_handoff(
    bank: Bank, call: Call, *, handoff_id: str | None, reason: str | None
) -> HandoffSeen | NotFound | Refused:
    """Return the customer's handoff by its id, or else the open one for this reason."""

    def look(tx: Transaction) -> HandoffSeen | NotFound | Refused:
        if handoff_id is not None:
            handoff = find_owned(tx, Handoff, handoff_id, call.customer_id)
            return (
                NotFound(Argument.HANDOFF_ID, rules.excerpt(handoff_id))
                if handoff is None
                else HandoffSeen(handoff)
            )
        checked = rules.check_reason(bank.rules, reason)
        if isinstance(checked, Refused):
            return checked
        handoff = _find_open(tx, call.customer_id, checked) if is_id(call.customer_id) else None
        if handoff is None:
            return Refused(Argument.REASON, "No handoff for this reason is open.")
        return HandoffSeen(handoff)

    return await read_and_audit(bank, call, look)


async def choose(
    bank: Bank, call: Call, handoff_id: str, choice: HandoffChoice
) -> ChoiceRecorded | NotFound | Refused:
    """Record how the customer wants to be connected; they may change it until an agent takes it."""

    def rule(tx: Transaction) -> ChoiceRecorded | NotFound | Refused:
        handoff = find_owned(tx, Handoff, handoff_id, call.customer_id)
        if handoff is None:
            return NotFound(Argument.HANDOFF_ID, rules.excerpt(handoff_id))
        refused = rules.check_change_of_choice(handoff, choice)
        if refused:
            return refused
        tx.change(handoff, choice=choice)
        return ChoiceRecorded(handoff)

    return await write_and_audit(bank, call, rule)


_handoffs = TABLES[Handoff].c
_WAITING = records(
    Handoff,
    has_status(Handoff, "open"),
    order_by=[_handoffs.created_at, _handoffs.handoff_id],
)
_OPEN = records(
    Handoff,
    _handoffs.customer_id == sa.bindparam("customer_id"),
    has_status(Handoff, "open"),
    order_by=[_handoffs.created_at, _handoffs.handoff_id],
)
"""The customer's handoffs; there are never more than `max_open_handoffs`."""
_SUBJECT = re.compile(r"\b(?:acc|tr)_[A-Za-z0-9_-]+")


async def list_open_handoffs(bank: Bank) -> list[Handoff]:
    """Return the handoffs that wait for an agent, the oldest first."""
    return await bank.read(lambda tx: tx.all(_WAITING))


async def claim_handoff(
    bank: Bank, handoff_id: str, *, agent: str, now: datetime
) -> Handoff | NotFound | Refused:
    """Take an open handoff for `agent`. If they have it already, nothing changes."""
    refused = rules.check_required_text(bank.rules, Argument.AGENT, agent)
    if refused:
        return refused

    def work(tx: Transaction) -> Handoff | NotFound | Refused:
        found = find_record(tx, Handoff, handoff_id)
        if found is None:
            return NotFound(Argument.HANDOFF_ID, rules.excerpt(handoff_id))
        tx.lock(found.customer_id)
        handoff = tx.get(Handoff, handoff_id)
        refused = rules.check_claim(handoff, agent)
        if handoff.status == "open":
            tx.change(handoff, status="claimed", claimed_by=agent, claimed_at=now)
        call = Call(customer_id=handoff.customer_id, tool="handoffs claim", at=now)
        said = refused.recorded_as if refused else "claimed"
        add_event(tx, call, said, handoff.handoff_id)
        return refused or handoff

    return await bank.write(work)


def _find_open(tx: Transaction, customer_id: str, reason: str) -> Handoff | None:
    waiting = tx.all(_OPEN, customer_id=customer_id)
    same = [handoff for handoff in waiting if handoff.reason == reason]
    named = set(_SUBJECT.findall(reason))
    about = (
        handoff
        for handoff in waiting
        for subject in named.intersection(_SUBJECT.findall(handoff.reason))
        if _is_owned(tx, subject, customer_id)
    )
    return same[0] if same else next(about, None)


def _is_owned(tx: Transaction, subject: str, customer_id: str) -> bool:
    if subject.startswith("acc_"):
        return find_owned(tx, Account, subject, customer_id) is not None
    return find_owned(tx, Transfer, subject, customer_id) is not None
