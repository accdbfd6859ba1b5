"""The texts about transfers, and their structured content."""

from datetime import date, datetime
from typing import Any, Final, Literal

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank.accounts import AccountView
from banking_server.bank.money import format_money, to_decimal
from banking_server.bank.transfers.outcomes import AccountLocked, TransferView
from banking_server.tools.amounts import AmountOut
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import Structured, result
from banking_server.tools.views.offering import with_view_data

FROM_QUESTION: Final = "Which account should the money be taken from?"
TO_QUESTION: Final = "Which account should the money be sent to?"
WILL_BE_ASKED: Final = "The bank will ask them to confirm it: no code is needed."
DESK_HAS_CODE: Final = "If a code is needed, the customer gets it from the bank's desk."
CHOOSE_IN_VIEW: Final = (
    "The customer sees these accounts on a card, and can choose there. If they do, the transfer "
    "continues on the card: call again only if they tell you the account."
)
CONFIRM_IN_VIEW: Final = (
    "The customer sees this transfer on a card, and confirms or cancels it there. There is nothing "
    "for you to confirm."
)


class ChoiceOut(Structured):
    """One account that can be chosen."""

    account_id: str
    account_name: str
    account_type: str
    currency: str


class TransferOut(Structured):
    """The state of a transfer, or what is needed to prepare it."""

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
        default=None, description="Whether a manager has approved the transfer."
    )
    created_at: datetime | None = None
    expires_at: datetime | None = Field(
        default=None, description="A pending transfer must be confirmed before this time."
    )
    posted_at: datetime | None = None
    account_id: str | None = Field(default=None, description="The locked account.")
    account_name: str | None = Field(default=None, description="The locked account's name.")
    field: str | None = Field(default=None, description="The argument that is missing or wrong.")
    choices: list[ChoiceOut] | None = Field(default=None, description="The possible accounts.")


def choice(account: AccountView) -> ChoiceOut:
    """Return an account as something to choose."""
    return ChoiceOut(
        account_id=account.account_id,
        account_name=account.account_name,
        account_type=account.account_type,
        currency=account.currency,
    )


def summary(transfer: TransferView) -> str:
    """Return the beginning of a sentence that names the transfer."""
    when = f" on {transfer.scheduled_date}" if transfer.scheduled_date else ""
    amount = format_money(transfer.amount_minor, transfer.currency)
    return (
        f"Transfer {transfer.transfer_id} of {amount} from {transfer.from_account_name} "
        f"to {transfer.to_account_name}{when}"
    )


def transfer_content(
    transfer: TransferView, status: Literal["confirmation_needed"] | None = None
) -> TransferOut:
    """Return the structured content; `status` replaces the transfer's own status."""
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


def with_transfer_view_data(
    result: CallToolResult, transfer: TransferView, secret: str | None = None
) -> CallToolResult:
    """Return a result with the names of the transfer's accounts, and the secret that confirms it.

    Without a secret the view needs a code, as other clients do: see `banking_server.tools.views`.
    """
    data: dict[str, Any] = {
        "from": {"accountName": transfer.from_account_name},
        "to": {
            "accountName": transfer.to_account_name,
            "accountHolder": transfer.to_account_holder,
        },
    }
    return with_view_data(result, data if secret is None else {**data, "secret": secret})


def locked(outcome: AccountLocked) -> CallToolResult:
    """Return the result for a locked from-account."""
    account = outcome.account
    return result(
        f"I'm sorry, but your {account.account_name} account ({account.account_id}) is currently "
        "locked. You'll need to speak with a customer service agent to resolve this issue before "
        "you can transfer funds from this account.",
        TransferOut(
            status="account_locked",
            account_id=account.account_id,
            account_name=account.account_name,
        ),
        audience="user",
        then=next_step(outcome),
    )
