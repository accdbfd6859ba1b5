"""Confirming or cancelling a transfer: asks for the customer's yes, and says what came of it."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

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
from banking_server.bank.transfers import look
from banking_server.bank.transfers.cancel import cancel_transfer
from banking_server.bank.transfers.confirm import confirm_transfer, decline_transfer
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
from banking_server.tools.calling import asks_by_form, current_call, shows_view
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import refusal_of, refuse, result
from banking_server.tools.scopes import TRANSFER_SCOPE
from banking_server.tools.transfers.words import (
    DESK_HAS_CODE,
    TransferOut,
    describing,
    locked,
    ordinal,
    shown_in_view,
    summary,
    transfer_content,
)
from banking_server.tools.views import TRANSFER


@dataclass(frozen=True)
class NotAsked:
    """There is nothing to confirm, or this client is not asked by a form."""

    can_be_asked: bool


async def find_confirmable(transferId: str) -> TransferView | None:
    """Return the transfer if the customer may be asked to confirm it."""
    bank, call = current_call()
    return await look.find_confirmable(bank, call.customer_id, transferId, call.at)


Confirmable = Annotated[TransferView | None, Resolve(find_confirmable)]


async def ask_to_confirm(transfer: Confirmable) -> NotAsked | Elicit[Agreement]:
    """Ask the customer to confirm, if there is something to confirm.

    Who has declined is asked anew in other words, so that an answer to an earlier question, which
    the client can repeat for as long as its request state is good, is none to this one.
    """
    if transfer is None:
        return NotAsked(can_be_asked=True)
    question = f"{summary(transfer)}: confirm it?"
    if transfer.declines:
        times = "once" if transfer.declines == 1 else f"{transfer.declines} times"
        question += f" You were asked {times} before, and did not."
    return Elicit(question, Agreement)


def not_to_be_asked(arguments: dict[str, Any], ctx: Context[Any, Any]) -> dict[str, Any] | None:
    """Say so if there is nothing to confirm, or this client is not asked by a form."""
    if arguments.get("action") == "confirm" and asks_by_form(ctx):
        return None
    return {"agreement": NotAsked(can_be_asked=False), "asked_about": None}


def given_consent(
    agreement: ElicitationResult[Any] | NotAsked, asked_about: TransferView | None, code: str | None
) -> Consent | None:
    """Return what stands for the customer's yes; None if they were asked and did not say yes."""
    said = agreement.data if isinstance(agreement, AcceptedElicitation) else agreement
    if isinstance(said, NotAsked):
        # What could not be confirmed a moment ago may be now. Who can be asked is asked then.
        return NoConsent() if code is None or said.can_be_asked else Code(code)
    if not (isinstance(said, Agreement) and said.agreed):
        return None
    return Yes(after_declines=0 if asked_about is None else asked_about.declines, code=code)


