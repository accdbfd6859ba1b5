"""Preparing a transfer: which accounts, asked for if they are missing, and what is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Annotated, Any

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import accounts as bank_accounts
from banking_server.bank import transfers as bank_transfers
from banking_server.bank.accounts import AccountView
from banking_server.bank.rules import (
    NotFound,
    Refused,
    TooMany,
    TransferDetails,
    check_details,
)
from banking_server.bank.transfers import AccountLocked, OverThreshold, Prepared, ToAccountMissing
from banking_server.tools.accounts import account_out
from banking_server.tools.amounts import AmountIn
from banking_server.tools.asking import Option, Pick, can_ask, picker
from banking_server.tools.calling import asks_by_form, current_call, shows_view
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import refusal_of, refuse, result, text
from banking_server.tools.scopes import TRANSFER_SCOPE
from banking_server.tools.transfers.words import (
    CHOOSE_IN_VIEW,
    CONFIRM_IN_VIEW,
    DESK_HAS_CODE,
    FROM_QUESTION,
    TO_QUESTION,
    WILL_BE_ASKED,
    TransferOut,
    choice,
    locked,
    shown_in_view,
    summary,
    transfer_content,
)
from banking_server.tools.views import TRANSFER, shown_with, takes_views


@dataclass(frozen=True)
class Chosen:
    """The account is known: given as an argument."""

    account_id: str


@dataclass(frozen=True)
class Choices:
    """The account is not known, and this client is not asked by a form: offer what it may be."""

    field: str
    question: str
    accounts: Sequence[AccountView]


@dataclass(frozen=True)
class NotAsked:
    """There is no need to know: the call ends for another reason."""


async def check_before_asking(
    amount: AmountIn, scheduledDate: str | None, memo: str | None
) -> TransferDetails | Refused:
    """Check the details first, so that nobody picks accounts for an impossible transfer."""
    bank, call = current_call()
    return check_details(
        bank.rules,
        amount=amount,
        scheduled_date=scheduledDate,
        memo=memo,
        today=call.at.astimezone(UTC).date(),
    )


Details = Annotated[TransferDetails | Refused, Resolve(check_before_asking)]


async def ask_from_account(
    fromAccountId: str | None, details: Details, ctx: Context[Any, Any]
) -> Chosen | Choices | NotAsked | Elicit[Pick]:
    """Ask which account to take the money from, unless it is given or the call ends before."""
    if fromAccountId is not None:
        return Chosen(fromAccountId)
    if isinstance(details, Refused):
        return NotAsked()
    bank, call = current_call()
    accounts = await bank_accounts.debit_accounts(bank, call.customer_id, call.at)
    return _ask(ctx, "fromAccountId", FROM_QUESTION, accounts)


async def ask_to_account(
    toAccountId: str | None,
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)],
    details: Details,
    ctx: Context[Any, Any],
) -> Chosen | Choices | NotAsked | Elicit[Pick]:
    """Ask which account to send the money to, unless it is given or the call ends before."""
    if toAccountId is not None:
        return Chosen(toAccountId)
    from_id = _account_id(chosen_from)
    if from_id is None or isinstance(details, Refused):
        return NotAsked()
    bank, call = current_call()
    accounts = await bank_accounts.payable_accounts(bank, call.customer_id, from_id, call.at)
    return NotAsked() if accounts is None else _ask(ctx, "toAccountId", TO_QUESTION, accounts)


def _ask(
    ctx: Context[Any, Any], field: str, question: str, accounts: Sequence[AccountView]
) -> Choices | Elicit[Pick]:
    if not accounts or not asks_by_form(ctx):
        return Choices(field, question, accounts)
    options = [
        Option(
            account.account_id, f"{account.account_name} ({account.account_id}), {account.currency}"
        )
        for account in accounts
    ]
    return Elicit(question, picker(field, options))


def _account_id(chosen: ElicitationResult[Any] | Chosen) -> str | None:
    if isinstance(chosen, Chosen):
        return chosen.account_id
    if not isinstance(chosen, AcceptedElicitation):
        return None
    if isinstance(chosen.data, Pick):
        return chosen.data.picked
    return chosen.data.account_id if isinstance(chosen.data, Chosen) else None


def both_accounts_given(arguments: dict[str, Any], _: Context[Any, Any]) -> dict[str, Any] | None:
    """Return the accounts if both are given; the bank itself checks the rest then."""
    from_id, to_id = arguments.get("fromAccountId"), arguments.get("toAccountId")
    if not isinstance(from_id, str) or not isinstance(to_id, str):
        return None
    return {"chosen_from": Chosen(from_id), "chosen_to": Chosen(to_id), "details": None}


async def locked_account_first(arguments: dict[str, Any]) -> CallToolResult | None:
    """Return the result for a locked from-account, whatever else is wrong with the arguments."""
    from_id = arguments.get("fromAccountId")
    if not isinstance(from_id, str):
        return None
    bank, call = current_call()
    outcome = await bank_transfers.record_locked_attempt(bank, call, from_id)
    return None if outcome is None else locked(outcome)


@bank_tool(
    title="Prepare Money Transfer",
    scope=TRANSFER_SCOPE,
    before_refusal=locked_account_first,
    nothing_to_ask=both_accounts_given,
    view=TRANSFER,
)
async def prepare_money_transfer(
    amount: Annotated[
        AmountIn,
        Field(description="How much, a number with at most two decimals, such as 25.5."),
    ],
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)],
    chosen_to: Annotated[ElicitationResult[Any], Resolve(ask_to_account)],
    details: Details,
    ctx: Context[Any, Any],
    fromAccountId: Annotated[
        str | None,
        Field(
            description="Account to take the money from: one of the ids that list_accounts gives, "
            "never made up; asked for if missing."
        ),
    ] = None,
    toAccountId: Annotated[
        str | None,
        Field(
            description="Account or payee to send it to: one of the ids that list_accounts gives, "
            "never made up; asked for if missing."
        ),
    ] = None,
    scheduledDate: Annotated[
        str | None,
        Field(description="When to transfer, as YYYY-MM-DD, at most a year ahead; now if missing."),
    ] = None,
    memo: Annotated[
        str | None, Field(description="A note for the statement, at most 140 characters.")
    ] = None,
    expiredTransferId: Annotated[
        str | None,
        Field(
            description="The expired transfer that this one replaces, where a result of "
            "confirm_or_cancel_money_transfer named it."
        ),
    ] = None,
) -> Annotated[CallToolResult, TransferOut]:
    """Prepare a transfer between the customer's accounts, or to one of their payees. The money
    is reserved but does not move before the customer confirms the transfer with
    confirm_or_cancel_money_transfer. If the result holds a confirmation code, whoever reads it
    could confirm: it is for the customer, so do not use it unless they say so. Leave an account
    out if the customer has not named it."""
    bank, call = current_call()
    from_id, to_id = _account_id(chosen_from), _account_id(chosen_to)
    if from_id is None:
        return refusal_of(details) if isinstance(details, Refused) else _undecided(chosen_from, ctx)
    if to_id is None and not _needs_no_answer(chosen_to):
        return _undecided(chosen_to, ctx)
    outcome = await bank_transfers.prepare_transfer(
        bank,
        call,
        from_account_id=from_id,
        to_account_id=to_id,
        amount=amount,
        scheduled_date=scheduledDate,
        memo=memo,
        expired_transfer_id=expiredTransferId,
    )
    match outcome:
        case AccountLocked():
            return locked(outcome)
        case Prepared() | OverThreshold():
            return _prepared(outcome, ctx)
        case ToAccountMissing():
            return refuse("refused", "toAccountId", "toAccountId: is missing.")
        case Refused() | NotFound() | TooMany():
            return refusal_of(outcome)


def _needs_no_answer(chosen: ElicitationResult[Any]) -> bool:
    return isinstance(chosen, AcceptedElicitation) and isinstance(chosen.data, NotAsked)


def _undecided(chosen: ElicitationResult[Any], ctx: Context[Any, Any]) -> CallToolResult:
    """Return the result if an account is missing: what it may be, or that none was chosen."""
    if isinstance(chosen, AcceptedElicitation) and isinstance(chosen.data, Choices):
        choices = chosen.data
        if not choices.accounts:
            return refuse(
                "refused", choices.field, f"{choices.field}: you have no account that it could be."
            )
        lines = [f"- {account.account_name}: {account.account_id}" for account in choices.accounts]
        shown = shows_view(ctx)
        offered = result(
            "\n".join([f"{choices.question} Call again with {choices.field}:", *lines]),
            TransferOut(
                status="account_needed",
                field=choices.field,
                choices=[choice(account) for account in choices.accounts],
            ),
            more=[text(CHOOSE_IN_VIEW, "assistant")] if shown else [],
        )
        if not shown:
            return offered
        accounts = [
            account_out(account).model_dump(mode="json", by_alias=True, exclude_none=True)
            for account in choices.accounts
        ]
        return shown_with(offered, {"accounts": accounts})
    return result(
        "No transfer was prepared, because no account was chosen.",
        TransferOut(status="declined"),
    )


def _prepared(outcome: Prepared | OverThreshold, ctx: Context[Any, Any]) -> CallToolResult:
    transfer = outcome.transfer
    words = (
        f"{summary(transfer)} is prepared, and the money is reserved until "
        f"{transfer.expires_at:%Y-%m-%d %H:%M} UTC. "
    )
    if isinstance(outcome, OverThreshold):
        words += "A manager has to approve it before the customer can confirm it."
    else:
        words += "It is not made before the customer confirms it."
    shown = shows_view(ctx)
    more = [text(CONFIRM_IN_VIEW, "assistant")] if shown else []
    if takes_views(ctx.client_capabilities):
        if current_call()[0].rules.codes == "desk":
            words += f" {DESK_HAS_CODE}"
    elif can_ask(ctx):
        # They are asked, and no code replaces their yes.
        words += f" {WILL_BE_ASKED}"
    elif outcome.code is None:
        words += f" {DESK_HAS_CODE}"
    else:
        # Whom it is for is a wish: most hosts show it to the model as well.
        more = [
            text(
                f"Your confirmation code for transfer {transfer.transfer_id} is {outcome.code}. "
                "Whoever reads it here, a model too, can confirm with it.",
                "user",
            )
        ]
    prepared = result(words, transfer_content(transfer), more=more, then=next_step(outcome))
    if not shown:
        return prepared
    secret = outcome.secret if isinstance(outcome, Prepared) else None
    return shown_in_view(prepared, transfer, secret)
