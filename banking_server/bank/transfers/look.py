"""Looking at transfers: where one stands, and those that wait to be confirmed, with their codes."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank.audit import Call, read_and_audit
from banking_server.bank.models import TABLES, Transfer
from banking_server.bank.rules import (
    Argument,
    NotFound,
    excerpt,
    may_be_asked_to_confirm,
    waits_for_manager,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction, has_status, records
from banking_server.bank.transfers.codes import confirmation_code, view_secret
from banking_server.bank.transfers.outcomes import Seen, TransferView
from banking_server.bank.transfers.records import read_parties, view_transfer


async def look_at_transfer(bank: Bank, call: Call, transfer_id: str) -> Seen | NotFound:
    """Return the customer's transfer as it stands; nothing is changed."""

    def look(tx: Transaction) -> Seen | NotFound:
        seen = _look(tx, call.customer_id, transfer_id, call.at)
        if seen is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        view, is_confirmable = seen
        secret = view_secret(bank, view) if is_confirmable else None
        return Seen(view, secret)

    return await read_and_audit(bank, call, look)


async def find_confirmable(
    bank: Bank, customer_id: str, transfer_id: str, now: datetime
) -> TransferView | None:
    """Return the customer's transfer if they may be asked to confirm it. Not audited."""
    seen = await bank.read(lambda tx: _look(tx, customer_id, transfer_id, now))
    return seen[0] if seen is not None and seen[1] else None


def _look(
    tx: Transaction, customer_id: str, transfer_id: str, now: datetime
) -> tuple[TransferView, bool] | None:
    """Return the customer's transfer, and whether they may be asked to confirm it."""
    transfer = find_owned(tx, Transfer, transfer_id, customer_id)
    if transfer is None:
        return None
    parties = read_parties(tx, transfer)
    is_confirmable = may_be_asked_to_confirm(transfer, parties.from_account, now)
    return view_transfer(transfer, parties, now), is_confirmable


@dataclass(frozen=True)
class PendingCode:
    """The code of a transfer that waits to be confirmed, as the bank's desk gives it out."""

    transfer: TransferView
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
                confirmation_code(code_key, transfer.transfer_id),
                waits_for_manager(transfer),
            )
            for transfer in tx.all(_WAITING, now=now)
            if customer_id in (None, transfer.customer_id)
        ]

    return await bank.read(look)
