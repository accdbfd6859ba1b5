"""Confirming a transfer: load it, let `rules.decide_confirmation` decide, and do what it says."""

from datetime import datetime

import sqlalchemy as sa

from banking_server.bank.accounts import view_account
from banking_server.bank.audit import Call, write_and_audit
from banking_server.bank.models import TABLES, Transfer, WrongAttempt
from banking_server.bank.rules import (
    TOO_MANY_WRONG_CODES,
    WRONG_CODES_COUNT_FOR,
    Argument,
    Code,
    Consent,
    CountWrongCode,
    CustomerMustAgree,
    DebitBlocked,
    DeclinedSince,
    GivenCode,
    ManagerMustDecide,
    ManagerRefused,
    NotFound,
    NotPending,
    Post,
    Refused,
    Schedule,
    TooMany,
    ViewSecret,
    VoidForWrongCodes,
    Yes,
    compliance_rule,
    decide_confirmation,
    decide_not_pending,
    excerpt,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Statement, Transaction, command, value
from banking_server.bank.transfers.codes import compare_code, is_view_secret, view_secret
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    CodeMissing,
    Confirmation,
    Declined,
    Expired,
    Posted,
    Scheduled,
    SecretRefused,
    TransferFailed,
    Voided,
    VoidedForCodes,
    WrongCode,
)
from banking_server.bank.transfers.records import (
    Parties,
    post,
    read_available,
    read_parties,
    set_status,
    view_transfer,
)

_AboutTransfer = (
    NotPending
    | ManagerRefused
    | ManagerMustDecide
    | CountWrongCode
    | VoidForWrongCodes
    | CustomerMustAgree
    | DeclinedSince
    | Schedule
    | Post
)
"""The decisions whose outcome shows the transfer: all but a refusal and a locked account."""


async def confirm_transfer(
    bank: Bank, call: Call, transfer_id: str, consent: Consent
) -> Confirmation:
    """Post a pending transfer, or schedule it if it is dated in the future.

    It takes the customer's own act, `consent`; a view's secret is spent by it. A code that is given
    is always checked, even beside a yes, and a wrong one counts. A customer's no goes to
    `decline_transfer` instead. A posted or scheduled transfer gives the same outcome again. If the
    accounts no longer allow it, the transfer stays pending.
    """

    def rule(tx: Transaction) -> Confirmation:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        parties = read_parties(tx, transfer)
        yes_after_declines: int | None = None
        code: str | None = None
        match consent:
            case Yes():
                yes_after_declines, code = consent.after_declines, consent.code
            case Code():
                code = consent.text
            case ViewSecret():
                if not is_view_secret(bank.rules, bank.code_keys, transfer, consent.text):
                    return SecretRefused(view_transfer(transfer, parties, call.at))
                yes_after_declines = transfer.declines
        given = compare_code(bank.code_keys, transfer.transfer_id, code)
        decision = decide_confirmation(
            bank.rules,
            transfer,
            parties.from_account,
            parties.to_account,
            available_minor=read_available(tx, parties.from_account, call.at),
            yes_after_declines=yes_after_declines,
            code=given,
            recent_wrong_codes=(
                0 if given is GivenCode.MISSING else _wrong_codes(tx, call.customer_id, call.at)
            ),
            now=call.at,
        )
        stays_pending = isinstance(decision, Refused | DebitBlocked | ManagerMustDecide)
        if stays_pending and isinstance(consent, ViewSecret):
            tx.change(transfer, declines=transfer.declines + 1)  # The secret is spent all the same.
        match decision:
            case Refused() | TooMany():
                return decision
            case DebitBlocked():
                return AccountLocked(view_account(tx, parties.from_account, call.at))
            case Post():
                post(tx, bank.rules, transfer, parties, call.at)
            case _:
                _apply(tx, decision, transfer, parties, call.at)
        return _shown(bank, decision, transfer, parties, call.at)

    return await write_and_audit(bank, call, rule)


