"""Moving money: prepare a transfer, then confirm or cancel it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    Resolve,
)
from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import accounts as bank_accounts
from banking_server.bank import transfers as bank_transfers
from banking_server.bank.accounts import AccountView
from banking_server.bank.money import format_money, to_decimal
from banking_server.bank.rules import NotFound, Refused, check_details
from banking_server.bank.transfers import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    Cancelled,
    CodeMissing,
    Confirmation,
    Expired,
    OverThreshold,
    Posted,
    Prepared,
    Scheduled,
    ToAccountMissing,
    TransferFailed,
    TransferView,
    Voided,
    VoidedForCodes,
    WrongCode,
)
from banking_server.tools.amounts import AmountIn, AmountOut
from banking_server.tools.answers import Structured, answer, refusal, refused, text
from banking_server.tools.asking import Agreement, Option, Pick, can_ask, picker
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import bank_tool
from banking_server.tools.scopes import TRANSFER_SCOPE


class ChoiceOut(Structured):
    """One account that can be chosen."""

    account_id: str
    account_name: str
    account_type: str
    currency: str


class TransferOut(Structured):
    """Where a transfer stands; or, where there is none yet, what is needed to prepare it."""

    status: Literal[
        "pending",
        "scheduled",
        "posted",
        "voided",
        "expired",
        "failed",
        "account_locked",
        "account_needed",
        "confirmation_needed",
        "declined",
    ] = Field(
        description="pending, scheduled, posted, voided, expired, failed: the transfer's own. "
        "account_locked: an agent has to help. account_needed: choose one of choices. "
        "confirmation_needed: the customer has to confirm. declined: the customer did not answer "
        "or said no."
    )
    transfer_id: str | None = None
    from_account_id: str | None = None
    to_account_id: str | None = None
    amount: AmountOut | None = None
    currency: str | None = None
    scheduled_date: date | None = None
    memo: str | None = None
    approval: Literal["none", "required", "requested", "granted", "refused"] | None = Field(
        default=None, description="Where the transfer stands with the manager."
    )
    created_at: datetime | None = None
    expires_at: datetime | None = Field(
        default=None, description="A pending transfer must be confirmed before."
    )
    posted_at: datetime | None = None
    account_id: str | None = Field(default=None, description="The locked account.")
    account_name: str | None = Field(default=None, description="The locked account's name.")
    field: str | None = Field(default=None, description="The argument that is still needed.")
    choices: list[ChoiceOut] | None = Field(default=None, description="What it may be.")


@dataclass(frozen=True)
class Chosen:
    """The account is known: given as an argument, or picked."""

    account_id: str


@dataclass(frozen=True)
class Choices:
    """The account is not known, and this client cannot be asked: offer what it may be."""

    field: str
    question: str
    accounts: Sequence[AccountView]


@dataclass(frozen=True)
class NotAsked:
    """There is no need to know: the call ends for another reason."""


FROM_QUESTION = "Which account should the money be taken from?"
TO_QUESTION = "Which account should the money be sent to?"


def _ask(
    ctx: Context[Any, Any], field: str, question: str, accounts: Sequence[AccountView]
) -> Choices | Elicit[Pick]:
    if not accounts or not can_ask(ctx):
        return Choices(field, question, accounts)
    options = [
        Option(
            account.account_id, f"{account.account_name} ({account.account_id}), {account.currency}"
        )
        for account in accounts
    ]
    return Elicit(question, picker("Account", options))


async def ask_from_account(
    fromAccountId: str | None,
    amount: AmountIn,
    scheduledDate: str | None,
    memo: str | None,
    ctx: Context[Any, Any],
) -> Chosen | Choices | NotAsked | Elicit[Pick]:
    """Ask which account to take the money from, unless it is given."""
    if fromAccountId is not None:
        return Chosen(fromAccountId)
    bank, call = current_call()
    details = check_details(
        bank.rules, amount=amount, scheduled_date=scheduledDate, memo=memo, today=call.at.date()
    )
    if isinstance(details, Refused):
        # Nobody should pick accounts for a transfer that cannot be.
        return NotAsked()
    accounts = await bank_accounts.debit_accounts(bank, call.customer_id, call.at)
    return _ask(ctx, "fromAccountId", FROM_QUESTION, accounts)


async def ask_to_account(
    toAccountId: str | None,
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)],
    amount: AmountIn,
    scheduledDate: str | None,
    memo: str | None,
    ctx: Context[Any, Any],
) -> Chosen | Choices | NotAsked | Elicit[Pick]:
    """Ask which account to send the money to, unless it is given or the call ends before."""
    if toAccountId is not None:
        return Chosen(toAccountId)
    from_id = _account_id(chosen_from)
    if from_id is None:
        return NotAsked()
    bank, call = current_call()
    source = await bank_accounts.find_account(bank, call.customer_id, from_id, call.at)
    details = check_details(
        bank.rules, amount=amount, scheduled_date=scheduledDate, memo=memo, today=call.at.date()
    )
    if source is None or source.is_locked or isinstance(details, Refused):
        return NotAsked()
    accounts = await bank_accounts.credit_accounts(bank, call.customer_id, call.at)
    return _ask(
        ctx,
        "toAccountId",
        TO_QUESTION,
        [
            account
            for account in accounts
            if account.account_id != from_id and account.currency == source.currency
        ],
    )


def _account_id(chosen: ElicitationResult[Any]) -> str | None:
    if not isinstance(chosen, AcceptedElicitation):
        return None
    if isinstance(chosen.data, Pick):
        return chosen.data.picked
    return chosen.data.account_id if isinstance(chosen.data, Chosen) else None


async def answer_locked_account(arguments: dict[str, Any]) -> CallToolResult | None:
    """Answer a locked from-account, whatever is wrong with the rest of the arguments."""
    from_id = arguments.get("fromAccountId")
    if not isinstance(from_id, str):
        return None
    bank, call = current_call()
    source = await bank_accounts.find_account(bank, call.customer_id, from_id, call.at)
    if source is None or not source.is_locked:
        return None
    # The bank looks at nothing else then, so there is no need to have it.
    outcome = await bank_transfers.prepare_transfer(
        bank,
        call,
        from_account_id=from_id,
        to_account_id=None,
        amount=Decimal(0),
        scheduled_date=None,
        memo=None,
    )
    return _locked(outcome) if isinstance(outcome, AccountLocked) else None


@bank_tool(
    title="Prepare Money Transfer", scope=TRANSFER_SCOPE, before_refusal=answer_locked_account
)
async def prepare_money_transfer(
    amount: Annotated[
        AmountIn,
        Field(description="How much, in the accounts' currency, with at most two decimals: 25.50."),
    ],
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)],
    chosen_to: Annotated[ElicitationResult[Any], Resolve(ask_to_account)],
    fromAccountId: Annotated[
        str | None,
        Field(description="Id of the account to take the money from; asked for if missing."),
    ] = None,
    toAccountId: Annotated[
        str | None,
        Field(description="Id of the account or payee to send it to; asked for if missing."),
    ] = None,
    scheduledDate: Annotated[
        str | None,
        Field(description="When to transfer, as YYYY-MM-DD, at most a year ahead; now if missing."),
    ] = None,
    memo: Annotated[
        str | None, Field(description="A note for the statement, at most 140 characters.")
    ] = None,
) -> Annotated[CallToolResult, TransferOut]:
    """Prepare a transfer between the customer's accounts, or to one of their payees. The money
    is reserved but does not move before the customer confirms the transfer with
    confirm_or_cancel_money_transfer. Leave an account out if the customer has not named it."""
    bank, call = current_call()
    from_id, to_id = _account_id(chosen_from), _account_id(chosen_to)
    if from_id is None:
        details = check_details(
            bank.rules, amount=amount, scheduled_date=scheduledDate, memo=memo, today=call.at.date()
        )
        return refused(details) if isinstance(details, Refused) else _undecided(chosen_from)
    if to_id is None and not _needs_no_answer(chosen_to):
        return _undecided(chosen_to)
    outcome = await bank_transfers.prepare_transfer(
        bank,
        call,
        from_account_id=from_id,
        to_account_id=to_id,
        amount=amount,
        scheduled_date=scheduledDate,
        memo=memo,
    )
    match outcome:
        case AccountLocked():
            return _locked(outcome)
        case Prepared() | OverThreshold():
            return _prepared(outcome)
        case ToAccountMissing():
            return refusal("refused", "toAccountId", "toAccountId: is missing.")
        case Refused() | NotFound():
            return refused(outcome)


def _needs_no_answer(chosen: ElicitationResult[Any]) -> bool:
    return isinstance(chosen, AcceptedElicitation) and isinstance(chosen.data, NotAsked)


def _undecided(chosen: ElicitationResult[Any]) -> CallToolResult:
    """Answer where an account is still open: offer the choices, or accept that there is none."""
    if isinstance(chosen, AcceptedElicitation) and isinstance(chosen.data, Choices):
        choices = chosen.data
        if not choices.accounts:
            return refusal(
                "refused", choices.field, f"{choices.field}: you have no account that it could be."
            )
        lines = [f"- {account.account_name}: {account.account_id}" for account in choices.accounts]
        return answer(
            choices,
            "\n".join([f"{choices.question} Call again with {choices.field}:", *lines]),
            TransferOut(
                status="account_needed",
                field=choices.field,
                choices=[
                    ChoiceOut(
                        account_id=account.account_id,
                        account_name=account.account_name,
                        account_type=account.account_type,
                        currency=account.currency,
                    )
                    for account in choices.accounts
                ],
            ),
        )
    return answer(
        chosen,
        "No transfer was prepared, because no account was chosen.",
        TransferOut(status="declined"),
    )


def _locked(outcome: AccountLocked) -> CallToolResult:
    account = outcome.account
    return answer(
        outcome,
        [
            text(
                f"I'm sorry, but your {account.account_name} account ({account.account_id}) is "
                "currently locked. You'll need to speak with a customer service agent to resolve "
                "this issue before you can transfer funds from this account.",
                "user",
            )
        ],
        TransferOut(
            status="account_locked",
            account_id=account.account_id,
            account_name=account.account_name,
        ),
    )


def _prepared(outcome: Prepared | OverThreshold) -> CallToolResult:
    transfer = outcome.transfer
    words = (
        f"{_summary(transfer)} is prepared, and the money is reserved until "
        f"{transfer.expires_at:%Y-%m-%d %H:%M} UTC. "
    )
    if isinstance(outcome, OverThreshold) and transfer.approval != "granted":
        words += "A manager has to approve it before the customer can confirm it."
    else:
        words += "It is not made before the customer confirms it."
    code = f"Your confirmation code for transfer {transfer.transfer_id} is {outcome.code}."
    return answer(outcome, [text(words), text(code, "user")], _transfer(transfer))


def _summary(transfer: TransferView) -> str:
    when = f" on {transfer.scheduled_date}" if transfer.scheduled_date else ""
    amount = format_money(transfer.amount_minor, transfer.currency)
    return (
        f"Transfer {transfer.transfer_id} of {amount} from {transfer.from_account_name} "
        f"to {transfer.to_account_name}{when}"
    )


def _transfer(
    transfer: TransferView, status: Literal["confirmation_needed"] | None = None
) -> TransferOut:
    return TransferOut(
        status=status or transfer.status,
        transfer_id=transfer.transfer_id,
        from_account_id=transfer.from_account_id,
        to_account_id=transfer.to_account_id,
        amount=to_decimal(transfer.amount_minor),
        currency=transfer.currency,
        scheduled_date=transfer.scheduled_date,
        memo=transfer.memo,
        approval=transfer.approval,
        created_at=transfer.created_at,
        expires_at=transfer.expires_at,
        posted_at=transfer.posted_at,
    )


async def ask_to_confirm(
    transferId: str, action: str, ctx: Context[Any, Any]
) -> NotAsked | Elicit[Agreement]:
    """Ask the customer to confirm, where there is something to confirm and they can be asked."""
    bank, call = current_call()
    if action != "confirm" or not can_ask(ctx):
        return NotAsked()
    transfer = await bank_transfers.find_transfer(bank, call.customer_id, transferId, call.at)
    if (
        transfer is None
        or transfer.status != "pending"
        or transfer.approval not in ("none", "granted")
    ):
        return NotAsked()
    return Elicit(f"{_summary(transfer)}: confirm it?", Agreement)


@bank_tool(title="Confirm or Cancel Money Transfer", scope=TRANSFER_SCOPE, destructive=True)
async def confirm_or_cancel_money_transfer(
    transferId: Annotated[str, Field(description="The id that prepare_money_transfer gave.")],
    action: Annotated[
        Literal["confirm", "cancel"],
        Field(description="confirm makes the transfer, cancel gives the reserved money back."),
    ],
    agreement: Annotated[ElicitationResult[Any], Resolve(ask_to_confirm)],
    confirmationCode: Annotated[
        str | None,
        Field(
            description="The six digits that the customer was shown. Never guess it: needed only "
            "where the customer cannot be asked directly."
        ),
    ] = None,
) -> Annotated[CallToolResult, TransferOut]:
    """Confirm or cancel a prepared transfer. Confirming moves the money (or schedules it) and
    takes the customer's own yes, or the code they were shown; five wrong codes void the
    transfer. Repeating a confirmation never moves the money twice."""
    bank, call = current_call()
    if action == "cancel":
        cancelled = await bank_transfers.cancel_transfer(bank, call, transferId)
        if not isinstance(cancelled, Cancelled):
            return refused(cancelled)
        words = f"{_summary(cancelled.transfer)} is cancelled. Nothing is reserved for it any more."
        return answer(cancelled, words, _transfer(cancelled.transfer))
    asked = not _needs_no_answer(agreement)
    agreed = isinstance(agreement, AcceptedElicitation) and (
        isinstance(agreement.data, Agreement) and agreement.data.agreed
    )
    if asked and not agreed:
        words = "The customer did not confirm the transfer. It stays as it is until it expires."
        return answer(agreement, words, TransferOut(status="declined", transfer_id=transferId))
    outcome = await bank_transfers.confirm_transfer(
        bank, call, transferId, customer_agreed=agreed, code=confirmationCode
    )
    return _confirmed(outcome)


def _confirmed(outcome: Confirmation) -> CallToolResult:
    match outcome:
        case Posted(transfer=transfer):
            words = f"{_summary(transfer)} was made at {transfer.posted_at:%Y-%m-%d %H:%M:%S} UTC."
            return answer(outcome, words, _transfer(transfer))
        case Scheduled(transfer=transfer):
            words = f"{_summary(transfer)} is confirmed, and will be made on that day."
            return answer(outcome, words, _transfer(transfer))
        case CodeMissing(transfer=transfer):
            words = (
                f"{_summary(transfer)} needs the customer's confirmation: ask them for the "
                "six-digit code they were shown, and call again with it as confirmationCode."
            )
            return answer(outcome, words, _transfer(transfer, "confirmation_needed"))
        case AccountLocked():
            return _locked(outcome)
        case ApprovalOutstanding(transfer=transfer):
            return _not_made(outcome, transfer, "waits for a manager's approval.")
        case ApprovalRefused(transfer=transfer):
            return _not_made(outcome, transfer, "was refused by a manager.")
        case Expired(transfer=transfer):
            return _not_made(
                outcome,
                transfer,
                f"has expired: it was not confirmed by {transfer.expires_at:%Y-%m-%d %H:%M} UTC. "
                "It has to be prepared again.",
            )
        case Voided(transfer=transfer):
            return _not_made(outcome, transfer, f"was voided: {transfer.reason}.")
        case TransferFailed(transfer=transfer):
            return _not_made(outcome, transfer, f"failed: {transfer.reason}.")
        case VoidedForCodes():
            words = "confirmationCode: is wrong, once too often: the transfer is voided."
            return refusal("voided", "confirmationCode", words)
        case WrongCode(attempts_left=left):
            words = f"confirmationCode: is wrong. The transfer is voided after {left} more."
            return refusal("wrong_code", "confirmationCode", words)
        case Refused() | NotFound():
            return refused(outcome)


def _not_made(outcome: object, transfer: TransferView, why: str) -> CallToolResult:
    """Return an error; where the table gives it a next tool, that is the recovery."""
    structured = _transfer(transfer).model_copy(update={"field": "transferId"})
    words = f"transferId: {_summary(transfer)} {why} No money was moved."
    return answer(outcome, words, structured, is_error=True)
