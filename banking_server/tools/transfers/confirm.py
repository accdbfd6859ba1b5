"""The tool that confirms or cancels a transfer: it asks for the customer's consent."""

from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank.rules import (
    Code,
    Consent,
    NoConsent,
    NotFound,
    Outcome,
    Refused,
    Rules,
    TooMany,
    Yes,
)
from banking_server.bank.transfers import records
from banking_server.bank.transfers.confirm import (
    cancel_transfer,
    confirm_transfer,
    decline_transfer,
)
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    Cancelled,
    CodeMissing,
    Confirmation,
    Declined,
    Expired,
    Posted,
    Scheduled,
    SecretRefused,
    TransferFailed,
    TransferView,
    Voided,
    VoidedForCodes,
    WrongCode,
)
from banking_server.tools.asking import Agreement
from banking_server.tools.calling import asks_by_form, current_call, elicit, shows_view
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import refusal_of, refuse, result
from banking_server.tools.scopes import TRANSFER_SCOPE
from banking_server.tools.transfers.words import (
    DESK_HAS_CODE,
    TransferOut,
    locked,
    summary,
    transfer_content,
    with_transfer_view_data,
)
from banking_server.tools.views.offering import TRANSFER


async def find_confirmable(transferId: str) -> TransferView | None:
    """Return the transfer if the customer may be asked to confirm it."""
    bank, call = current_call()
    return await records.find_confirmable(bank, call.customer_id, transferId, call.at)


Confirmable = Annotated[TransferView | None, Resolve(find_confirmable)]


async def ask_to_confirm(transfer: Confirmable) -> Elicit[Agreement] | None:
    """Ask the customer to confirm, if there is something to confirm.

    After a decline the question has another text. A client could repeat its answer to the earlier
    question while its request state is valid. That answer must not count for the new question.
    """
    if transfer is None:
        return None
    question = f"{summary(transfer)}: confirm it?"
    if transfer.declines:
        times = "once" if transfer.declines == 1 else f"{transfer.declines} times"
        question += f" You were asked {times} before and did not confirm."
    return elicit(question, Agreement)


_NOT_ASKED: Final[Any] = None


def may_ask(arguments: dict[str, Any], ctx: Context[Any, Any]) -> bool:
    """Return whether something is confirmed, and a form can be shown."""
    return arguments.get("action") == "confirm" and asks_by_form(ctx)


def given_consent(
    agreement: ElicitationResult[Any] | None, asked_about: TransferView | None, code: str | None
) -> Consent | None:
    """Return the customer's consent; None if they were asked and did not agree."""
    if agreement is None:
        return NoConsent() if code is None else Code(code)
    if asked_about is None:
        # A customer who can be asked must be asked, even if nothing could be confirmed before.
        return NoConsent()
    if not (isinstance(agreement, AcceptedElicitation) and agreement.data.agreed):
        return None
    return Yes(after_declines=asked_about.declines, code=code)


@bank_tool(
    title="Confirm or Cancel Money Transfer",
    scope=TRANSFER_SCOPE,
    destructive=True,
    moves_money=True,
    names_next_tool=True,
    may_ask=may_ask,
    view=TRANSFER,
)
async def confirm_or_cancel_money_transfer(
    transferId: Annotated[
        str, Field(description="The transferId that prepare_money_transfer gave.")
    ],
    action: Annotated[
        Literal["confirm", "cancel"],
        Field(description="confirm makes the transfer, cancel gives the reserved money back."),
    ],
    ctx: Context[Any, Any],
    agreement: Annotated[ElicitationResult[Any], Resolve(ask_to_confirm)] = _NOT_ASKED,
    asked_about: Confirmable = None,
    confirmationCode: Annotated[
        str | None,
        Field(
            description="The six digits of the transfer's confirmation code. Never guess it. Give "
            "it only if the customer says so. It is only needed if they cannot be asked directly."
        ),
    ] = None,
) -> Annotated[CallToolResult, TransferOut]:
    """Confirm or cancel a prepared transfer. Confirming moves the money (or schedules it) and
    takes the customer's own yes or, only where they cannot be asked for it, the transfer's
    confirmation code; five wrong codes void the transfer. Repeating a confirmation never moves
    the money twice."""
    bank, call = current_call()
    in_view = shows_view(ctx)
    if action == "cancel":
        cancelled = await cancel_transfer(bank, call, transferId)
        if not isinstance(cancelled, Cancelled):
            return refusal_of(cancelled)
        words = f"{summary(cancelled.transfer)} is cancelled. Nothing is reserved for it any more."
        done = result(words, transfer_content(cancelled.transfer), then=next_step(cancelled))
        return with_transfer_view_data(done, cancelled.transfer) if in_view else done
    # A customer whose view has a secret confirms in the view. A code does not count then.
    code = None if in_view and bank.rules.codes != "desk" else confirmationCode
    consent = given_consent(agreement, asked_about, code)
    if consent is None:
        declined = await decline_transfer(bank, call, transferId)
        return confirmation_result(declined, bank.rules)
    outcome = await confirm_transfer(bank, call, transferId, consent)
    confirmation = confirmation_result(outcome, bank.rules, in_view=in_view)
    if not in_view or isinstance(outcome, AccountLocked | Refused | NotFound | TooMany):
        return confirmation
    secret = outcome.secret if isinstance(outcome, CodeMissing) else None
    return with_transfer_view_data(confirmation, outcome.transfer, secret)