async def decline_transfer(bank: Bank, call: Call, transfer_id: str) -> Confirmation:
    """Remember that the customer was asked to confirm a transfer, and did not.

    The transfer stays as it is; but no other answer to the same question confirms it any more. One
    that is not pending any more gives the outcome that a confirmation would give.
    """

    def rule(tx: Transaction) -> Confirmation:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        parties = read_parties(tx, transfer)
        decision = decide_not_pending(transfer, call.at)
        if decision is None:
            tx.change(transfer, declines=transfer.declines + 1)
            return Declined(view_transfer(transfer, parties, call.at))
        _apply(tx, decision, transfer, parties, call.at)
        return _shown(bank, decision, transfer, parties, call.at)

    return await write_and_audit(bank, call, rule)


def _apply(
    tx: Transaction, decision: _AboutTransfer, transfer: Transfer, parties: Parties, now: datetime
) -> None:
    """Write what was decided about the transfer, but for a posting."""
    wrong_codes = transfer.wrong_codes + 1
    match decision:
        case NotPending(status=status) if status != transfer.status:
            set_status(tx, transfer, parties.from_account, status)
        case Schedule():
            set_status(tx, transfer, parties.from_account, "scheduled")
        case CountWrongCode():
            _count_wrong_code(tx, transfer.customer_id, now)
            tx.change(transfer, wrong_codes=wrong_codes)
        case VoidForWrongCodes():
            _count_wrong_code(tx, transfer.customer_id, now)
            set_status(
                tx,
                transfer,
                parties.from_account,
                "voided",
                wrong_codes=wrong_codes,
                reason=TOO_MANY_WRONG_CODES,
            )


_attempts = TABLES[WrongAttempt]
_own = _attempts.c.customer_id == sa.bindparam("customer_id")
_RECENT = Statement(
    sa.select(sa.func.count())
    .select_from(_attempts)
    .where(_own, _attempts.c.at > sa.bindparam("since")),
    value,
)
_FORGET = command(sa.delete(_attempts).where(_own, _attempts.c.at <= sa.bindparam("since")))


def _wrong_codes(tx: Transaction, customer_id: str, now: datetime) -> int:
    """Return how many wrong codes the customer gave within the last hour."""
    since = now - WRONG_CODES_COUNT_FOR
    return int(tx.first(_RECENT, customer_id=customer_id, since=since) or 0)


def _count_wrong_code(tx: Transaction, customer_id: str, now: datetime) -> None:
    tx.run(_FORGET, customer_id=customer_id, since=now - WRONG_CODES_COUNT_FOR)
    tx.add(WrongAttempt(customer_id=customer_id, at=now))


def _shown(
    bank: Bank, decision: _AboutTransfer, stored: Transfer, parties: Parties, now: datetime
) -> Confirmation:
    """Return the outcome of a decision that was applied, with the transfer as it stands now."""
    transfer = view_transfer(stored, parties, now)
    rule = compliance_rule(
        bank.rules, amount_minor=stored.amount_minor, to_account=parties.to_account
    )
    match decision:
        case Post():
            return Posted(transfer, rule)
        case Schedule():
            return Scheduled(transfer)
        case NotPending(status=status):
            match status:
                case "posted":
                    return Posted(transfer, rule)
                case "scheduled":
                    return Scheduled(transfer)
                case "expired":
                    return Expired(transfer)
                case "failed":
                    return TransferFailed(transfer)
                case "voided":
                    return Voided(transfer)
        case ManagerRefused():
            return ApprovalRefused(transfer)
        case ManagerMustDecide(requested=requested):
            return ApprovalOutstanding(transfer, requested)
        case CountWrongCode(attempts_left=attempts_left):
            return WrongCode(transfer, attempts_left)
        case VoidForWrongCodes():
            return VoidedForCodes(transfer)
        case CustomerMustAgree():
            return CodeMissing(transfer, view_secret(bank.rules, bank.code_key, stored))
        case DeclinedSince():
            return Declined(transfer)
