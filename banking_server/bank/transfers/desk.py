"""The desk's list of codes: the bank's way of its own to a customer who cannot be asked."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank.models import TABLES, Transfer
from banking_server.bank.rules import waits_for_manager
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, has_status, records
from banking_server.bank.transfers.codes import confirmation_code
from banking_server.bank.transfers.outcomes import TransferView
from banking_server.bank.transfers.records import read_parties, view_transfer


@dataclass(frozen=True)
class PendingCode:
    """The code of a transfer that waits to be confirmed."""

    transfer: TransferView
    customer_id: str
    code: str
    needs_manager: bool
    """A manager has to approve the transfer before the code is good for anything."""


_transfers = TABLES[Transfer].c
_waiting = (has_status(Transfer, "pending"), _transfers.expires_at > sa.bindparam("now"))
_WAITING = records(Transfer, *_waiting, order_by=[_transfers.created_at, _transfers.transfer_id])


async def list_codes(
    bank: Bank, code_key: bytes, now: datetime, customer_id: str | None = None
) -> list[PendingCode]:
    """Return the codes that are good at `now`, of one customer or of all, oldest first.

    `code_key` is the key that the servers of this bank derive codes from. Not audited.
    """

    def look(tx: Transaction) -> list[PendingCode]:
        return [
            PendingCode(
                view_transfer(transfer, read_parties(tx, transfer), now),
                transfer.customer_id,
                confirmation_code(code_key, transfer.transfer_id),
                waits_for_manager(transfer),
            )
            for transfer in tx.all(_WAITING, now=now)
            if customer_id in (None, transfer.customer_id)
        ]

    return await bank.read(look)
