"""Two-phase transfers: prepare reserves, confirm posts or schedules, cancel voids, time expires.

Each function runs its rule in one write transaction, with its audit event, and returns an outcome:
one small type for each thing that can happen.
"""

import hmac
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.accounts import AccountView, view_account
from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.compliance import add_report
from banking_server.bank.ledger import add_posting, read_funds
from banking_server.bank.models import Account, ApprovalState, Transfer, TransferStatus, new_id
from banking_server.bank.rules import (
    NotFound,
    Refused,
    check_available,
    check_details,
    check_parties,
    compliance_rule,
    excerpt,
    is_debit_blocked,
    is_expired,
    needs_approval,
)
from banking_server.bank.storage import Bank, find_owned

_CANCELLED_BY_CUSTOMER = "cancelled by the customer"


@dataclass(frozen=True)
class TransferView:
    """A transfer as its customer sees it; everything a receipt needs.

    `amount_minor` is in minor units of `currency`. `to_account_holder` is set for external
    payees. A pending transfer past `expires_at` shows as expired.
    """

    transfer_id: str
    from_account_id: str
    from_account_name: str
    to_account_id: str
    to_account_name: str
    to_account_holder: str | None
    amount_minor: int
    currency: str
    scheduled_date: date | None
    memo: str | None
    status: TransferStatus
    reason: str | None
    approval: ApprovalState
    created_at: datetime
    expires_at: datetime
    posted_at: datetime | None


@dataclass(frozen=True)
class AccountLocked:
    """The from-account is locked: nothing may be taken from it, and nothing was stored."""

    account: AccountView

    @property
    def subject(self) -> str:
        """The account, for the audit trail."""
        return self.account.account_id


@dataclass(frozen=True)
class ToAccountMissing:
    """Everything is fine so far, but where should the money go?"""

    account: AccountView
    """The from-account."""

    @property
    def subject(self) -> str:
        """The from-account, for the audit trail."""
        return self.account.account_id


@dataclass(frozen=True)
class _AboutTransfer:
    transfer: TransferView

    @property
    def subject(self) -> str:
        """The transfer, for the audit trail."""
        return self.transfer.transfer_id


@dataclass(frozen=True)
class Prepared(_AboutTransfer):
    """Pending, its funds reserved. `code` is for the customer's eyes only.

    `repeated`: an identical transfer was pending already, and is this one.
    """

    code: str
    repeated: bool


@dataclass(frozen=True)
class OverThreshold(_AboutTransfer):
    """Pending like `Prepared`, but a manager has to approve it before it can be confirmed."""

    code: str
    repeated: bool


@dataclass(frozen=True)
class Posted(_AboutTransfer):
    """The money has moved. The same receipt every time it is asked for.

    `compliance_rule` names the rule under which the posting has to be reported, if one applies.
    """

    compliance_rule: str | None


@dataclass(frozen=True)
class Scheduled(_AboutTransfer):
    """Confirmed, and to be posted on its date. Nothing is reserved meanwhile."""


@dataclass(frozen=True)
class Expired(_AboutTransfer):
    """The confirmation came too late; nothing was moved."""


@dataclass(frozen=True)
class Voided(_AboutTransfer):
    """The transfer was voided earlier, for `transfer.reason`."""


@dataclass(frozen=True)
class TransferFailed(_AboutTransfer):
    """A scheduled transfer that could not be paid on its date, for `transfer.reason`."""


@dataclass(frozen=True)
class WrongCode(_AboutTransfer):
    """That is not the confirmation code; the transfer is still pending."""

    attempts_left: int


@dataclass(frozen=True)
class VoidedForCodes(_AboutTransfer):
    """That was one wrong code too many: the transfer is void from now on."""


@dataclass(frozen=True)
class CodeMissing(_AboutTransfer):
    """Neither the customer's own yes nor a code came with the request."""


@dataclass(frozen=True)
class ApprovalOutstanding(_AboutTransfer):
    """A manager has not decided yet; `requested` says whether one has been asked."""

    requested: bool


@dataclass(frozen=True)
class ApprovalRefused(_AboutTransfer):
    """A manager refused the transfer, which voided it."""


@dataclass(frozen=True)
class Cancelled(_AboutTransfer):
    """The customer cancelled the transfer, now or earlier; nothing was moved."""


