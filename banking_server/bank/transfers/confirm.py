"""Confirms, declines and cancels transfers, and posts the scheduled ones that are due."""

from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.accounts import view_account
from banking_server.bank.audit import Call, add_event
from banking_server.bank.ledger import read_funds
from banking_server.bank.models import (
    TABLES,
    WRONG_CODE_OUTCOMES,
    AuditEvent,
    Transfer,
    TransferStatus,
)
from banking_server.bank.rules import (
    CANCELLED_BY_CUSTOMER,
    Code,
    Consent,
    Decision,
    NotFound,
    Refused,
    TooMany,
    ViewSecret,
    Yes,
    check_cancellation,
    check_due_payment,
)
from banking_server.bank.storage import Bank
from banking_server.bank.transaction import Statement, Transaction, has_status, records, value
from banking_server.bank.transfers import outcomes
from banking_server.bank.transfers.outcomes import (
    Cancelled,
    Confirmation,
    Declined,
    Posted,
    TransferView,
)
from banking_server.bank.transfers.records import (
    Parties,
    act_on_transfer,
    expire_if_due,
    is_code,
    is_view_secret,
    post,
    read_parties,
    set_status,
    view_secret,
    view_transfer,
)


async def confirm_transfer(
    bank: Bank, call: Call, transfer_id: str, consent: Consent
) -> Confirmation:
    """Post a pending transfer, or schedule it if it is dated in the future.

    It needs the customer's own act, `consent`, which uses up a view's secret. A code is always
    checked, even beside a yes, and a wrong one counts. A customer's no goes to `decline_transfer`
    instead. A posted or scheduled transfer gives the same outcome again. If the accounts no longer
    allow it, the transfer stays pending.
    """

    def rule(tx: Transaction, transfer: Transfer, parties: Parties) -> Confirmation:
        yes_after_declines: int | None = None
        code: str | None = None
        match consent:
            case Yes():
                yes_after_declines, code = consent.after_declines, consent.code
            case Code():
                code = consent.text
            case ViewSecret():
                if not is_view_secret(bank, transfer, consent.text):
                    return outcomes.SecretRefused(view_transfer(transfer, parties, call.at))
                yes_after_declines = transfer.declines
        code_is_right, wrong_codes = None, 0
        if code is not None:
            code_is_right = is_code(bank, transfer, code)
            wrong_codes = _wrong_codes(tx, call.customer_id, call.at)
        decision = rules.decide_confirmation(
            bank.rules,
            transfer,
            parties.from_account,
            parties.to_account,
            available_minor=read_funds(tx, parties.from_account, call.at).available_minor,
            yes_after_declines=yes_after_declines,
            code_is_right=code_is_right,
            recent_wrong_codes=wrong_codes,
            now=call.at,
        )
        stays_pending = isinstance(decision, Refused) or decision in (
            Decision.DEBIT_BLOCKED,
            Decision.MANAGER_MUST_DECIDE,
        )
        if stays_pending and isinstance(consent, ViewSecret):
            tx.change(transfer, declines=transfer.declines + 1)  # The secret is used up anyway.
        return _carry_out(tx, bank, decision, transfer, parties, call.at)

    return await act_on_transfer(bank, call, transfer_id, rule)


async def decline_transfer(bank: Bank, call: Call, transfer_id: str) -> Confirmation:
    """Record that the customer was asked to confirm a transfer, and did not.

    The transfer stays as it is, but no other answer to the same question can confirm it. If it is
    no longer pending, the outcome is that of a confirmation.
    """

    def rule(tx: Transaction, transfer: Transfer, parties: Parties) -> Confirmation:
        decision = rules.decide_not_pending(transfer, call.at)
        if decision is None:
            tx.change(transfer, declines=transfer.declines + 1)
            return Declined(view_transfer(transfer, parties, call.at))
        return _carry_out(tx, bank, decision, transfer, parties, call.at)

    return await act_on_transfer(bank, call, transfer_id, rule)


