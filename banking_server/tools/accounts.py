"""The tools for reading accounts: the list, a balance, a statement."""

from datetime import UTC, date, datetime
from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import accounts as bank_accounts
from banking_server.bank import statement as bank_statement
from banking_server.bank.accounts import AccountView, Balance
from banking_server.bank.money import format_money, to_decimal
from banking_server.bank.statement import Statement
from banking_server.tools.amounts import AmountOut
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import WholeNumber, bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import Structured, refusal_of, result
from banking_server.tools.scopes import READ_SCOPE
from banking_server.tools.views.offering import ACCOUNTS, STATEMENT

AccountId = Annotated[
    str, Field(description="One of the ids that list_accounts gives; never made up.")
]


class AccountOut(Structured):
    """One account. An external payee has no amounts, since the account is not the customer's."""

    account_id: str
    account_name: str
    account_type: str
    can_transfer_from: bool = Field(description="Money may be taken from it.")
    can_transfer_to: bool = Field(description="Money may be sent to it.")
    is_locked: bool = Field(description="Locked: only customer service can help.")
    account_holder: str | None = Field(
        default=None, description="Who holds it, if that is not the customer."
    )
    currency: str
    balance: AmountOut | None = Field(default=None, description="The posted balance.")
    posted: AmountOut | None = Field(default=None, description="The sum of all entries.")
    reserved: AmountOut | None = Field(
        default=None, description="Held back for transfers that wait to be confirmed."
    )
    available: AmountOut | None = Field(default=None, description="Posted less reserved.")


class AccountsOut(Structured):
    """The caller's accounts, in a fixed order."""

    accounts: list[AccountOut]


class BalanceOut(Structured):
    """An account's balance at one moment."""

    account_id: str
    posted: AmountOut
    reserved: AmountOut
    available: AmountOut = Field(description="Posted less reserved, even if it cannot be moved.")
    currency: str
    as_of: datetime


class EntryOut(Structured):
    """One entry of a statement."""

    posted_at: datetime
    description: str
    counterparty: str | None = Field(default=None, description="The account on the other side.")
    amount: AmountOut = Field(description="Credits above zero, debits below.")
    balance: AmountOut = Field(description="The account's balance after this entry.")


class StatementOut(Structured):
    """One page of a statement, newest entry first."""

    account_id: str
    account_name: str
    currency: str
    since: date = Field(description="Its first day, UTC.")
    until: date = Field(description="Its last day, UTC.")
    total_credits: AmountOut | None = Field(
        default=None, description="All that came in; on the first page."
    )
    total_debits: AmountOut | None = Field(
        default=None, description="All that went out, above zero; on the first page."
    )
    total_spent: AmountOut | None = Field(
        default=None,
        description="Of totalDebits, what did not go to the customer's own accounts; on the first "
        "page, where the entries are not too many.",
    )
    entries: list[EntryOut]
    next_cursor: str | None = Field(
        default=None, description="Pass it as cursor for the entries before these."
    )


def _minor(amount: int | None) -> AmountOut | None:
    return None if amount is None else to_decimal(amount)


def account_out(view: AccountView) -> AccountOut:
    """Return the structured content for an account."""
    return AccountOut(
        account_id=view.account_id,
        account_name=view.account_name,
        account_type=view.account_type,
        can_transfer_from=view.can_transfer_from,
        can_transfer_to=view.can_transfer_to,
        is_locked=view.is_locked,
        account_holder=view.account_holder,
        currency=view.currency,
        balance=_minor(view.posted_minor),
        posted=_minor(view.posted_minor),
        reserved=_minor(view.reserved_minor),
        available=_minor(view.available_minor),
    )


def _line(view: AccountView) -> str:
    words = f"{view.account_name} ({view.account_id}): "
    if view.available_minor is None:
        words += f"payee, held by {view.account_holder}"
    else:
        words += format_money(view.available_minor, view.currency)
        if view.can_transfer_from and not view.is_locked:
            words += " available"
    return words + (", locked" if view.is_locked else "")


@bank_tool(title="List Accounts", scope=READ_SCOPE, read_only=True, view=ACCOUNTS)
async def list_accounts() -> Annotated[CallToolResult, AccountsOut]:
    """List the customer's accounts and payees with their ids, balances, whether they are
    locked, and whether money may be taken from or sent to them. Call this first to learn
    account ids."""
    bank, call = current_call()
    views = await bank_accounts.list_accounts(bank, call)
    structured = AccountsOut(accounts=[account_out(view) for view in views])
    return result("\n".join(map(_line, views)) or "The customer has no accounts.", structured)


