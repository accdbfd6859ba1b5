"""What a bank holds when all is done: for whoever judges a run by its database alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from banking_server.bank.models import (
    Approval,
    AuditEvent,
    ComplianceReport,
    Entry,
    Handoff,
    Transfer,
)
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, records


@dataclass(frozen=True)
class EndState:
    """What customers have done, whoever's it is, and all entries, as they are stored."""

    transfers: Sequence[Transfer] = ()
    handoffs: Sequence[Handoff] = ()
    approvals: Sequence[Approval] = ()
    reports: Sequence[ComplianceReport] = ()
    entries: Sequence[Entry] = ()
    events: Sequence[AuditEvent] = ()
    """One for each call that the bank was asked for."""

    def entries_of(self, account_id: str) -> list[Entry]:
        """Return the entries of one account."""
        return [entry for entry in self.entries if entry.account_id == account_id]


_TRANSFERS, _HANDOFFS, _APPROVALS = records(Transfer), records(Handoff), records(Approval)
_REPORTS, _ENTRIES, _EVENTS = records(ComplianceReport), records(Entry), records(AuditEvent)


async def read_end_state(bank: Bank) -> EndState:
    """Return what is stored at one moment. Not audited: this is not for customers."""

    def look(tx: Transaction) -> EndState:
        return EndState(
            transfers=tx.all(_TRANSFERS),
            handoffs=tx.all(_HANDOFFS),
            approvals=tx.all(_APPROVALS),
            reports=tx.all(_REPORTS),
            entries=tx.all(_ENTRIES),
            events=tx.all(_EVENTS),
        )

    return await bank.read(look)
