"""The tool that prepares a transfer: it asks for missing accounts, then calls the bank."""

from typing import Annotated, Any, Final

from mcp.server.apps import client_supports_apps
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import Field
from pydantic.alias_generators import to_camel

from banking_server.bank.rules import Argument, NotFound, Refused, TooMany
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    AccountNeeded,
    OverThreshold,
    Prepared,
)
from banking_server.bank.transfers.prepare import Wish, find_needed_account, prepare_transfer
from banking_server.tools.accounts import account_out
from banking_server.tools.amounts import AmountIn
from banking_server.tools.asking import Option, Pick, can_ask, picker
from banking_server.tools.calling import asks_by_form, current_call, elicit, shows_view
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
    summary,
    transfer_content,
    with_transfer_view_data,
)
from banking_server.tools.views.offering import TRANSFER, with_view_data

_QUESTIONS: Final = {Argument.FROM_ACCOUNT_ID: FROM_QUESTION, Argument.TO_ACCOUNT_ID: TO_QUESTION}


# The bank says which account is needed. A resolver of the SDK runs before the tool and can ask one
# question, so each of the two accounts has its own.


async def ask_from_account(
    fromAccountId: str | None, amount: AmountIn, scheduledDate: str | None, memo: str | None
) -> str | Elicit[Pick] | None:
    """Ask which account to take the money from, unless it is given or no question is needed."""
    if fromAccountId is not None:
        return fromAccountId
    return await _question(Wish(amount, scheduledDate, memo, None))


async def ask_to_account(
    toAccountId: str | None,
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)],
    amount: AmountIn,
    scheduledDate: str | None,
    memo: str | None,
) -> str | Elicit[Pick] | None:
    """Ask which account to send the money to, unless it is given or no question is needed."""
    from_id = _chosen(chosen_from)
    if toAccountId is not None or not isinstance(from_id, str):
        return toAccountId
    return await _question(Wish(amount, scheduledDate, memo, from_id))


async def _question(wish: Wish) -> Elicit[Pick] | None:
    needed = await find_needed_account(*current_call(), wish)
    if needed is None or not needed.accounts:
        return None
    options = [
        Option(
            account.account_id, f"{account.account_name} ({account.account_id}), {account.currency}"
        )
        for account in needed.accounts
    ]
    return elicit(_QUESTIONS[needed.field], picker(to_camel(needed.field), options))


def _chosen(answer: Any) -> Any:
    """Return an account's id; None if it is missing; another type if the customer chose none."""
    data = answer.data if isinstance(answer, AcceptedElicitation) else answer
    return data.picked if isinstance(data, Pick) else data


_NOT_ASKED: Final[Any] = None

# The pattern is for clients, which check it and can tell a model. The bank says more of a wrong
# date. The pattern is beside its type, because some clients' validators warn otherwise.
_Day = Annotated[str, Field(json_schema_extra={"pattern": r"^\d{4}-\d{2}-\d{2}$"})]


def may_ask(arguments: dict[str, Any], ctx: Context[Any, Any]) -> bool:
    """Return whether an account is missing, and a form can be shown."""
    is_missing = None in (arguments.get("fromAccountId"), arguments.get("toAccountId"))
    return is_missing and asks_by_form(ctx)


@bank_tool(
    title="Prepare Money Transfer",
    scope=TRANSFER_SCOPE,
    names_next_tool=True,
    may_ask=may_ask,
    view=TRANSFER,
)
async def prepare_money_transfer(
    amount: Annotated[
        AmountIn,
        Field(description="How much, a number with at most two decimals, such as 25.5."),
    ],
    ctx: Context[Any, Any],
    chosen_from: Annotated[ElicitationResult[Any], Resolve(ask_from_account)] = _NOT_ASKED,
    chosen_to: Annotated[ElicitationResult[Any], Resolve(ask_to_account)] = _NOT_ASKED,
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
        _Day | None,
        Field(
            description="Only for a later transfer: its day, as YYYY-MM-DD, at most a year ahead."
        ),
    ] = None,
    memo: Annotated[
        str | None, Field(description="A note for the statement, at most 140 characters.")
    ] = None,
    expiredTransferId: Annotated[
        str | None,
        Field(
            description="The expired transfer that this one replaces, if a result of "
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
    from_id = fromAccountId if chosen_from is None else _chosen(chosen_from)
    to_id = toAccountId if chosen_to is None else _chosen(chosen_to)
    if not (isinstance(from_id, str | None) and isinstance(to_id, str | None)):
        return result(
            "No transfer was prepared, because no account was chosen.",
            TransferOut(status="declined"),
        )
    wish = Wish(amount, scheduledDate, memo, from_id, to_id)
    outcome = await prepare_transfer(bank, call, wish, expired_transfer_id=expiredTransferId)
    match outcome:
        case AccountLocked():
            return locked(outcome)
        case Prepared() | OverThreshold():
            return _prepared(outcome, ctx)
        case AccountNeeded():
            return _account_needed(outcome, ctx)
        case Refused() | NotFound() | TooMany():
            return refusal_of(outcome)


def _account_needed(needed: AccountNeeded, ctx: Context[Any, Any]) -> CallToolResult:
    """Return the result that lists the possible accounts for a missing argument."""
    field, accounts = to_camel(needed.field), needed.accounts
    if not accounts:
        return refuse("refused", field, f"{field}: no account can be used here.")
    lines = [f"- {account.account_name}: {account.account_id}" for account in accounts]
    has_view = shows_view(ctx)
    offered = result(
        "\n".join([f"{_QUESTIONS[needed.field]} Call again with {field}:", *lines]),
        TransferOut(
            status="account_needed",
            field=field,
            choices=[choice(account) for account in accounts],
        ),
        more=[text(CHOOSE_IN_VIEW, "assistant")] if has_view else [],
    )
    if not has_view:
        return offered
    listed = [
        account_out(account).model_dump(mode="json", by_alias=True, exclude_none=True)
        for account in accounts
    ]
    return with_view_data(offered, {"accounts": listed})


def _prepared(outcome: Prepared | OverThreshold, ctx: Context[Any, Any]) -> CallToolResult:
    transfer = outcome.transfer
    words = (
        f"{summary(transfer)} is prepared, and the money is reserved until "
        f"{transfer.expires_at:%Y-%m-%d %H:%M} UTC. "
    )
    if isinstance(outcome, OverThreshold):
        words += "A manager has to approve it before it can be confirmed."
    else:
        words += "It is not made before it is confirmed."
    has_view = shows_view(ctx)
    more = [text(CONFIRM_IN_VIEW, "assistant")] if has_view else []
    if client_supports_apps(ctx):
        if current_call()[0].rules.codes == "desk":
            words += f" {DESK_HAS_CODE}"
    elif can_ask(ctx):
        # The customer is asked, and a code cannot replace their answer.
        words += f" {WILL_BE_ASKED}"
    elif outcome.code is None:
        words += f" {DESK_HAS_CODE}"
    else:
        # The audience is only a hint: most hosts show the code to the model too.
        more = [
            text(
                f"Your confirmation code for transfer {transfer.transfer_id} is {outcome.code}.",
                "user",
            )
        ]
    prepared = result(words, transfer_content(transfer), more=more, then=next_step(outcome))
    if not has_view:
        return prepared
    secret = outcome.secret if isinstance(outcome, Prepared) else None
    return with_transfer_view_data(prepared, transfer, secret)
