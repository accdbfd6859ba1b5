"""Preparing a transfer: what is looked at in which order, and the funds it reserves."""

from datetime import UTC
from decimal import Decimal

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.accounts import view_account
from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.models import Account, Transfer, new_id
from banking_server.bank.rules import (
    Argument,
    NotFound,
    Refused,
    TransferDetails,
    check_available,
    check_details,
    check_from_account,
    check_parties,
    confirm_within,
    excerpt,
    is_debit_blocked,
    needs_approval,
    waits_for_manager,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transfers.codes import confirmation_code
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    OverThreshold,
    Preparation,
    Prepared,
    ToAccountMissing,
)
from banking_server.bank.transfers.records import read_available, view_transfer


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

    The lock is checked before everything else. `amount` is in major units as it came from the
    wire; `scheduled_date` is `YYYY-MM-DD`; None or today's date means immediately.
    """

    async def rule(session: AsyncSession) -> Preparation:
        from_account = await find_owned(session, Account, from_account_id, call.customer_id)
        if from_account is None:
            return NotFound(Argument.FROM_ACCOUNT_ID, excerpt(from_account_id))
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
            return check_from_account(from_account) or ToAccountMissing(
                await view_account(session, from_account, call.at)
            )
        to_account = await find_owned(session, Account, to_account_id, call.customer_id)
        if to_account is None:
            return NotFound(Argument.TO_ACCOUNT_ID, excerpt(to_account_id))
        refused = check_parties(from_account, to_account)
        if refused:
            return refused

        # Look for it before checking funds; else its own reservation would count against it.
        transfer = await _find_identical(session, call, from_account, to_account, details)
        if transfer is None:
            refused = check_available(
                from_account,
                amount_minor=details.amount_minor,
                available_minor=await read_available(session, from_account, call.at),
            )
            if refused:
                return refused
            approval_needed = needs_approval(bank.rules, details.amount_minor)
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
                expires_at=call.at + confirm_within(bank.rules, details.amount_minor),
            )
            session.add(transfer)
        outcome = OverThreshold if waits_for_manager(transfer) else Prepared
        return outcome(
            await view_transfer(session, transfer, call.at),
            confirmation_code(bank.code_key, transfer.transfer_id),
        )

    return await in_one_transaction(bank, call, rule)


async def record_locked_attempt(bank: Bank, call: Call, account_id: str) -> AccountLocked | None:
    """Audit an attempt to transfer from a locked account.

    For a call whose other arguments cannot be read. Returns None, and leaves nothing in the audit
    trail, if the customer has no such account or it is not locked.
    """

    async def work(session: AsyncSession) -> AccountLocked | None:
        account = await find_owned(session, Account, account_id, call.customer_id)
        if account is None or not is_debit_blocked(account):
            return None
        outcome = AccountLocked(await view_account(session, account, call.at))
        add_event(session, call, outcome.recorded_as, outcome.subject)
        return outcome

    return await bank.write(work)


async def _find_identical(
    session: AsyncSession,
    call: Call,
    from_account: Account,
    to_account: Account,
    details: TransferDetails,
) -> Transfer | None:
    """Return the customer's pending transfer with all of these details, if there is one."""
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
    return found.first()