@bank_tool(title="Get Account Balance", scope=READ_SCOPE, read_only=True)
async def get_account_balance(
    accountId: AccountId,
) -> Annotated[CallToolResult, BalanceOut]:
    """Get what one account holds now: the posted balance, what is reserved for transfers that
    wait to be confirmed, and what is available."""
    bank, call = current_call()
    outcome = await bank_accounts.get_balance(bank, call, accountId)
    if not isinstance(outcome, Balance):
        return refusal_of(outcome)
    account, funds = outcome.account, outcome.funds
    structured = BalanceOut(
        account_id=account.account_id,
        posted=to_decimal(funds.posted_minor),
        reserved=to_decimal(funds.reserved_minor),
        available=to_decimal(funds.available_minor),
        currency=account.currency,
        as_of=outcome.as_of,
    )
    can_move = account.can_transfer_from and not account.is_locked
    movable = f"{format_money(funds.available_minor, account.currency)} available; "
    words = (
        f"{account.account_name} ({account.account_id}): {movable if can_move else ''}"
        f"{format_money(funds.posted_minor, account.currency)} posted, "
        f"{format_money(funds.reserved_minor, account.currency)} reserved"
        f"{', locked' if account.is_locked else ''}."
    )
    return result(words, structured, then=next_step(outcome))


@bank_tool(title="Get Account Statement", scope=READ_SCOPE, read_only=True, view=STATEMENT)
async def get_account_statement(
    accountId: AccountId,
    month: Annotated[
        str | None,
        Field(
            description="A calendar month, in place of days: last (the month before this one), "
            "this, or one like 2026-10."
        ),
    ] = None,
    days: Annotated[
        WholeNumber,
        Field(description="Without a month, how many days back the statement goes: 1 to 365."),
    ] = 30,
    cursor: Annotated[
        str | None,
        Field(
            description="The nextCursor of the last page you read; gives the older entries "
            "after it."
        ),
    ] = None,
) -> Annotated[CallToolResult, StatementOut]:
    """Get an account's entries of a calendar month or of the last days, newest first, with what
    was spent and what came in in all. Long statements come in pages: pass nextCursor as cursor to
    go on."""
    bank, call = current_call()
    outcome = await bank_statement.get_statement(
        bank, call, accountId, days=days, month=month, cursor=cursor
    )
    if not isinstance(outcome, Statement):
        return refusal_of(outcome)
    structured = StatementOut(
        account_id=outcome.account_id,
        account_name=outcome.account_name,
        currency=outcome.currency,
        since=outcome.period.first,
        until=outcome.period.last,
        total_credits=_minor(outcome.totals and outcome.totals.credits_minor),
        total_debits=_minor(outcome.totals and outcome.totals.debits_minor),
        total_spent=_minor(outcome.totals and outcome.totals.spent_minor),
        entries=[
            # The values come from the bank and need no validation, fifty times a page.
            EntryOut.model_construct(
                posted_at=line.posted_at,
                description=line.description,
                counterparty=line.counter_account_name,
                amount=to_decimal(line.amount_minor),
                balance=to_decimal(line.balance_minor),
            )
            for line in outcome.lines
        ],
        next_cursor=outcome.next_cursor,
    )
    words = [_headline(outcome, call.at.astimezone(UTC).date())]
    words += [
        f"{line.posted_at:%Y-%m-%d}  {format_money(line.amount_minor, outcome.currency)}  "
        f"{line.description}"
        for line in outcome.lines
    ]
    if outcome.next_cursor is not None:
        words.append(
            "The totals above include older entries, which are not listed here. To list them, call "
            f"again with cursor {outcome.next_cursor}."
            if outcome.totals is not None
            else f"There are older entries: call again with cursor {outcome.next_cursor}."
        )
    return result("\n".join(words), structured, then=next_step(outcome))


def _headline(statement: Statement, today: date) -> str:
    """Return the account, the period and the totals of a statement as one line."""
    period, totals = statement.period, statement.totals
    when = f"{period.first:%B %Y}" if period.is_month else f"{period.first} to {period.last}"
    if totals is not None and today <= period.last:
        when += f" (today is {today})"
    of = f"{statement.account_name} ({statement.account_id}), {when}:"
    if totals is None:
        return f"{of} older entries."
    if not statement.lines:
        return f"{of} no entries."

    def money(minor: int) -> str:
        return format_money(minor, statement.currency)

    went_out, spent = totals.debits_minor, totals.spent_minor
    if spent is None:
        amounts = f"{money(went_out)} went out, including moves between your own accounts"
    elif spent == went_out:
        amounts = f"{money(spent)} spent, which is all that went out"
    else:
        amounts = (
            f"{money(spent)} spent and {money(went_out - spent)} moved to your own accounts, "
            f"{money(went_out)} went out in total"
        )
    return f"{of} {amounts}; {money(totals.credits_minor)} came in."
