"""Prepares a transfer: the checks, in their order, and the reserved funds."""

import hashlib
from datetime import UTC
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.accounts import accounts_that_pass, find_account, view_account
from banking_server.bank.audit import Call, write_and_audit
from banking_server.bank.ledger import read_funds
from banking_server.bank.models import TABLES, Account, Transfer, new_id
from banking_server.bank.rules import Argument, NotFound, Refused, TransferDetails
from banking_server.bank.storage import Bank, find_owned, find_record
from banking_server.bank.transaction import Transaction, has_status, records
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    AccountNeeded,
    OverThreshold,
    Preparation,
    Prepared,
)
from banking_server.bank.transfers.records import (
    Parties,
    add_pending,
    confirmation_code,
    view_secret,
    view_transfer,
)


class Wish(NamedTuple):
    """The customer's request: major units as on the wire, a day as `YYYY-MM-DD`.

    None or today's date means immediately. If an account is None, the customer still has to choose
    it.
    """

    amount: Decimal
    scheduled_date: str | None
    memo: str | None
    from_account_id: str | None
    to_account_id: str | None = None


async def find_needed_account(bank: Bank, call: Call, wish: Wish) -> AccountNeeded | None:
    """Return the account that the customer has to choose next. Nothing is audited.

    None if both are given, or if `prepare_transfer` would refuse the request in any case.
    """
    outcome = await bank.read(lambda tx: _checked(bank, tx, call, wish))
    return outcome if isinstance(outcome, AccountNeeded) else None


async def prepare_transfer(
    bank: Bank, call: Call, wish: Wish, *, expired_transfer_id: str | None = None
) -> Preparation:
    """Make a pending transfer and reserve its funds, or return the identical one that is pending.

    An amount that nobody can pay is refused first; then comes the lock, before everything else.
    `expired_transfer_id` is a transfer that this one replaces. With the same details it is replaced
    only once, so a repeated call makes no second transfer, whatever happened to the first.
    """

    def rule(tx: Transaction) -> Preparation:
        checked = _checked(bank, tx, call, wish)
        if not isinstance(checked, tuple):
            return checked
        from_account, to_account, details = checked

        # Look for it before checking funds; else its own reservation would count against it.
        wanted = (from_account.account_id, to_account.account_id, *details)
        pending = tx.all(_PENDING, customer_id=call.customer_id, now=call.at)
        transfer = next((each for each in pending if _details_of(each) == wanted), None)
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
                from_account_id=from_account.account_id,
                to_account_id=to_account.account_id,
                **details._asdict(),
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


def _checked(
    bank: Bank, tx: Transaction, call: Call, wish: Wish
) -> tuple[Account, Account, TransferDetails] | AccountLocked | AccountNeeded | NotFound | Refused:
    """Return the two accounts and the details, or the first thing that stops the transfer."""
    details = rules.check_details(
        bank.rules,
        amount=wish.amount,
        scheduled_date=wish.scheduled_date,
        memo=wish.memo,
        today=call.at.astimezone(UTC).date(),
    )
    if isinstance(details, Refused) and details.field is Argument.AMOUNT:
        return details
    can_pay = rules.check_from_account
    if wish.from_account_id is None:
        if isinstance(details, Refused):
            return details
        return AccountNeeded(Argument.FROM_ACCOUNT_ID, accounts_that_pass(tx, call, can_pay))
    field = Argument.FROM_ACCOUNT_ID
    from_account = find_account(tx, call, field, wish.from_account_id, can_pay)
    if isinstance(from_account, NotFound):
        return from_account
    if rules.is_debit_blocked(from_account):
        return AccountLocked(view_account(tx, from_account, call.at))
    if isinstance(details, Refused):
        return details
    fits = partial(rules.check_parties, from_account)
    if wish.to_account_id is None:
        refused = can_pay(from_account)
        payable = accounts_that_pass(tx, call, fits)
        return refused or AccountNeeded(Argument.TO_ACCOUNT_ID, payable)
    to_account = find_account(tx, call, Argument.TO_ACCOUNT_ID, wish.to_account_id, fits)
    if isinstance(to_account, NotFound):
        return to_account
    return fits(to_account) or (from_account, to_account, details)


_details_of = attrgetter("from_account_id", "to_account_id", *TransferDetails._fields)
"""Returns the details that make two requests the same transfer."""


def _replacement_id(expired_transfer_id: str, details: tuple[object, ...]) -> str:
    """Return the id of an expired transfer's replacement: the same details have the same id."""
    text = repr((expired_transfer_id, *details))
    return f"tr_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


_transfers = TABLES[Transfer].c
_PENDING = records(
    Transfer,
    _transfers.customer_id == sa.bindparam("customer_id"),
    has_status(Transfer, "pending"),
    _transfers.expires_at > sa.bindparam("now"),
)
"""All pending transfers; there are never more than `max_pending_transfers`."""
