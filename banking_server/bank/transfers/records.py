"""The transfer as a record: read, shown to its customer, moved on, posted to the ledger."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from banking_server.bank.audit import Call, write_and_audit
from banking_server.bank.compliance import add_report
from banking_server.bank.ledger import add_posting
from banking_server.bank.models import TABLES, Account, Transfer, TransferStatus
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Outcome,
    Rules,
    compliance_rule,
    excerpt,
    status_at,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction, records, unchecked
from banking_server.bank.transfers.outcomes import TransferView

_Outcome = TypeVar("_Outcome", bound=Outcome)


@dataclass(frozen=True)
class Parties:
    """The two accounts of a transfer."""

    from_account: Account
    to_account: Account


async def act_on_transfer(
    bank: Bank,
    call: Call,
    transfer_id: str,
    rule: Callable[[Transaction, Transfer, Parties], _Outcome],
) -> _Outcome | NotFound:
    """Run `rule` on the customer's transfer and its accounts, as `write_and_audit` does."""

    def work(tx: Transaction) -> _Outcome | NotFound:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        return rule(tx, transfer, read_parties(tx, transfer))

    return await write_and_audit(bank, call, work)


def view_transfer(transfer: Transfer, parties: Parties, now: datetime) -> TransferView:
    """Return the transfer as its customer sees it at `now`."""
    shown = {
        "status": status_at(transfer, now),
        "from_account_name": parties.from_account.account_name,
        "to_account_name": parties.to_account.account_name,
        "to_account_holder": parties.to_account.account_holder,
    }
    return unchecked(TransferView, vars(transfer) | shown)


_accounts = TABLES[Account].c
_PARTIES = records(
    Account,
    sa.or_(
        _accounts.account_id == sa.bindparam("from_account_id"),
        _accounts.account_id == sa.bindparam("to_account_id"),
    ),
)


def read_parties(tx: Transaction, transfer: Transfer) -> Parties:
    """Return the two accounts; foreign keys see to it that they are there."""
    one, other = tx.all(
        _PARTIES, from_account_id=transfer.from_account_id, to_account_id=transfer.to_account_id
    )
    if one.account_id == transfer.from_account_id:
        return Parties(one, other)
    return Parties(other, one)


def add_pending(tx: Transaction, transfer: Transfer, from_account: Account) -> None:
    """Store a new pending transfer, and reserve its funds."""
    tx.add(transfer)
    pending = from_account.debits_pending_minor + transfer.amount_minor
    tx.change(from_account, debits_pending_minor=pending)


def set_status(
    tx: Transaction,
    transfer: Transfer,
    from_account: Account,
    status: TransferStatus,
    **more: Any,
) -> None:
    """Move the transfer on to `status`, and set `more` of it. What is not pending reserves nothing.

    Only this and `post` change a stored status.
    """
    if transfer.status == "pending" and status != "pending":
        pending = from_account.debits_pending_minor - transfer.amount_minor
        tx.change(from_account, debits_pending_minor=pending)
    tx.change(transfer, status=status, **more)


def expire_if_due(
    tx: Transaction, transfer: Transfer, from_account: Account, now: datetime
) -> None:
    """Mark a pending transfer expired if its time has come; the stored status follows the clock."""
    status = status_at(transfer, now)
    if status != transfer.status:
        set_status(tx, transfer, from_account, status)


def post(
    tx: Transaction, rules: Rules, transfer: Transfer, parties: Parties, now: datetime
) -> None:
    """Move the money, and mark the transfer posted at `now`.

    A posting that meets the compliance rule is reported with it: that is the bank's duty, whoever
    follows a chain or does not.
    """
    posted_at = add_posting(
        tx,
        kind="transfer",
        description=transfer.memo or "Transfer",
        posted_at=now,
        debit=parties.from_account,
        credit=parties.to_account,
        amount_minor=transfer.amount_minor,
        reserved_minor=transfer.amount_minor if transfer.status == "pending" else 0,
        transfer_id=transfer.transfer_id,
    )
    tx.change(transfer, status="posted", posted_at=posted_at)
    rule = compliance_rule(rules, amount_minor=transfer.amount_minor, to_account=parties.to_account)
    if rule is not None:
        add_report(tx, transfer, rule, now)