def _carry_out(
    tx: Transaction,
    bank: Bank,
    decision: Decision | Refused | TooMany,
    stored: Transfer,
    parties: Parties,
    now: datetime,
) -> Confirmation:
    """Carry out the decision, and return the outcome with the transfer as it is then."""

    def become(status: TransferStatus, **more: Any) -> None:
        set_status(tx, stored, parties.from_account, status, **more)

    def view() -> TransferView:
        return view_transfer(stored, parties, now)

    match decision:
        case Refused() | TooMany():
            return decision
        case Decision.DEBIT_BLOCKED:
            return outcomes.AccountLocked(view_account(tx, parties.from_account, now))
        case Decision.POST:
            post(tx, bank.rules, stored, parties, now)
            return _posted(bank, stored, parties, now)
        case Decision.SCHEDULE:
            become("scheduled")
            return outcomes.Scheduled(view())
        case Decision.NOT_PENDING:
            expire_if_due(tx, stored, parties.from_account, now)
            match stored.status:
                case "posted":
                    return _posted(bank, stored, parties, now)
                case "scheduled":
                    return outcomes.Scheduled(view())
                case "expired":
                    return outcomes.Expired(view())
                case "failed":
                    return outcomes.TransferFailed(view())
                case "voided" | "pending":  # Not "pending": that was handled before.
                    return outcomes.Voided(view())
        case Decision.MANAGER_REFUSED:
            return outcomes.ApprovalRefused(view())
        case Decision.MANAGER_MUST_DECIDE:
            return outcomes.ApprovalOutstanding(view(), stored.approval == "requested")
        case Decision.COUNT_WRONG_CODE:
            tx.change(stored, wrong_codes=stored.wrong_codes + 1)
            return outcomes.WrongCode(view(), bank.rules.max_wrong_codes - stored.wrong_codes)
        case Decision.VOID_FOR_WRONG_CODES:
            become("voided", wrong_codes=stored.wrong_codes + 1, reason=rules.TOO_MANY_WRONG_CODES)
            return outcomes.VoidedForCodes(view())
        case Decision.CUSTOMER_MUST_AGREE:
            return outcomes.CodeMissing(view(), view_secret(bank, stored))
        case Decision.DECLINED_SINCE:
            return Declined(view())


def _posted(bank: Bank, stored: Transfer, parties: Parties, now: datetime) -> Posted:
    amount_minor, to_account = stored.amount_minor, parties.to_account
    rule = rules.compliance_rule(bank.rules, amount_minor=amount_minor, to_account=to_account)
    return Posted(view_transfer(stored, parties, now), rule)


_events = TABLES[AuditEvent]
_WRONG_CODES = Statement(
    sa.select(sa.func.count())
    .select_from(_events)
    .where(
        _events.c.customer_id == sa.bindparam("customer_id"),
        _events.c.at > sa.bindparam("since"),
        sa.text(WRONG_CODE_OUTCOMES),
    ),
    value,
)


def _wrong_codes(tx: Transaction, customer_id: str, now: datetime) -> int:
    """Return how many wrong codes of the last hour the customer's audit trail has."""
    since = now - rules.WRONG_CODES_COUNT_FOR
    return int(tx.first(_WRONG_CODES, customer_id=customer_id, since=since) or 0)


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

    Each has its own transaction, oldest date first. One that can no longer be paid fails, with the
    reason. Returns what this run changed; several may run at once.
    """

    def find_due(tx: Transaction) -> list[Transfer]:
        return [*tx.all(_DUE, as_of=as_of), *tx.all(_OVERDUE, now=now)]

    settled = [await _settle_one(bank, due, as_of, now) for due in await bank.read(find_due)]
    return [view for view in settled if view is not None]


async def _settle_one(bank: Bank, due: Transfer, as_of: date, now: datetime) -> TransferView | None:
    """Settle one transfer; None if another process did so first."""

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
