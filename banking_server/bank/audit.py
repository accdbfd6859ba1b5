"""The audit trail: one append-only event for every call, in the transaction of what it changed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol, TypeVar

from sqlalchemy import event
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.models import AuditEvent
from banking_server.bank.rules import excerpt
from banking_server.bank.storage import Bank

_MAX_LENGTH = 128
_MAX_LEVEL = 2**31 - 1


@dataclass
class Call:
    """One call of one tool: who, which, when (aware), and the chain the client says it is in.

    `recorded` turns True when the call's audit event has been committed.
    """

    customer_id: str
    tool: str
    at: datetime
    chain_id: str | None = None
    chain_level: int | None = None
    chain_previous_tool: str | None = None
    recorded: bool = False


class Outcome(Protocol):
    """What a bank function returns: one small type for each thing that can happen."""

    recorded_as: ClassVar[str]
    """The word for it in the audit trail. Stored, so it does not change."""

    @property
    def subject(self) -> str | None:
        """The id of our record that the outcome is about, if there is one."""
        ...


_Outcome = TypeVar("_Outcome", bound=Outcome)


async def in_one_transaction(
    bank: Bank, call: Call, rule: Callable[[AsyncSession], Awaitable[_Outcome]]
) -> _Outcome:
    """Run `rule` and record its outcome, in one write transaction; return the outcome."""

    async def work(session: AsyncSession) -> _Outcome:
        outcome = await rule(session)
        add_event(session, call, outcome.recorded_as, outcome.subject)
        return outcome

    return await bank.write(work)


async def record(bank: Bank, call: Call, outcome: str, subject: str | None = None) -> None:
    """Record a call that changed nothing. `subject` is one of our ids, never a caller's text."""

    async def work(session: AsyncSession) -> None:
        add_event(session, call, outcome, subject)

    await bank.write(work)


def add_event(session: AsyncSession, call: Call, outcome: str, subject: str | None) -> None:
    """Add the call's event to the session's transaction; `call.recorded` follows the commit.

    What the client says about its chain is stored for reading only, escaped and cut; a level out of
    range is left out.
    """
    level = call.chain_level
    session.add(
        AuditEvent(
            at=call.at,
            customer_id=excerpt(call.customer_id, _MAX_LENGTH),
            tool=excerpt(call.tool, _MAX_LENGTH),
            outcome=outcome,
            subject=subject,
            chain_id=_shown(call.chain_id),
            chain_level=level if level is not None and 1 <= level <= _MAX_LEVEL else None,
            chain_previous_tool=_shown(call.chain_previous_tool),
        )
    )

    @event.listens_for(session.sync_session, "after_commit", once=True)
    def committed(_session: object) -> None:
        call.recorded = True


async def list_events(bank: Bank, customer_id: str | None = None) -> list[AuditEvent]:
    """Return the events of one customer, or of all, oldest first."""
    query = select(AuditEvent).order_by(col(AuditEvent.event_id))
    if customer_id is not None:
        query = query.where(AuditEvent.customer_id == excerpt(customer_id, _MAX_LENGTH))

    async def work(session: AsyncSession) -> list[AuditEvent]:
        return list((await session.exec(query)).all())

    return await bank.read(work)


def _shown(text: str | None) -> str | None:
    return None if text is None else excerpt(text, _MAX_LENGTH)
