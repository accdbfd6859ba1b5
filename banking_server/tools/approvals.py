"""Asking the manager: transfers above the approval threshold."""

from datetime import datetime
from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import approvals as bank_approvals
from banking_server.bank.approvals import ApprovalGranted, ApprovalRequested
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import Structured, refusal_of, result
from banking_server.tools.scopes import TRANSFER_SCOPE


class ApprovalOut(Structured):
    """Where a transfer stands with the manager."""

    status: Literal["requested", "granted"]
    approval_id: str
    transfer_id: str
    branch_open: bool | None = Field(
        default=None,
        description="Whether a manager is in now: Monday to Friday, during branch hours, UTC.",
    )
    expires_at: datetime = Field(
        description="The transfer must be approved and confirmed before this time."
    )


@bank_tool(title="Request Manager Approval", scope=TRANSFER_SCOPE, leads_on=True)
async def request_manager_approval(
    transferId: Annotated[
        str, Field(description="The transferId that prepare_money_transfer gave.")
    ],
    reason: Annotated[str, Field(description="Why approval is needed, in a sentence.")],
) -> Annotated[CallToolResult, ApprovalOut]:
    """Ask a bank manager to approve a prepared transfer that is too large to be confirmed without
    one. The transfer stays pending, its funds reserved, until the manager decides."""
    bank, call = current_call()
    outcome = await bank_approvals.request_approval(bank, call, transferId, reason=reason)
    match outcome:
        case ApprovalGranted(approval=approval, transfer=transfer):
            words = f"A manager has approved transfer {transfer.transfer_id}: it can be confirmed."
            branch_open = None
        case ApprovalRequested(approval=approval, transfer=transfer, branch_open=branch_open):
            words = (
                f"A manager has been asked to approve transfer {transfer.transfer_id}, whose funds "
                f"stay reserved until {transfer.expires_at:%Y-%m-%d %H:%M} UTC. "
            )
            words += (
                "A manager will look at it today."
                if branch_open
                else "The branch is closed now, so a customer service agent will help instead."
            )
        case _:
            return refusal_of(outcome)
    return result(
        words,
        ApprovalOut(
            status="granted" if isinstance(outcome, ApprovalGranted) else "requested",
            approval_id=approval.approval_id,
            transfer_id=transfer.transfer_id,
            branch_open=branch_open,
            expires_at=transfer.expires_at,
        ),
        then=next_step(outcome),
    )
