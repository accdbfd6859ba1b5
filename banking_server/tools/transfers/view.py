"""The tools that the view of a transfer calls, and nobody else."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank.rules import ViewSecret
from banking_server.bank.transfers import look
from banking_server.bank.transfers.confirm import confirm_transfer
from banking_server.bank.transfers.outcomes import Seen
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import bank_tool
from banking_server.tools.results import refusal_of, result
from banking_server.tools.scopes import TRANSFER_SCOPE
from banking_server.tools.transfers.confirm import confirmed
from banking_server.tools.transfers.words import (
    TransferOut,
    shown_in_view,
    summary,
    transfer_content,
)

TransferId = Annotated[str, Field(description="The id that prepare_money_transfer gave.")]


@bank_tool(
    title="Confirm in View",
    scope=TRANSFER_SCOPE,
    destructive=True,
    moves_money=True,
    leads_on=True,
    for_views=True,
)
async def confirm_in_view(
    transferId: TransferId,
    secret: Annotated[
        str,
        Field(description="What the view was given to confirm this transfer with, for one use."),
    ],
) -> Annotated[CallToolResult, TransferOut]:
    """Confirm a transfer in the view that shows it to the customer, by their own act there. It
    takes the secret that the view alone was given; it is no tool for a model."""
    bank, call = current_call()
    outcome = await confirm_transfer(bank, call, transferId, ViewSecret(secret))
    return confirmed(outcome, bank.rules)


@bank_tool(title="Look at Transfer", scope=TRANSFER_SCOPE, read_only=True, for_views=True)
async def look_at_transfer(transferId: TransferId) -> Annotated[CallToolResult, TransferOut]:
    """Look where a transfer stands, for the view that shows it to the customer."""
    bank, call = current_call()
    outcome = await look.look_at_transfer(bank, call, transferId)
    if not isinstance(outcome, Seen):
        return refusal_of(outcome)
    transfer = outcome.transfer
    words = f"{summary(transfer)} is {transfer.status}."
    return shown_in_view(result(words, transfer_content(transfer)), transfer, outcome.secret)
