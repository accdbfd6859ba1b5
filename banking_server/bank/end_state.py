"""What a bank holds when all is done: for whoever judges a run by its database alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.models import Approval, Handoff, Transfer
from banking_server.bank.storage import Bank


@dataclass(frozen=True)
class EndState:
    """Every transfer, handoff and request for approval, whoever's it is, as they are stored."""

    transfers: Sequence[Transfer]
    handoffs: Sequence[Handoff]
    approvals: Sequence[Approval]


async def read_end_state(bank: Bank) -> EndState:
    """Return what is stored at one moment. Not audited: this is not for customers."""

    async def work(session: AsyncSession) -> EndState:
        return EndState(
            transfers=(await session.exec(select(Transfer))).all(),
            handoffs=(await session.exec(select(Handoff))).all(),
            approvals=(await session.exec(select(Approval))).all(),
        )

    return await bank.read(work)
