"""Looking at a transfer that was prepared: where it stands now."""

from banking_server.bank.audit import Call, read_and_audit
from banking_server.bank.models import Transfer
from banking_server.bank.rules import Argument, NotFound, excerpt, may_be_asked_to_confirm
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers.codes import view_secret
from banking_server.bank.transfers.outcomes import Seen
from banking_server.bank.transfers.records import read_parties, view_transfer


async def look_at_transfer(bank: Bank, call: Call, transfer_id: str) -> Seen | NotFound:
    """Return the customer's transfer as it stands; nothing is changed."""

    def look(tx: Transaction) -> Seen | NotFound:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        parties = read_parties(tx, transfer)
        confirmable = may_be_asked_to_confirm(transfer, parties.from_account, call.at)
        return Seen(
            view_transfer(transfer, parties, call.at),
            view_secret(bank.rules, bank.code_key, transfer) if confirmable else None,
        )

    return await read_and_audit(bank, call, look)