@bank_tool(
    title="Confirm or Cancel Money Transfer",
    scope=TRANSFER_SCOPE,
    destructive=True,
    moves_money=True,
    leads_on=True,
    nothing_to_ask=not_to_be_asked,
    view=TRANSFER,
)
@describing(wrong_codes=Rules().max_wrong_codes)
async def confirm_or_cancel_money_transfer(
    transferId: Annotated[
        str, Field(description="The transferId that prepare_money_transfer gave.")
    ],
    action: Annotated[
        Literal["confirm", "cancel"],
        Field(description="confirm makes the transfer, cancel gives the reserved money back."),
    ],
    agreement: Annotated[ElicitationResult[Any], Resolve(ask_to_confirm)],
    asked_about: Confirmable,
    ctx: Context[Any, Any],
    confirmationCode: Annotated[
        str | None,
        Field(
            description="The six digits of the transfer's confirmation code. Never guess it, and "
            "give it only if the customer says so: needed only where they cannot be asked directly."
        ),
    ] = None,
) -> Annotated[CallToolResult, TransferOut]:
    """Confirm or cancel a prepared transfer. Confirming moves the money (or schedules it) and
    takes the customer's own yes or, only where they cannot be asked for it, the transfer's
    confirmation code; {wrong_codes} wrong codes void the transfer. Repeating a confirmation never
    moves the money twice."""
    bank, call = current_call()
    in_view = shows_view(ctx)
    if action == "cancel":
        cancelled = await cancel_transfer(bank, call, transferId)
        if not isinstance(cancelled, Cancelled):
            return refusal_of(cancelled)
        words = f"{summary(cancelled.transfer)} is cancelled. Nothing is reserved for it any more."
        told = result(words, transfer_content(cancelled.transfer), then=next_step(cancelled))
        return shown_in_view(told, cancelled.transfer) if in_view else told
    # Who is given what confirms in a view confirms there, whatever code they have.
    code = None if in_view and bank.rules.codes != "desk" else confirmationCode
    consent = given_consent(agreement, asked_about, code)
    if consent is None:
        declined = await decline_transfer(bank, call, transferId)
        return confirmed(declined, bank.rules)
    outcome = await confirm_transfer(bank, call, transferId, consent)
    told = confirmed(outcome, bank.rules, in_view=in_view)
    if not in_view or isinstance(outcome, AccountLocked | Refused | NotFound | TooMany):
        return told
    secret = outcome.secret if isinstance(outcome, CodeMissing) else None
    return shown_in_view(told, outcome.transfer, secret)


def confirmed(outcome: Confirmation, rules: Rules, *, in_view: bool = False) -> CallToolResult:
    """Return the result of a confirmation; `in_view` if the customer can confirm in a view."""
    match outcome:
        case Posted(transfer=transfer):
            words = f"{summary(transfer)} was made at {transfer.posted_at:%Y-%m-%d %H:%M:%S} UTC."
            return result(words, transfer_content(transfer), then=next_step(outcome))
        case Scheduled(transfer=transfer):
            words = f"{summary(transfer)} is confirmed, and will be made on that day."
            return result(words, transfer_content(transfer), then=next_step(outcome))
        case CodeMissing(transfer=transfer):
            words = (
                f"{summary(transfer)} needs the customer's confirmation: ask them for the "
                "six-digit code, and call again with it as confirmationCode."
            )
            if in_view:
                words = (
                    f"{summary(transfer)} needs the customer's confirmation: they confirm it where "
                    "it is shown to them, by their own act."
                )
            if rules.codes == "desk" or (rules.codes == "asked" and not in_view):
                words += f" {DESK_HAS_CODE}"
            content = transfer_content(transfer, "confirmation_needed")
            return result(words, content, then=next_step(outcome))
        case Declined(transfer=transfer):
            words = (
                "The customer did not confirm the transfer. It stays as it is until it expires. "
                "Call again only if they want to be asked anew: no other answer to this question "
                "counts."
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
            words = (
                f"confirmationCode: is wrong for the {ordinal(rules.max_wrong_codes)} time, so the "
                "transfer is voided."
            )
            return refuse("voided", "confirmationCode", words)
        case WrongCode(attempts_left=left):
            words = (
                "confirmationCode: is wrong. The transfer is voided after "
                f"{left} more wrong {'code' if left == 1 else 'codes'}."
            )
            return refuse("wrong_code", "confirmationCode", words)
        case SecretRefused(transfer=transfer):
            words = (
                "secret: this yes was used already, or is for another transfer than "
                f"{transfer.transfer_id}. Nothing was moved: look at the transfer again."
            )
            return refuse("wrong_code", "secret", words)
        case Refused() | NotFound() | TooMany():
            return refusal_of(outcome)


def _not_made(outcome: Outcome, transfer: TransferView, why: str) -> CallToolResult:
    """Return an error; if the table has a next tool for the outcome, that is the recovery."""
    structured = transfer_content(transfer).model_copy(update={"field": "transferId"})
    words = f"transferId: {summary(transfer)} {why} No money was moved."
    return result(words, structured, then=next_step(outcome), is_error=True)
