"""Stored transfers: finding, changing and viewing them, and the code and secret that confirm one.

A code confirms a transfer, and a secret confirms it from a view.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from banking_server.bank.audit import Call, read_and_audit, write_and_audit
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
    may_be_asked_to_confirm,
    status_at,
    waits_for_manager,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction, has_status, records, unchecked
from banking_server.bank.transfers.outcomes import Seen, TransferView

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
    """Return the two accounts; foreign keys guarantee that they exist."""
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
    """Move the transfer on to `status`, and set `more` fields. Only a pending one reserves funds.

    Only this and `post` change a stored status.
    """
    if transfer.status == "pending" and status != "pending":
        pending = from_account.debits_pending_minor - transfer.amount_minor
        tx.change(from_account, debits_pending_minor=pending)
    tx.change(transfer, status=status, **more)


def expire_if_due(
    tx: Transaction, transfer: Transfer, from_account: Account, now: datetime
) -> None:
    """Mark a pending transfer expired if its time is up; the stored status follows the clock."""
    status = status_at(transfer, now)
    if status != transfer.status:
        set_status(tx, transfer, from_account, status)


def post(
    tx: Transaction, rules: Rules, transfer: Transfer, parties: Parties, now: datetime
) -> None:
    """Move the money, and mark the transfer posted at `now`.

    A posting that meets the compliance rule is reported at once: the bank's duty does not depend
    on a client that follows the chain.
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


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does."""
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def is_code(bank: Bank, transfer: Transfer, given: str) -> bool:
    """Whether a caller gave the transfer's code under one of the keys; it may be any text."""
    codes = [confirmation_code(key, transfer.transfer_id) for key in bank.code_keys]
    return _is_one_of(codes, given)


def view_secret(bank: Bank, transfer: Transfer) -> str | None:
    """Return the 256-bit secret that confirms the transfer from a view shown to its customer.

    It is bound to the customer, the transfer, its expiry, and the number of failed confirmations,
    so it is valid for one attempt, whatever the result. There is none if only the bank's desk gives
    out codes.
    """
    return None if bank.rules.codes == "desk" else _secret(bank.code_key, transfer)


def is_view_secret(bank: Bank, transfer: Transfer, given: str) -> bool:
    """Whether a caller gave the transfer's secret under one of the keys; it may be any text.

    If no secret is given out, no text is right.
    """
    is_right = _is_one_of([_secret(key, transfer) for key in bank.code_keys], given)
    return bank.rules.codes != "desk" and is_right


def _secret(code_key: bytes, transfer: Transfer) -> str:
    bound_to = (
        "view",
        transfer.customer_id,
        transfer.transfer_id,
        transfer.expires_at.isoformat(),
        str(transfer.declines),
    )
    return hmac.digest(code_key, "\n".join(bound_to).encode(), "sha256").hex()


def _is_one_of(expected: list[str], given: str) -> bool:
    # As bytes: compare_digest refuses non-ASCII text, and callers send any text.
    text = given.encode(errors="surrogatepass")
    is_equal = [hmac.compare_digest(each.encode(), text) for each in expected]
    return any(is_equal)


async def look_at_transfer(bank: Bank, call: Call, transfer_id: str) -> Seen | NotFound:
    """Return the customer's transfer, and change nothing."""

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
    """The code of a pending transfer, for the bank's desk."""

    transfer: TransferView
    code: str
    needs_manager: bool
    """A manager has to approve the transfer before the code is of any use."""


_transfers = TABLES[Transfer].c
_waiting = (has_status(Transfer, "pending"), _transfers.expires_at > sa.bindparam("now"))
_WAITING = records(Transfer, *_waiting, order_by=[_transfers.created_at, _transfers.transfer_id])


async def list_codes(
    bank: Bank, code_key: bytes, now: datetime, customer_id: str | None = None
) -> list[PendingCode]:
    """Return the codes that are valid at `now`, of one customer or of all, oldest first.

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
