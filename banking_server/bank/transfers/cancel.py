"""Cancelling a transfer: the customer changes their mind before the money has moved."""

from banking_server.bank.audit import Call
from banking_server.bank.models import Transfer
from banking_server.bank.rules import CANCELLED_BY_CUSTOMER, NotFound, Refused, check_cancellation
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers.outcomes import Cancelled
from banking_server.bank.transfers.records import (
    Parties,
    act_on_transfer,
    expire_if_due,
    set_status,
    view_transfer,
)


async def cancel_transfer(
    bank: Bank, call: Call, transfer_id: str
) -> Cancelled | NotFound | Refused:
    """Void a pending or scheduled transfer. Cancelling again gives the same outcome."""

    def rule(tx: Transaction, transfer: Transfer, parties: Parties) -> Cancelled | Refused:
        expire_if_due(tx, transfer, parties.from_account, call.at)
        refused = check_cancellation(transfer)
        if refused:
            return refused
        set_status(tx, transfer, parties.from_account, "voided", reason=CANCELLED_BY_CUSTOMER)
        return Cancelled(view_transfer(transfer, parties, call.at))

    return await act_on_transfer(bank, call, transfer_id, rule)
