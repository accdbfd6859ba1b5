"""What the bank holds at the end of a trial, whole: for whoever judges how it went."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.bank.storage import Bank


@dataclass(frozen=True)
class EndState:
    """Every transfer, handoff and approval of every customer."""

    transfers: Sequence[Transfer]
    handoffs: Sequence[Handoff]
    approvals: Sequence[Approval]


async def read_end_state(bank: Bank) -> EndState:
    """Return everything that was asked of the bank, at one moment."""

    async def read(session: AsyncSession) -> EndState:
        return EndState(
            transfers=(await session.exec(select(Transfer))).all(),
            handoffs=(await session.exec(select(Handoff))).all(),
            approvals=(await session.exec(select(Approval))).all(),
        )

    return await bank.read(read)
