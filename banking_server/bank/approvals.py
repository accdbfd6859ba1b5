"""Approvals: a transfer above the threshold waits for a manager's decision."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank import rules
from banking_server.bank.audit import Call, add_event
from banking_server.bank.models import TABLES, Approval, ApprovalStatus, Transfer, new_id
from banking_server.bank.rules import Argument, NotFound, Outcome, Refused
from banking_server.bank.storage import Bank, find_record
from banking_server.bank.transaction import Transaction, has_status, records
from banking_server.bank.transfers.outcomes import TransferView
from banking_server.bank.transfers.records import (
    Parties,
    act_on_transfer,
    expire_if_due,
    read_parties,
    set_status,
    view_transfer,
)


@dataclass(frozen=True)
class OpenApproval(Outcome):
    """A request that waits for a manager, and its transfer."""

    approval: Approval
    transfer: TransferView

    @property
    def subject(self) -> str:
        """The request, for the audit trail."""
        return self.approval.approval_id


@dataclass(frozen=True)
class ApprovalRequested(OpenApproval, recorded_as="approval_requested"):
    """A manager has been asked, now or earlier. `branch_open`: can one be reached now?"""

    branch_open: bool


@dataclass(frozen=True)
class ApprovalGranted(OpenApproval, recorded_as="approval_granted"):
    """A manager has granted it: the transfer can be confirmed."""


async def request_approval(
    bank: Bank, call: Call, transfer_id: str, *, reason: str
) -> ApprovalRequested | ApprovalGranted | NotFound | Refused:
    """Ask for a manager's approval of a pending transfer that needs it; asked once per transfer."""

    def rule(
        tx: Transaction, transfer: Transfer, parties: Parties
    ) -> ApprovalRequested | ApprovalGranted | Refused:
        refused = rules.check_required_text(bank.rules, Argument.REASON, reason)
        if refused:
            return refused
        expire_if_due(tx, transfer, parties.from_account, call.at)
        refused = rules.check_approval_request(transfer)
        if refused:
            return refused
        approval = tx.first(_OF_TRANSFER, transfer_id=transfer.transfer_id)
        if approval is None:
            approval = Approval(
                approval_id=new_id("ap"),
                transfer_id=transfer.transfer_id,
                customer_id=transfer.customer_id,
                reason=reason,
                created_at=call.at,
            )
            tx.add(approval)
            tx.change(transfer, approval="requested")
        transfer_view = view_transfer(transfer, parties, call.at)
        if approval.status == "granted":
            return ApprovalGranted(approval, transfer_view)
        return ApprovalRequested(approval, transfer_view, rules.is_branch_open(bank.rules, call.at))

    return await act_on_transfer(bank, call, transfer_id, rule)


_approvals, _transfers = TABLES[Approval].c, TABLES[Transfer].c
_OF_TRANSFER = records(Approval, _approvals.transfer_id == sa.bindparam("transfer_id"))
_WAITING = records(
    Approval,
    _approvals.status == "requested",
    _approvals.transfer_id.in_(
        sa.select(_transfers.transfer_id).where(
            has_status(Transfer, "pending"), _transfers.expires_at > sa.bindparam("now")
        )
    ),
    order_by=[_approvals.created_at, _approvals.approval_id],
)


async def list_open_approvals(bank: Bank, now: datetime) -> list[OpenApproval]:
    """Return the requests that a manager can still decide, the oldest first."""

    def look(tx: Transaction) -> list[OpenApproval]:
        waiting = []
        for approval in tx.all(_WAITING, now=now):
            transfer = tx.get(Transfer, approval.transfer_id)
            view = view_transfer(transfer, read_parties(tx, transfer), now)
            waiting.append(OpenApproval(approval, view))
        return waiting

    return await bank.read(look)


async def decide_approval(
    bank: Bank, approval_id: str, *, granted: bool, manager: str, now: datetime
) -> Approval | NotFound | Refused:
    """Grant a request, or refuse it, which voids the transfer.

    Repeating a decision changes nothing. A decision cannot be reversed, or made for a transfer that
    is no longer pending.
    """
    refused = rules.check_required_text(bank.rules, Argument.MANAGER, manager)
    if refused:
        return refused

    def work(tx: Transaction) -> Approval | NotFound | Refused:
        found = find_record(tx, Approval, approval_id)
        if found is None:
            return NotFound(Argument.APPROVAL_ID, rules.excerpt(approval_id))
        tx.lock(found.customer_id)
        approval = tx.get(Approval, approval_id)
        outcome = _decide(tx, approval, granted=granted, manager=manager, now=now)
        tool = f"approvals {'grant' if granted else 'refuse'}"
        call = Call(customer_id=approval.customer_id, tool=tool, at=now)
        said = "not_decided" if isinstance(outcome, Refused) else outcome.status
        add_event(tx, call, said, approval.approval_id)
        return outcome

    return await bank.write(work)


def _decide(
    tx: Transaction, approval: Approval, *, granted: bool, manager: str, now: datetime
) -> Approval | Refused:
    decision: ApprovalStatus = "granted" if granted else "refused"
    if approval.status == "requested":
        transfer = tx.get(Transfer, approval.transfer_id)
        from_account = read_parties(tx, transfer).from_account
        expire_if_due(tx, transfer, from_account, now)
        refused = rules.check_still_pending(transfer)
        if refused:
            return refused
        tx.change(approval, status=decision, decided_by=manager, decided_at=now)
        if granted:
            tx.change(transfer, approval=decision)
        else:
            set_status(
                tx,
                transfer,
                from_account,
                "voided",
                approval=decision,
                reason=rules.REFUSED_BY_MANAGER,
            )
    return rules.check_decision(approval, decision) or approval
