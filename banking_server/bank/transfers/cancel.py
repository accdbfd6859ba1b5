"""Cancelling a transfer: the customer changes their mind before the money has moved."""

from banking_server.bank.audit import Call, write_and_audit
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
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers.outcomes import Cancelled
from banking_server.bank.transfers.records import (
    expire_if_due,
    read_parties,
    set_status,
    view_transfer,
)


async def cancel_transfer(
    bank: Bank, call: Call, transfer_id: str
) -> Cancelled | NotFound | Refused:
    """Void a pending or scheduled transfer. Cancelling again gives the same outcome."""

    def rule(tx: Transaction) -> Cancelled | NotFound | Refused:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        parties = read_parties(tx, transfer)
        expire_if_due(tx, transfer, parties.from_account, call.at)
        refused = check_cancellation(transfer)
        if refused:
            return refused
        set_status(tx, transfer, parties.from_account, "voided", reason=CANCELLED_BY_CUSTOMER)
        return Cancelled(view_transfer(transfer, parties, call.at))

    return await write_and_audit(bank, call, rule)
