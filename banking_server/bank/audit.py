"""The audit trail: one append-only event per call, written in the transaction of its changes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import sqlalchemy as sa

from banking_server.bank.models import TABLES, AuditEvent, is_id
from banking_server.bank.rules import Outcome, excerpt
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement, Transaction, insertion, reading

_MAX_LENGTH = 128
_MAX_LEVEL = 2**31 - 1


@dataclass
class Call:
    """One call of one tool: who, which, when (aware), and the chain that the client claims.

    `recorded` turns True when the call's audit event has been committed.
    """

    customer_id: str
    tool: str
    at: datetime
    chain_id: str | None = None
    chain_level: int | None = None
    chain_previous_tool: str | None = None
    recorded: bool = False

    def mark_recorded(self) -> None:
        """Note that the event is on the disk."""
        self.recorded = True


_Outcome = TypeVar("_Outcome", bound=Outcome)


async def write_and_audit(
    bank: Bank, call: Call, rule: Callable[[Transaction], _Outcome]
) -> _Outcome:
    """Run `rule` and record its outcome, in one write transaction; return the outcome.

    Nobody else can change the caller's data meanwhile.
    """

    def work(tx: Transaction) -> _Outcome:
        if is_id(call.customer_id):
            tx.lock(call.customer_id)
        outcome = rule(tx)
        add_event(tx, call, outcome.recorded_as, outcome.subject)
        return outcome

    return await bank.write(work, committed=call.mark_recorded)


async def read_and_audit(
    bank: Bank, call: Call, look: Callable[[Transaction], _Outcome]
) -> _Outcome:
    """Run a look-up on one state of the database, and record it; return the outcome."""

    def work(tx: Transaction) -> _Outcome:
        outcome = look(tx)
        add_event(tx, call, outcome.recorded_as, outcome.subject)
        return outcome

    return await bank.write(work, committed=call.mark_recorded, snapshot=True)


async def record(bank: Bank, call: Call, outcome: str, subject: str | None = None) -> None:
    """Record a call that changed nothing."""
    await bank.write(lambda tx: add_event(tx, call, outcome, subject), committed=call.mark_recorded)


_ADD = insertion(AuditEvent)


def add_event(tx: Transaction, call: Call, outcome: str, subject: str | None) -> None:
    """Add the call's event to the transaction. `subject` is one of our ids, never a caller's text.

    What the client says about its chain is stored for reading only, escaped and cut; a level out of
    range is left out.
    """
    level = call.chain_level
    tx.run(
        _ADD,
        at=call.at,
        customer_id=excerpt(call.customer_id, _MAX_LENGTH),
        tool=excerpt(call.tool, _MAX_LENGTH),
        outcome=outcome,
        subject=subject,
        chain_id=_shown(call.chain_id),
        chain_level=level if level is not None and 1 <= level <= _MAX_LEVEL else None,
        chain_previous_tool=_shown(call.chain_previous_tool),
    )


EVENTS_A_PAGE: Final = 1_000

_events = TABLES[AuditEvent].c


def _page(*where: sa.ColumnElement[bool]) -> Statement[AuditEvent]:
    after = _events.event_id > sa.bindparam("after")
    page = sa.select(TABLES[AuditEvent]).where(after, *where).order_by(_events.event_id)
    return Statement(page.limit(EVENTS_A_PAGE), reading(AuditEvent))


_ALL = _page()
_OF_CUSTOMER = _page(_events.customer_id == sa.bindparam("customer_id"))


async def list_events(
    bank: Bank, customer_id: str | None = None, *, after: int = 0
) -> list[AuditEvent]:
    """Return a page of the events of one customer, or of all, oldest first.

    `after` is the number of the last event of the page before.
    """
    if customer_id is None:
        return await bank.read(lambda tx: tx.all(_ALL, after=after))
    customer = excerpt(customer_id, _MAX_LENGTH)
    return await bank.read(lambda tx: tx.all(_OF_CUSTOMER, customer_id=customer, after=after))


def _shown(text: str | None) -> str | None:
    return None if text is None else excerpt(text, _MAX_LENGTH)
