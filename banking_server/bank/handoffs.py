"""Handoffs: a customer waits for a human agent, and the agent's desk takes over."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.models import (
    Customer,
    Handoff,
    HandoffChoice,
    HandoffStatus,
    is_id,
    new_id,
)
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Refused,
    check_change_of_choice,
    check_choice,
    check_claim,
    check_reason,
    check_required_text,
    excerpt,
)
from banking_server.bank.storage import Bank, find_owned, find_record

DEFAULT_REASON = "Customer asked to speak with an agent"


@dataclass(frozen=True)
class HandoffView:
    """A handoff; `choice` is how the customer wants to be connected, once they have said."""

    handoff_id: str
    customer_id: str
    reason: str
    choice: HandoffChoice | None
    status: HandoffStatus
    created_at: datetime
    claimed_by: str | None
    claimed_at: datetime | None


@dataclass(frozen=True)
class HandoffOpened:
    """There is an open handoff for this reason, opened now or earlier."""

    recorded_as: ClassVar[str] = "handoff_opened"

    handoff: HandoffView

    @property
    def subject(self) -> str:
        """The handoff, for the audit trail."""
        return self.handoff.handoff_id


@dataclass(frozen=True)
class ChoiceRecorded:
    """The handoff has the customer's choice."""

    recorded_as: ClassVar[str] = "choice_recorded"

    handoff: HandoffView

    @property
    def subject(self) -> str:
        """The handoff, for the audit trail."""
        return self.handoff.handoff_id


async def find_open_handoff(bank: Bank, customer_id: str, reason: str | None) -> HandoffView | None:
    """Return the customer's open handoff for this reason. Not audited: for questions to them."""
    checked = check_reason(bank.rules, reason, default=DEFAULT_REASON)
    if isinstance(checked, Refused) or not is_id(customer_id):
        return None

    async def work(session: AsyncSession) -> HandoffView | None:
        handoff = await _find_open(session, customer_id, checked)
        return None if handoff is None else _view(handoff)

    return await bank.read(work)


async def open_handoff(
    bank: Bank, call: Call, *, reason: str | None, choice: str | None
) -> HandoffOpened | Refused:
    """Open a handoff, or return the open one for the same reason.

    `choice` is `realtime`, `callback` or None; one that is open already gets it if it had
    none. Without a reason it is `DEFAULT_REASON`.
    """

    async def rule(session: AsyncSession) -> HandoffOpened | Refused:
        checked = check_reason(bank.rules, reason, default=DEFAULT_REASON)
        if isinstance(checked, Refused):
            return checked
        chosen = check_choice(choice)
        if isinstance(chosen, Refused):
            return chosen
        if not is_id(call.customer_id) or await session.get(Customer, call.customer_id) is None:
            return Refused(Argument.CUSTOMER_ID, "You are not a customer of this bank.")
        handoff = await _find_open(session, call.customer_id, checked)
        if handoff is None:
            handoff = Handoff(
                handoff_id=new_id("ho"),
                customer_id=call.customer_id,
                reason=checked,
                created_at=call.at,
            )
            session.add(handoff)
        handoff.choice = handoff.choice or chosen
        return HandoffOpened(_view(handoff))

    return await in_one_transaction(bank, call, rule)


async def choose(
    bank: Bank, call: Call, handoff_id: str, choice: str
) -> ChoiceRecorded | NotFound | Refused:
    """Record how the customer wants to be connected; they may change it until an agent takes it."""

    async def rule(session: AsyncSession) -> ChoiceRecorded | NotFound | Refused:
        handoff = await find_owned(session, Handoff, handoff_id, call.customer_id)
        if handoff is None:
            return NotFound(Argument.HANDOFF_ID, excerpt(handoff_id))
        chosen = check_choice(choice)
        if isinstance(chosen, Refused):
            return chosen
        refused = check_change_of_choice(handoff, chosen)
        if refused:
            return refused
        handoff.choice = chosen
        return ChoiceRecorded(_view(handoff))

    return await in_one_transaction(bank, call, rule)


async def list_open_handoffs(bank: Bank) -> list[HandoffView]:
    """Return what waits at the agents' desk, longest first."""
    query = (
        select(Handoff)
        .where(Handoff.status == "open")
        .order_by(col(Handoff.created_at), col(Handoff.handoff_id))
    )

    async def work(session: AsyncSession) -> list[HandoffView]:
        return [_view(handoff) for handoff in (await session.exec(query)).all()]

    return await bank.read(work)


async def claim_handoff(
    bank: Bank, handoff_id: str, *, agent: str, now: datetime
) -> HandoffView | NotFound | Refused:
    """Take an open handoff for `agent`. Claiming one's own again changes nothing."""
    refused = check_required_text(bank.rules, Argument.AGENT, agent)
    if refused:
        return refused

    async def work(session: AsyncSession) -> HandoffView | NotFound | Refused:
        handoff = await find_record(session, Handoff, handoff_id)
        if handoff is None:
            return NotFound(Argument.HANDOFF_ID, excerpt(handoff_id))
        refused = check_claim(handoff, agent)
        if handoff.status == "open":
            handoff.status = "claimed"
            handoff.claimed_by = agent
            handoff.claimed_at = now
        call = Call(customer_id=handoff.customer_id, tool="handoffs claim", at=now)
        said = refused.recorded_as if refused else "claimed"
        add_event(session, call, said, handoff.handoff_id)
        return refused or _view(handoff)

    return await bank.write(work)


async def _find_open(session: AsyncSession, customer_id: str, reason: str) -> Handoff | None:
    query = select(Handoff).where(
        Handoff.customer_id == customer_id, Handoff.reason == reason, Handoff.status == "open"
    )
    return (await session.exec(query)).one_or_none()


def _view(handoff: Handoff) -> HandoffView:
    return HandoffView(
        handoff_id=handoff.handoff_id,
        customer_id=handoff.customer_id,
        reason=handoff.reason,
        choice=handoff.choice,
        status=handoff.status,
        created_at=handoff.created_at,
        claimed_by=handoff.claimed_by,
        claimed_at=handoff.claimed_at,
    )
