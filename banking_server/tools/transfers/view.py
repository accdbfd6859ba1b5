"""The tools that only the view of a transfer calls."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank.rules import ViewSecret
from banking_server.bank.transfers import records
from banking_server.bank.transfers.confirm import confirm_transfer
from banking_server.bank.transfers.outcomes import Seen
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import bank_tool
from banking_server.tools.results import refusal_of, result
from banking_server.tools.scopes import TRANSFER_SCOPE
from banking_server.tools.transfers.confirm import confirmation_result
from banking_server.tools.transfers.words import (
    TransferOut,
    summary,
    transfer_content,
    with_transfer_view_data,
)

TransferId = Annotated[str, Field(description="The id that prepare_money_transfer gave.")]


@bank_tool(
    title="Confirm in View",
    scope=TRANSFER_SCOPE,
    destructive=True,
    moves_money=True,
    names_next_tool=True,
    for_views=True,
)
async def confirm_in_view(
    transferId: TransferId,
    secret: Annotated[
        str,
        Field(description="The view's secret for this transfer, which can be used once."),
    ],
) -> Annotated[CallToolResult, TransferOut]:
    """Confirm a transfer in the view that shows it, after the customer's click. It needs the secret
    that only the view received; it is not a tool for a model."""
    bank, call = current_call()
    outcome = await confirm_transfer(bank, call, transferId, ViewSecret(secret))
    return confirmation_result(outcome, bank.rules)


@bank_tool(title="Look at Transfer", scope=TRANSFER_SCOPE, read_only=True, for_views=True)
async def look_at_transfer(transferId: TransferId) -> Annotated[CallToolResult, TransferOut]:
    """Get the status of a transfer, for the view that shows it to the customer."""
    bank, call = current_call()
    outcome = await records.look_at_transfer(bank, call, transferId)
    if not isinstance(outcome, Seen):
        return refusal_of(outcome)
    transfer = outcome.transfer
    words = f"{summary(transfer)} is {transfer.status}."
    return with_transfer_view_data(
        result(words, transfer_content(transfer)), transfer, outcome.secret
    )