Confirmation = (
    Posted
    | Scheduled
    | NotFound
    | Expired
    | Voided
    | TransferFailed
    | WrongCode
    | VoidedForCodes
    | CodeMissing
    | ApprovalOutstanding
    | ApprovalRefused
    | AccountLocked
    | Refused
)
"""What can come of a confirmation."""
Preparation = AccountLocked | NotFound | Refused | ToAccountMissing | Prepared | OverThreshold
"""What can come of preparing a transfer."""


async def find_transfer(
    bank: Bank, customer_id: str, transfer_id: str, now: datetime
) -> TransferView | None:
    """Return one of the customer's transfers. Not audited: for questions put to the customer."""

    async def work(session: AsyncSession) -> TransferView | None:
        transfer = await find_owned(session, Transfer, transfer_id, customer_id)
        return None if transfer is None else await view_transfer(session, transfer, now)

    return await bank.read(work)


async def prepare_transfer(
    bank: Bank,
    call: Call,
    *,
    from_account_id: str,
    to_account_id: str | None,
    amount: Decimal,
    scheduled_date: str | None,
    memo: str | None,
) -> Preparation:
    """Make a pending transfer and reserve its funds, or return the identical one that is pending.

    A locked from-account is answered before anything else is looked at. `amount` is in major
    units as it came from the wire; `scheduled_date` is `YYYY-MM-DD`, None or today for now.
    """

    async def rule(session: AsyncSession) -> Preparation:
        from_account = await find_owned(session, Account, from_account_id, call.customer_id)
        if from_account is None:
            return NotFound("fromAccountId", excerpt(from_account_id))
        if is_debit_blocked(from_account):
            return AccountLocked(await view_account(session, from_account, call.at))
        details = check_details(
            bank.rules,
            amount=amount,
            scheduled_date=scheduled_date,
            memo=memo,
            today=call.at.astimezone(UTC).date(),
        )
        if isinstance(details, Refused):
            return details
        if to_account_id is None:
            return ToAccountMissing(await view_account(session, from_account, call.at))
        to_account = await find_owned(session, Account, to_account_id, call.customer_id)
        if to_account is None:
            return NotFound("toAccountId", excerpt(to_account_id))
        refused = check_parties(from_account, to_account)
        if refused:
            return refused

        # Looked for before the funds are: its own reservation must not stand in its way.
        found = await session.exec(
            select(Transfer).where(
                Transfer.customer_id == call.customer_id,
                Transfer.status == "pending",
                col(Transfer.expires_at) > call.at,
                Transfer.from_account_id == from_account.account_id,
                Transfer.to_account_id == to_account.account_id,
                Transfer.amount_minor == details.amount_minor,
                col(Transfer.scheduled_date).is_not_distinct_from(details.scheduled_date),
                col(Transfer.memo).is_not_distinct_from(details.memo),
            )
        )
        transfer = found.first()
        repeated = transfer is not None
        if transfer is None:
            funds = await read_funds(session, [from_account.account_id], call.at)
            refused = check_available(
                from_account,
                amount_minor=details.amount_minor,
                available_minor=funds[from_account.account_id].available_minor,
            )
            if refused:
                return refused
            approval_needed = needs_approval(bank.rules, details.amount_minor)
            wait = bank.rules.approval_expiry if approval_needed else bank.rules.transfer_expiry
            transfer = Transfer(
                transfer_id=new_id("tr"),
                customer_id=call.customer_id,
                from_account_id=from_account.account_id,
                to_account_id=to_account.account_id,
                amount_minor=details.amount_minor,
                currency=from_account.currency,
                scheduled_date=details.scheduled_date,
                memo=details.memo,
                approval="required" if approval_needed else "none",
                created_at=call.at,
                expires_at=call.at + wait,
            )
            session.add(transfer)
        view = await view_transfer(session, transfer, call.at)
        outcome = OverThreshold if transfer.approval in ("required", "requested") else Prepared
        return outcome(view, confirmation_code(bank.code_key, transfer.transfer_id), repeated)

    return await in_one_transaction(bank, call, rule)


