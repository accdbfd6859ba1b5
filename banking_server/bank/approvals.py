"""Approvals: a transfer above the threshold waits for a manager's decision."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from banking_server.bank.audit import Call, add_event, in_one_transaction
from banking_server.bank.models import Approval, ApprovalStatus, Transfer, new_id
from banking_server.bank.rules import (
    REFUSED_BY_MANAGER,
    Argument,
    NotFound,
    Refused,
    check_approval_request,
    check_decision,
    check_required_text,
    check_still_pending,
    excerpt,
    is_branch_open,
)
from banking_server.bank.storage import Bank, find_owned, find_record
from banking_server.bank.transfers import (
    TransferView,
    expire_if_due,
    view_transfer,
)


@dataclass(frozen=True)
class ApprovalView:
    """A request for approval, and the decision once there is one."""

    approval_id: str
    transfer_id: str
    customer_id: str
    reason: str
    status: ApprovalStatus
    created_at: datetime
    decided_by: str | None
    decided_at: datetime | None


@dataclass(frozen=True)
class OpenApproval:
    """A request that waits for a manager, with the transfer it is about."""

    approval: ApprovalView
    transfer: TransferView


@dataclass(frozen=True)
class ApprovalRequested:
    """A manager has been asked, now or earlier. `branch_open`: whether one can be reached now."""

    recorded_as: ClassVar[str] = "approval_requested"

    approval: ApprovalView
    transfer: TransferView
    branch_open: bool

    @property
    def subject(self) -> str:
        """The request, for the audit trail."""
        return self.approval.approval_id


@dataclass(frozen=True)
class ApprovalGranted:
    """A manager has granted it: the transfer can be confirmed."""

    recorded_as: ClassVar[str] = "approval_granted"

    approval: ApprovalView
    transfer: TransferView

    @property
    def subject(self) -> str:
        """The request, for the audit trail."""
        return self.approval.approval_id


async def request_approval(
    bank: Bank, call: Call, transfer_id: str, *, reason: str
) -> ApprovalRequested | ApprovalGranted | NotFound | Refused:
    """Ask for a manager's approval of a pending transfer that needs it; asked once per transfer."""

    async def rule(
        session: AsyncSession,
    ) -> ApprovalRequested | ApprovalGranted | NotFound | Refused:
        transfer = await find_owned(session, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        refused = check_required_text(bank.rules, Argument.REASON, reason)
        if refused:
            return refused
        expire_if_due(transfer, call.at)
        refused = check_approval_request(transfer)
        if refused:
            return refused
        query = select(Approval).where(Approval.transfer_id == transfer.transfer_id)
        approval = (await session.exec(query)).one_or_none()
        if approval is None:
            approval = Approval(
                approval_id=new_id("ap"),
                transfer_id=transfer.transfer_id,
                customer_id=transfer.customer_id,
                reason=reason,
                created_at=call.at,
            )
            session.add(approval)
            transfer.approval = "requested"
        transfer_view = await view_transfer(session, transfer, call.at)
        if approval.status == "granted":
            return ApprovalGranted(_view(approval), transfer_view)
        return ApprovalRequested(
            _view(approval), transfer_view, is_branch_open(bank.rules, call.at)
        )

    return await in_one_transaction(bank, call, rule)


async def list_open_approvals(bank: Bank, now: datetime) -> list[OpenApproval]:
    """Return what waits for a manager, longest first; nothing whose transfer is past deciding."""
    query = (
        select(Approval, Transfer)
        .join(Transfer, col(Transfer.transfer_id) == col(Approval.transfer_id))
        .where(
            Approval.status == "requested",
            Transfer.status == "pending",
            col(Transfer.expires_at) > now,
        )
        .order_by(col(Approval.created_at), col(Approval.approval_id))
    )

    async def work(session: AsyncSession) -> list[OpenApproval]:
        return [
            OpenApproval(_view(approval), await view_transfer(session, transfer, now))
            for approval, transfer in (await session.exec(query)).all()
        ]

    return await bank.read(work)


async def decide_approval(
    bank: Bank, approval_id: str, *, granted: bool, manager: str, now: datetime
) -> ApprovalView | NotFound | Refused:
    """Grant a request, or refuse it, which voids the transfer.

    Deciding again the same way changes nothing; a decision cannot be reversed, nor can one be
    made when the transfer is no longer pending.
    """
    refused = check_required_text(bank.rules, Argument.MANAGER, manager)
    if refused:
        return refused

    async def work(session: AsyncSession) -> ApprovalView | NotFound | Refused:
        approval = await find_record(session, Approval, approval_id)
        if approval is None:
            return NotFound(Argument.APPROVAL_ID, excerpt(approval_id))
        outcome = await _decide(session, approval, granted=granted, manager=manager, now=now)
        call = Call(
            customer_id=approval.customer_id,
            tool=f"approvals {'grant' if granted else 'refuse'}",
            at=now,
        )
        said = "not_decided" if isinstance(outcome, Refused) else outcome.status
        add_event(session, call, said, approval.approval_id)
        return outcome

    return await bank.write(work)


async def _decide(
    session: AsyncSession, approval: Approval, *, granted: bool, manager: str, now: datetime
) -> ApprovalView | Refused:
    decision: ApprovalStatus = "granted" if granted else "refused"
    if approval.status == "requested":
        transfer = await session.get_one(Transfer, approval.transfer_id)
        expire_if_due(transfer, now)
        refused = check_still_pending(transfer)
        if refused:
            return refused
        approval.status = decision
        approval.decided_by = manager
        approval.decided_at = now
        transfer.approval = decision
        if not granted:
            transfer.status = "voided"
            transfer.reason = REFUSED_BY_MANAGER
    return check_decision(approval, decision) or _view(approval)


def _view(approval: Approval) -> ApprovalView:
    return ApprovalView(
        approval_id=approval.approval_id,
        transfer_id=approval.transfer_id,
        customer_id=approval.customer_id,
        reason=approval.reason,
        status=approval.status,
        created_at=approval.created_at,
        decided_by=approval.decided_by,
        decided_at=approval.decided_at,
    )
