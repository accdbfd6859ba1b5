"""Confirming a transfer: load it, let `rules.decide_confirmation` decide, and do what it says."""

from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.accounts import view_account
from banking_server.bank.audit import Call, in_one_transaction
from banking_server.bank.models import Transfer
from banking_server.bank.rules import (
    TOO_MANY_WRONG_CODES,
    Argument,
    CountWrongCode,
    CustomerMustAgree,
    DebitBlocked,
    ManagerMustDecide,
    ManagerRefused,
    NotFound,
    NotPending,
    Post,
    Refused,
    Schedule,
    VoidForWrongCodes,
    compliance_rule,
    decide_confirmation,
    excerpt,
)
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transfers.codes import compare_code
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    CodeMissing,
    Confirmation,
    Expired,
    Posted,
    Scheduled,
    TransferFailed,
    TransferView,
    Voided,
    VoidedForCodes,
    WrongCode,
)
from banking_server.bank.transfers.records import post, read_available, read_parties, view_transfer

_AboutTransfer = (
    NotPending
    | ManagerRefused
    | ManagerMustDecide
    | CountWrongCode
    | VoidForWrongCodes
    | CustomerMustAgree
    | Schedule
    | Post
)
"""The decisions whose outcome shows the transfer: all but a refusal and a locked account."""


async def confirm_transfer(
    bank: Bank, call: Call, transfer_id: str, *, customer_agreed: bool, code: str | None
) -> Confirmation:
    """Post a pending transfer, or schedule it if it is dated in the future.

    It takes the customer's own act: `customer_agreed` (they were asked and said yes) or the right
    `code`. A code that is given is always checked, even beside a yes, and a wrong one counts; a
    customer's no never gets here. A posted or scheduled transfer gives the same outcome again. If
    the accounts no longer allow it, the transfer stays pending.
    """

    async def rule(session: AsyncSession) -> Confirmation:
        transfer = await find_owned(session, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        from_account, to_account = await read_parties(session, transfer)
        decision = decide_confirmation(
            bank.rules,
            transfer,
            from_account,
            to_account,
            available_minor=await read_available(session, from_account, call.at),
            customer_agreed=customer_agreed,
            code=compare_code(bank.code_key, transfer.transfer_id, code),
            now=call.at,
        )
        match decision:
            case Refused():
                return decision
            case DebitBlocked():
                return AccountLocked(await view_account(session, from_account, call.at))
            case Post():
                await post(session, transfer, from_account, to_account, call.at)
            case _:
                _apply(decision, transfer)
        return _outcome(
            decision,
            await view_transfer(session, transfer, call.at),
            compliance_rule(bank.rules, amount_minor=transfer.amount_minor, to_account=to_account),
        )

    return await in_one_transaction(bank, call, rule)


def _apply(decision: _AboutTransfer, transfer: Transfer) -> None:
    """Write to the stored transfer what was decided about it, but for a posting."""
    match decision:
        case NotPending(status=status):
            transfer.status = status
        case Schedule():
            transfer.status = "scheduled"
        case CountWrongCode():
            transfer.wrong_codes += 1
        case VoidForWrongCodes():
            transfer.wrong_codes += 1
            transfer.status = "voided"
            transfer.reason = TOO_MANY_WRONG_CODES


def _outcome(
    decision: _AboutTransfer, transfer: TransferView, compliance_rule: str | None
) -> Confirmation:
    """Return the outcome of a decision that was applied; `transfer` is how it stands now."""
    match decision:
        case Post():
            return Posted(transfer, compliance_rule)
        case Schedule():
            return Scheduled(transfer)
        case NotPending(status=status):
            match status:
                case "posted":
                    return Posted(transfer, compliance_rule)
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
            return CodeMissing(transfer)
