"""The transfer as a record: read, shown to its customer, expired, posted to the ledger."""

from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.ledger import add_posting, read_funds
from banking_server.bank.models import Account, Transfer
from banking_server.bank.rules import may_be_asked_to_confirm, status_at
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transfers.outcomes import TransferView


async def find_confirmable(
    bank: Bank, customer_id: str, transfer_id: str, now: datetime
) -> TransferView | None:
    """Return the customer's transfer if they may be asked to confirm it. Not audited."""

    async def work(session: AsyncSession) -> TransferView | None:
        transfer = await find_owned(session, Transfer, transfer_id, customer_id)
        if transfer is None:
            return None
        from_account, _ = await read_parties(session, transfer)
        if not may_be_asked_to_confirm(transfer, from_account, now):
            return None
        return await view_transfer(session, transfer, now)

    return await bank.read(work)


async def view_transfer(session: AsyncSession, transfer: Transfer, now: datetime) -> TransferView:
    """Return the transfer as its customer sees it at `now`."""
    from_account, to_account = await read_parties(session, transfer)
    return TransferView(
        transfer_id=transfer.transfer_id,
        from_account_id=from_account.account_id,
        from_account_name=from_account.account_name,
        to_account_id=to_account.account_id,
        to_account_name=to_account.account_name,
        to_account_holder=to_account.account_holder,
        amount_minor=transfer.amount_minor,
        currency=transfer.currency,
        scheduled_date=transfer.scheduled_date,
        memo=transfer.memo,
        status=status_at(transfer, now),
        reason=transfer.reason,
        approval=transfer.approval,
        created_at=transfer.created_at,
        expires_at=transfer.expires_at,
        posted_at=transfer.posted_at,
    )


async def read_parties(session: AsyncSession, transfer: Transfer) -> tuple[Account, Account]:
    """Return the from-account and the to-account; foreign keys see to it that they are there."""
    return (
        await session.get_one(Account, transfer.from_account_id),
        await session.get_one(Account, transfer.to_account_id),
    )


async def read_available(session: AsyncSession, account: Account, now: datetime) -> int:
    """Return what the account has available at `now`, in minor units."""
    return (await read_funds(session, [account.account_id], now))[
        account.account_id
    ].available_minor


def expire_if_due(transfer: Transfer, now: datetime) -> None:
    """Mark a pending transfer expired if its time has come; the stored status follows the clock."""
    transfer.status = status_at(transfer, now)


async def post(
    session: AsyncSession,
    transfer: Transfer,
    from_account: Account,
    to_account: Account,
    now: datetime,
) -> None:
    """Move the money, and mark the transfer posted at `now`."""
    transfer.status = "posted"
    transfer.posted_at = now
    await add_posting(
        session,
        kind="transfer",
        description=transfer.memo or "Transfer",
        posted_at=now,
        debit=from_account,
        credit=to_account,
        amount_minor=transfer.amount_minor,
        transfer_id=transfer.transfer_id,
    )
