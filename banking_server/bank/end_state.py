"""What a bank holds when all is done: for whoever judges a run by its database alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, records


@dataclass(frozen=True)
class EndState:
    """Every transfer, handoff and request for approval, whoever's it is, as they are stored."""

    transfers: Sequence[Transfer]
    handoffs: Sequence[Handoff]
    approvals: Sequence[Approval]


_TRANSFERS, _HANDOFFS, _APPROVALS = records(Transfer), records(Handoff), records(Approval)


async def read_end_state(bank: Bank) -> EndState:
    """Return what is stored at one moment. Not audited: this is not for customers."""

    def look(tx: Transaction) -> EndState:
        return EndState(
            transfers=tx.all(_TRANSFERS), handoffs=tx.all(_HANDOFFS), approvals=tx.all(_APPROVALS)
        )

    return await bank.read(look)
