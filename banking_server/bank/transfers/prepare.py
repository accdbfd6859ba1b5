"""Preparing a transfer: what is looked at in which order, and the funds it reserves."""

import hashlib
from datetime import UTC, date
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.accounts import find_account, view_account
from banking_server.bank.audit import Call, write_and_audit
from banking_server.bank.ledger import read_funds
from banking_server.bank.models import TABLES, Transfer, new_id
from banking_server.bank.rules import Argument, NotFound, Refused
from banking_server.bank.storage import Bank, find_owned, find_record
from banking_server.bank.transaction import Statement, Transaction, has_status
from banking_server.bank.transfers.codes import confirmation_code, view_secret
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    OverThreshold,
    Preparation,
    Prepared,
    ToAccountMissing,
)
from banking_server.bank.transfers.records import (
    Parties,
    add_pending,
    view_transfer,
)


async def prepare_transfer(
    bank: Bank,
    call: Call,
    *,
    from_account_id: str | None,
    to_account_id: str | None,
    amount: Decimal,
    scheduled_date: str | None,
    memo: str | None,
    expired_transfer_id: str | None = None,
) -> Preparation:
    """Make a pending transfer and reserve its funds, or return the identical one that is pending.

    An amount that nobody can pay is refused first; then the lock is looked at, before everything
    else. `amount` is in major units as it came from the wire; `scheduled_date` is `YYYY-MM-DD`;
    None or today's date means immediately.
    `expired_transfer_id` is a transfer that this one replaces; with the same details it is replaced
    once, so that a repeated call makes no second transfer, whatever became of the first.
    """

    def rule(tx: Transaction) -> Preparation:
        details = rules.check_details(
            bank.rules,
            amount=amount,
            scheduled_date=scheduled_date,
            memo=memo,
            today=call.at.astimezone(UTC).date(),
        )
        if isinstance(details, Refused) and details.field is Argument.AMOUNT:
            return details
        if from_account_id is None:
            is_missing = Refused(Argument.FROM_ACCOUNT_ID, "is missing.")
            return details if isinstance(details, Refused) else is_missing
        can_pay = rules.check_from_account
        from_account = find_account(tx, call, Argument.FROM_ACCOUNT_ID, from_account_id, can_pay)
        if isinstance(from_account, NotFound):
            return from_account
        if rules.is_debit_blocked(from_account):
            return AccountLocked(view_account(tx, from_account, call.at))
        if isinstance(details, Refused):
            return details
        if to_account_id is None:
            view = view_account(tx, from_account, call.at)
            return can_pay(from_account) or ToAccountMissing(view)
        fits = partial(rules.check_parties, from_account)
        to_account = find_account(tx, call, Argument.TO_ACCOUNT_ID, to_account_id, fits)
        if isinstance(to_account, NotFound):
            return to_account
        refused = fits(to_account)
        if refused:
            return refused

        # Look for it before checking funds; else its own reservation would count against it.
        wanted = _Details(from_account.account_id, to_account.account_id, *details)
        pending = tx.all(_PENDING, customer_id=call.customer_id, now=call.at)
        identical = next((transfer_id for transfer_id, has in pending if has == wanted), None)
        transfer = None if identical is None else tx.get(Transfer, identical)
        if transfer is None:
            stopped = rules.check_available(
                from_account,
                amount_minor=details.amount_minor,
                available_minor=read_funds(tx, from_account, call.at).available_minor,
            ) or rules.check_pending_transfers(bank.rules, len(pending))
            if stopped:
                return stopped
            transfer_id = new_id("tr")
            if expired_transfer_id is not None:
                transfer_id = _replacement_id(expired_transfer_id, wanted)
                replaced = find_owned(tx, Transfer, expired_transfer_id, call.customer_id)
                if replaced is None:
                    return NotFound(
                        Argument.EXPIRED_TRANSFER_ID, rules.excerpt(expired_transfer_id)
                    )
                if find_record(tx, Transfer, transfer_id) is not None:
                    return Refused(
                        Argument.EXPIRED_TRANSFER_ID,
                        f"This transfer was prepared again already, as {transfer_id}.",
                        subject=transfer_id,
                    )
            approval_needed = rules.needs_approval(bank.rules, details.amount_minor)
            transfer = Transfer(
                transfer_id=transfer_id,
                customer_id=call.customer_id,
                **wanted._asdict(),
                currency=from_account.currency,
                approval="required" if approval_needed else "none",
                created_at=call.at,
                expires_at=call.at + rules.confirm_within(bank.rules, details.amount_minor),
            )
            add_pending(tx, transfer, from_account)
        shown = view_transfer(transfer, Parties(from_account, to_account), call.at)
        code = None
        if bank.rules.codes == "result":
            code = confirmation_code(bank.code_key, transfer.transfer_id)
        if rules.waits_for_manager(transfer):
            return OverThreshold(shown, code)
        return Prepared(shown, code, view_secret(bank, transfer))

    return await write_and_audit(bank, call, rule)


class _Details(NamedTuple):
    """What two transfers have in common if they are the same one, asked for twice."""

    from_account_id: str
    to_account_id: str
    amount_minor: int
    scheduled_date: date | None
    memo: str | None


def _replacement_id(expired_transfer_id: str, details: _Details) -> str:
    """Return the id of what replaces an expired transfer: the same for the same details."""
    said = repr((expired_transfer_id, *details))
    return f"tr_{hashlib.sha256(said.encode()).hexdigest()[:16]}"


_transfers = TABLES[Transfer].c
_PENDING = Statement(
    sa.select(_transfers.transfer_id, *(_transfers[name] for name in _Details._fields)).where(
        _transfers.customer_id == sa.bindparam("customer_id"),
        has_status(Transfer, "pending"),
        _transfers.expires_at > sa.bindparam("now"),
    ),
    lambda transfer_id, *details: (transfer_id, _Details(*details)),
)
"""All that wait to be confirmed; there are never more than `max_pending_transfers`."""
