"""Cancelling a transfer: the customer changes their mind before the money has moved."""

from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, in_one_transaction
from banking_server.bank.models import Transfer
from banking_server.bank.rules import (
    CANCELLED_BY_CUSTOMER,
    Argument,
    NotFound,
    Refused,
    check_cancellation,
    excerpt,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transfers.outcomes import Cancelled
from banking_server.bank.transfers.records import expire_if_due, view_transfer


async def cancel_transfer(
    bank: Bank, call: Call, transfer_id: str
) -> Cancelled | NotFound | Refused:
    """Void a pending or scheduled transfer. Cancelling again gives the same outcome."""

    async def rule(session: AsyncSession) -> Cancelled | NotFound | Refused:
        transfer = await find_owned(session, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        expire_if_due(transfer, call.at)
        refused = check_cancellation(transfer)
        if refused:
            return refused
        transfer.status = "voided"
        transfer.reason = CANCELLED_BY_CUSTOMER
        return Cancelled(await view_transfer(session, transfer, call.at))

    return await in_one_transaction(bank, call, rule)
