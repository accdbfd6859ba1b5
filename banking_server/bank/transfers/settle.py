"""Settling: what falls due by its date or its time, with no customer there to ask for it."""

from datetime import date, datetime

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, add_event
from banking_server.bank.compliance import add_report
from banking_server.bank.models import Transfer
from banking_server.bank.rules import check_due_payment, compliance_rule
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.outcomes import TransferView
from banking_server.bank.transfers.records import (
    expire_if_due,
    post,
    read_available,
    read_parties,
    view_transfer,
)


async def settle(bank: Bank, *, as_of: date, now: datetime) -> list[TransferView]:
    """Post the scheduled transfers due by `as_of`, and mark the overdue pending ones expired.

    Each in its own transaction; oldest date first. One that can no longer be paid becomes failed
    with the reason. A posting that meets the compliance rule is reported with it, because nobody is
    there to follow a chain. Returns what this run changed; several may run at once.
    """

    async def find_due(session: AsyncSession) -> list[str]:
        scheduled = await session.exec(
            select(Transfer.transfer_id)
            .where(Transfer.status == "scheduled", col(Transfer.scheduled_date) <= as_of)
            .order_by(
                col(Transfer.scheduled_date), col(Transfer.created_at), col(Transfer.transfer_id)
            )
        )
        overdue = await session.exec(
            select(Transfer.transfer_id)
            .where(Transfer.status == "pending", col(Transfer.expires_at) <= now)
            .order_by(col(Transfer.expires_at), col(Transfer.transfer_id))
        )
        return [*scheduled.all(), *overdue.all()]

    settled = [
        await _settle_one(bank, transfer_id, as_of, now)
        for transfer_id in await bank.read(find_due)
    ]
    return [view for view in settled if view is not None]


async def _settle_one(
    bank: Bank, transfer_id: str, as_of: date, now: datetime
) -> TransferView | None:
    """Settle one transfer; None if another process was first and nothing is left to do."""

    async def work(session: AsyncSession) -> TransferView | None:
        transfer = await session.get_one(Transfer, transfer_id)
        before = transfer.status
        expire_if_due(transfer, now)
        day = transfer.scheduled_date
        if transfer.status == "scheduled" and day is not None and day <= as_of:
            await _pay_scheduled(session, bank, transfer, now)
        if transfer.status == before:
            return None
        call = Call(customer_id=transfer.customer_id, tool="settle", at=now)
        add_event(session, call, transfer.status, transfer.transfer_id)
        return await view_transfer(session, transfer, now)

    return await bank.write(work)


async def _pay_scheduled(
    session: AsyncSession, bank: Bank, transfer: Transfer, now: datetime
) -> None:
    from_account, to_account = await read_parties(session, transfer)
    problem = check_due_payment(
        transfer,
        from_account,
        to_account,
        available_minor=await read_available(session, from_account, now),
    )
    if problem:
        transfer.status = "failed"
        transfer.reason = problem
        return
    await post(session, transfer, from_account, to_account, now)
    rule = compliance_rule(bank.rules, amount_minor=transfer.amount_minor, to_account=to_account)
    if rule is not None:
        await add_report(session, transfer, rule, now)