async def confirm_transfer(
    bank: Bank, call: Call, transfer_id: str, *, customer_agreed: bool, code: str | None
) -> Confirmation:
    """Post a pending transfer, or schedule it if it is dated in the future.

    It takes the customer's own act: `customer_agreed` (they were asked and said yes) or the right
    `code`. A code that is given is checked in any case, and a wrong one counts. What is already
    posted or scheduled is answered as before, and nothing is done again. Where the accounts no
    longer allow it, the transfer stays pending.
    """

    async def rule(session: AsyncSession) -> Confirmation:
        transfer = await find_owned(session, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound("transferId", excerpt(transfer_id))
        from_account, to_account = await _parties(session, transfer)
        expire_if_due(transfer, call.at)

        async def view() -> TransferView:
            return await view_transfer(session, transfer, call.at)

        match transfer.status:
            case "posted":
                return Posted(await view(), _compliance_rule(bank, transfer, to_account))
            case "scheduled":
                return Scheduled(await view())
            case "expired":
                return Expired(await view())
            case "failed":
                return TransferFailed(await view())
            case "voided":
                outcome = ApprovalRefused if transfer.approval == "refused" else Voided
                return outcome(await view())
            case "pending":
                pass

        if is_debit_blocked(from_account):
            return AccountLocked(await view_account(session, from_account, call.at))
        if transfer.approval in ("required", "requested"):
            return ApprovalOutstanding(await view(), requested=transfer.approval == "requested")
        if code is not None and not _is_code(bank.code_key, transfer.transfer_id, code):
            transfer.wrong_codes += 1
            attempts_left = bank.rules.max_wrong_codes - transfer.wrong_codes
            if attempts_left > 0:
                return WrongCode(await view(), attempts_left)
            transfer.status = "voided"
            transfer.reason = "too many wrong confirmation codes"
            return VoidedForCodes(await view())
        if code is None and not customer_agreed:
            return CodeMissing(await view())
        refused = await _check_payable(session, transfer, from_account, to_account, call.at)
        if refused:
            return refused
        if transfer.scheduled_date and transfer.scheduled_date > call.at.astimezone(UTC).date():
            transfer.status = "scheduled"
            return Scheduled(await view())
        await _post(session, transfer, from_account, to_account, call.at)
        return Posted(await view(), _compliance_rule(bank, transfer, to_account))

    return await in_one_transaction(bank, call, rule)


async def cancel_transfer(
    bank: Bank, call: Call, transfer_id: str
) -> Cancelled | NotFound | Refused:
    """Void a pending or scheduled transfer. Cancelling again gives the same answer."""

    async def rule(session: AsyncSession) -> Cancelled | NotFound | Refused:
        transfer = await find_owned(session, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound("transferId", excerpt(transfer_id))
        expire_if_due(transfer, call.at)
        if transfer.status in ("pending", "scheduled"):
            transfer.status = "voided"
            transfer.reason = _CANCELLED_BY_CUSTOMER
        if transfer.status == "voided" and transfer.reason == _CANCELLED_BY_CUSTOMER:
            return Cancelled(await view_transfer(session, transfer, call.at))
        return refuse_because_of_status(transfer, "transferId")

    return await in_one_transaction(bank, call, rule)


async def settle(bank: Bank, *, as_of: date, now: datetime) -> list[TransferView]:
    """Post the scheduled transfers due by `as_of`, and mark the overdue pending ones expired.

    Each in its own transaction; oldest date first. One that can no longer be paid becomes failed
    with the reason. A posting that meets the compliance rule is reported with it, because nobody is
    there to follow a chain. Returns what this run changed; several may run at once.
    """

    async def find_due(session: AsyncSession) -> list[str]:
        scheduled = await session.exec(
            select(Transfer.transfer_id)
            .where(Transfer.status == "scheduled", col(Transfer.scheduled_date) <= as_of)
            .order_by(
                col(Transfer.scheduled_date), col(Transfer.created_at), col(Transfer.transfer_id)
            )
        )
        overdue = await session.exec(
            select(Transfer.transfer_id)
            .where(Transfer.status == "pending", col(Transfer.expires_at) <= now)
            .order_by(col(Transfer.expires_at), col(Transfer.transfer_id))
        )
        return [*scheduled.all(), *overdue.all()]

    settled = [
        await _settle_one(bank, transfer_id, as_of, now)
        for transfer_id in await bank.read(find_due)
    ]
    return [view for view in settled if view is not None]


async def view_transfer(session: AsyncSession, transfer: Transfer, now: datetime) -> TransferView:
    """Return the transfer as its customer sees it at `now`."""
    from_account, to_account = await _parties(session, transfer)
    overdue = transfer.status == "pending" and is_expired(transfer.expires_at, now)
    return TransferView(
        transfer_id=transfer.transfer_id,
        from_account_id=from_account.account_id,
        from_account_name=from_account.account_name,
        to_account_id=to_account.account_id,
        to_account_name=to_account.account_name,
        to_account_holder=to_account.account_holder,
        amount_minor=transfer.amount_minor,
        currency=transfer.currency,
        scheduled_date=transfer.scheduled_date,
        memo=transfer.memo,
        status="expired" if overdue else transfer.status,
        reason=transfer.reason,
        approval=transfer.approval,
        created_at=transfer.created_at,
        expires_at=transfer.expires_at,
        posted_at=transfer.posted_at,
    )


def confirmation_code(code_key: bytes, transfer_id: str) -> str:
    """Return the transfer's six-digit code, derived as HOTP (RFC 4226) does.

    Nothing secret has to be stored, and a repeated prepare gives the same code.
    """
    digest = hmac.digest(code_key, transfer_id.encode(), "sha256")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def expire_if_due(transfer: Transfer, now: datetime) -> None:
    """Mark a pending transfer expired if its time has come; the stored status follows the clock."""
    if transfer.status == "pending" and is_expired(transfer.expires_at, now):
        transfer.status = "expired"


def refuse_because_of_status(transfer: Transfer, field: str) -> Refused:
    """Say that the transfer is past changing, and why."""
    why = f" ({transfer.reason})" if transfer.reason else ""
    return Refused(
        field,
        f"The transfer {transfer.transfer_id} is {transfer.status}{why}: "
        "that cannot be changed any more.",
        subject=transfer.transfer_id,
    )


def _is_code(code_key: bytes, transfer_id: str, given: str) -> bool:
    # As bytes: compare_digest refuses other text than ASCII, and callers send any text.
    expected = confirmation_code(code_key, transfer_id).encode()
    return hmac.compare_digest(expected, given.encode(errors="surrogatepass"))


def _compliance_rule(bank: Bank, transfer: Transfer, to_account: Account) -> str | None:
    return compliance_rule(bank.rules, amount_minor=transfer.amount_minor, to_account=to_account)


async def _parties(session: AsyncSession, transfer: Transfer) -> tuple[Account, Account]:
    """The from-account and the to-account; foreign keys see to it that they are there."""
    return (
        await session.get_one(Account, transfer.from_account_id),
        await session.get_one(Account, transfer.to_account_id),
    )


async def _check_payable(
    session: AsyncSession,
    transfer: Transfer,
    from_account: Account,
    to_account: Account,
    now: datetime,
) -> Refused | None:
    """Check again what held when the transfer was prepared: flags, currencies, funds."""
    refused = check_parties(from_account, to_account)
    if refused is None:
        funds = (await read_funds(session, [from_account.account_id], now))[from_account.account_id]
        own_reservation = transfer.amount_minor if transfer.status == "pending" else 0
        refused = check_available(
            from_account,
            amount_minor=transfer.amount_minor,
            available_minor=funds.available_minor + own_reservation,
        )
    return refused and replace(refused, subject=transfer.transfer_id)


async def _post(
    session: AsyncSession,
    transfer: Transfer,
    from_account: Account,
    to_account: Account,
    now: datetime,
) -> None:
    transfer.status = "posted"
    transfer.posted_at = now
    await add_posting(
        session,
        kind="transfer",
        description=transfer.memo or "Transfer",
        posted_at=now,
        debit=from_account,
        credit=to_account,
        amount_minor=transfer.amount_minor,
        transfer_id=transfer.transfer_id,
    )


async def _settle_one(
    bank: Bank, transfer_id: str, as_of: date, now: datetime
) -> TransferView | None:
    """Settle one transfer; None if another process was first and nothing is left to do."""

    async def work(session: AsyncSession) -> TransferView | None:
        transfer = await session.get_one(Transfer, transfer_id)
        before = transfer.status
        expire_if_due(transfer, now)
        day = transfer.scheduled_date
        if transfer.status == "scheduled" and day is not None and day <= as_of:
            await _pay_scheduled(session, bank, transfer, now)
        if transfer.status == before:
            return None
        call = Call(customer_id=transfer.customer_id, tool="settle", at=now)
        add_event(session, call, transfer.status, transfer.transfer_id)
        return await view_transfer(session, transfer, now)

    return await bank.write(work)


async def _pay_scheduled(
    session: AsyncSession, bank: Bank, transfer: Transfer, now: datetime
) -> None:
    from_account, to_account = await _parties(session, transfer)
    if is_debit_blocked(from_account):
        reason = f"{from_account.account_name} ({from_account.account_id}) is locked."
    elif refused := await _check_payable(session, transfer, from_account, to_account, now):
        reason = refused.message
    else:
        await _post(session, transfer, from_account, to_account, now)
        rule = _compliance_rule(bank, transfer, to_account)
        if rule is not None:
            await add_report(session, transfer, rule, now)
        return
    transfer.status = "failed"
    transfer.reason = reason
