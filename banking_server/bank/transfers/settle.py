"""Settling: what falls due by its date or its time, with no customer there to ask for it."""

from datetime import date, datetime

import sqlalchemy as sa

from banking_server.bank.audit import Call, add_event
from banking_server.bank.ledger import read_funds
from banking_server.bank.models import TABLES, Transfer
from banking_server.bank.rules import check_due_payment
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Transaction, has_status, records
from banking_server.bank.transfers.outcomes import TransferView
from banking_server.bank.transfers.records import (
    expire_if_due,
    post,
    read_parties,
    set_status,
    view_transfer,
)

_transfers = TABLES[Transfer].c
_DUE = records(
    Transfer,
    has_status(Transfer, "scheduled"),
    _transfers.scheduled_date <= sa.bindparam("as_of"),
    order_by=[_transfers.scheduled_date, _transfers.created_at, _transfers.transfer_id],
)
_OVERDUE = records(
    Transfer,
    has_status(Transfer, "pending"),
    _transfers.expires_at <= sa.bindparam("now"),
    order_by=[_transfers.expires_at, _transfers.transfer_id],
)


async def settle(bank: Bank, *, as_of: date, now: datetime) -> list[TransferView]:
    """Post the scheduled transfers due by `as_of`, and mark the overdue pending ones expired.

    Each in its own transaction; oldest date first. One that can no longer be paid becomes failed
    with the reason. Returns what this run changed; several may run at once.
    """

    def find_due(tx: Transaction) -> list[Transfer]:
        return [*tx.all(_DUE, as_of=as_of), *tx.all(_OVERDUE, now=now)]

    settled = [await _settle_one(bank, due, as_of, now) for due in await bank.read(find_due)]
    return [view for view in settled if view is not None]


async def _settle_one(bank: Bank, due: Transfer, as_of: date, now: datetime) -> TransferView | None:
    """Settle one transfer; None if another process was first and nothing is left to do."""

    def work(tx: Transaction) -> TransferView | None:
        tx.lock(due.customer_id)
        transfer = tx.get(Transfer, due.transfer_id)
        parties = read_parties(tx, transfer)
        before = transfer.status
        expire_if_due(tx, transfer, parties.from_account, now)
        day = transfer.scheduled_date
        if transfer.status == "scheduled" and day is not None and day <= as_of:
            problem = check_due_payment(
                transfer,
                parties.from_account,
                parties.to_account,
                available_minor=read_funds(tx, parties.from_account, now).available_minor,
            )
            if problem:
                set_status(tx, transfer, parties.from_account, "failed", reason=problem)
            else:
                post(tx, bank.rules, transfer, parties, now)
        if transfer.status == before:
            return None
        call = Call(customer_id=transfer.customer_id, tool="settle", at=now)
        add_event(tx, call, transfer.status, transfer.transfer_id)
        return view_transfer(transfer, parties, now)

    return await bank.write(work)
