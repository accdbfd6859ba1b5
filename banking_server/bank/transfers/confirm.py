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


async def confirm_transfer(
    bank: Bank, call: Call, transfer_id: str, *, customer_agreed: bool, code: str | None
) -> Confirmation:
    """Post a pending transfer, or schedule it if it is dated in the future.

    It takes the customer's own act: `customer_agreed` (they were asked and said yes) or the right
    `code`. A code that is given is checked in any case, and a wrong one counts. What is already
    posted or scheduled is answered as before, and nothing is done again. If the accounts no longer
    allow it, the transfer stays pending.
    """

    async def load_decide_apply(session: AsyncSession) -> Confirmation:
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

        async def view() -> TransferView:
            return await view_transfer(session, transfer, call.at)

        async def receipt() -> Posted:
            rule = compliance_rule(
                bank.rules, amount_minor=transfer.amount_minor, to_account=to_account
            )
            return Posted(await view(), rule)

        match decision:
            case NotPending(status=status):
                transfer.status = status
                match status:
                    case "posted":
                        return await receipt()
                    case "scheduled":
                        return Scheduled(await view())
                    case "expired":
                        return Expired(await view())
                    case "failed":
                        return TransferFailed(await view())
                    case "voided":
                        return Voided(await view())
            case ManagerRefused():
                return ApprovalRefused(await view())
            case DebitBlocked():
                return AccountLocked(await view_account(session, from_account, call.at))
            case ManagerMustDecide(requested=requested):
                return ApprovalOutstanding(await view(), requested)
            case CountWrongCode(attempts_left=attempts_left):
                transfer.wrong_codes += 1
                return WrongCode(await view(), attempts_left)
            case VoidForWrongCodes():
                transfer.wrong_codes += 1
                transfer.status = "voided"
                transfer.reason = TOO_MANY_WRONG_CODES
                return VoidedForCodes(await view())
            case CustomerMustAgree():
                return CodeMissing(await view())
            case Refused():
                return decision
            case Schedule():
                transfer.status = "scheduled"
                return Scheduled(await view())
            case Post():
                await post(session, transfer, from_account, to_account, call.at)
                return await receipt()

    return await in_one_transaction(bank, call, load_decide_apply)