def confirmation_result(
    outcome: Confirmation, rules: Rules, *, in_view: bool = False
) -> CallToolResult:
    """Return the result of a confirmation; `in_view` if the customer can confirm in a view."""
    match outcome:
        case Posted(transfer=transfer):
            words = f"{summary(transfer)} was made at {transfer.posted_at:%Y-%m-%d %H:%M:%S} UTC."
            return result(words, transfer_content(transfer), then=next_step(outcome))
        case Scheduled(transfer=transfer):
            words = f"{summary(transfer)} is confirmed. It will be made on that day."
            return result(words, transfer_content(transfer), then=next_step(outcome))
        case CodeMissing(transfer=transfer):
            how = "ask them for the six-digit code, and call again with it as confirmationCode"
            if in_view:
                how = "they confirm it themselves, on the card that shows it"
            words = f"{summary(transfer)} needs the customer's confirmation: {how}."
            if rules.codes == "desk" or (rules.codes == "asked" and not in_view):
                words += f" {DESK_HAS_CODE}"
            content = transfer_content(transfer, "confirmation_needed")
            return result(words, content, then=next_step(outcome))
        case Declined(transfer=transfer):
            words = (
                "The customer did not confirm the transfer. It stays as it is until it expires. "
                "Call again only if they want to be asked again: this question cannot be answered "
                "a second time."
            )
            return result(words, TransferOut(status="declined", transfer_id=transfer.transfer_id))
        case AccountLocked():
            return locked(outcome)
        case ApprovalOutstanding(transfer=transfer):
            return _not_made(outcome, transfer, "waits for a manager's approval.")
        case ApprovalRefused(transfer=transfer):
            return _not_made(outcome, transfer, "was refused by a manager.")
        case Expired(transfer=transfer):
            words = (
                f"{summary(transfer)} has expired: it was not confirmed by "
                f"{transfer.expires_at:%Y-%m-%d %H:%M} UTC. It has to be prepared again. "
                "No money was moved."
            )
            return result(words, transfer_content(transfer), then=next_step(outcome))
        case Voided(transfer=transfer):
            return _not_made(outcome, transfer, f"was voided: {transfer.reason}.")
        case TransferFailed(transfer=transfer):
            return _not_made(outcome, transfer, f"failed: {transfer.reason}.")
        case VoidedForCodes():
            words = "confirmationCode: is wrong for the fifth time, so the transfer is voided."
            return refuse("voided", "confirmationCode", words)
        case WrongCode(attempts_left=left):
            words = (
                "confirmationCode: is wrong. The transfer is voided after "
                f"{left} more wrong {'code' if left == 1 else 'codes'}."
            )
            return refuse("wrong_code", "confirmationCode", words)
        case SecretRefused(transfer=transfer):
            words = (
                "secret: it was used already, or belongs to another transfer than "
                f"{transfer.transfer_id}. Nothing was moved: look at the transfer again."
            )
            return refuse("wrong_code", "secret", words)
        case Refused() | NotFound() | TooMany():
            return refusal_of(outcome)


def _not_made(outcome: Outcome, transfer: TransferView, why: str) -> CallToolResult:
    """Return an error, with the next tool of the table for the outcome, if there is one."""
    structured = transfer_content(transfer).model_copy(update={"field": "transferId"})
    words = f"transferId: {summary(transfer)} {why} No money was moved."
    return result(words, structured, then=next_step(outcome), is_error=True)
