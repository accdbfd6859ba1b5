"""The table that says which tool follows which outcome.

No other module of the bank names a next tool, so this file shows when a chain continues. The rules
for the outcomes are in `bank/rules.py`.

A title tells the user in one line why the next tool is called. It contains no information that is
not in the arguments. The directive for a locked account has no title, as in the pattern.
"""

from collections.abc import Callable
from typing import Any, Final

from banking_server.bank.approvals import ApprovalRequested
from banking_server.bank.rules import Outcome
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    ApprovalOutstanding,
    Expired,
    OverThreshold,
    Posted,
    TransferView,
)
from banking_server.tools.amounts import json_amount
from tool_chaining import Directive


def _speak_to_an_agent(locked: AccountLocked) -> Directive:
    account = locked.account
    return Directive(
        tool="request_agent_handoff",
        arguments={
            "reason": "Customer attempted to transfer from locked account: "
            f"{account.account_name} ({account.account_id})"
        },
    )


def _ask_the_manager(outcome: OverThreshold | ApprovalOutstanding) -> Directive | None:
    if isinstance(outcome, ApprovalOutstanding) and outcome.requested:
        return None
    return Directive(
        tool="request_manager_approval",
        arguments={
            "transferId": outcome.transfer.transfer_id,
            "reason": "The amount is above what can be transferred without a manager's approval",
        },
        title="Ask a manager to approve this transfer: the bank requires it for this amount",
    )


def _speak_to_an_agent_out_of_hours(requested: ApprovalRequested) -> Directive | None:
    if requested.branch_open:
        return None
    return Directive(
        tool="request_agent_handoff",
        arguments={
            "reason": "Manager approval requested outside branch hours for transfer: "
            f"{requested.transfer.transfer_id}"
        },
        title="Speak to an agent: no manager is at the branch at this hour",
    )


def _prepare_again(expired: Expired) -> Directive:
    return Directive(
        tool="prepare_money_transfer",
        arguments={
            **_details(expired.transfer),
            "expiredTransferId": expired.transfer.transfer_id,
        },
        title="Prepare the transfer again: it was not confirmed in time",
    )


def _report(posted: Posted) -> Directive | None:
    if posted.compliance_rule is None:
        return None
    return Directive(
        tool="record_compliance_report",
        arguments={"transferId": posted.transfer.transfer_id, "rule": posted.compliance_rule},
        title="Report this payment to the bank's compliance desk, as a rule requires",
    )


def _details(transfer: TransferView) -> dict[str, Any]:
    details: dict[str, Any] = {
        "fromAccountId": transfer.from_account_id,
        "toAccountId": transfer.to_account_id,
        "amount": json_amount(transfer.amount_minor),
    }
    if transfer.scheduled_date is not None:
        details["scheduledDate"] = transfer.scheduled_date.isoformat()
    if transfer.memo is not None:
        details["memo"] = transfer.memo
    return details


_NEXT_STEPS: Final[dict[type[Any], Callable[[Any], Directive | None]]] = {
    # 1. The account is locked: a person has to help.
    AccountLocked: _speak_to_an_agent,
    # 2. The amount is above the approval threshold: the manager has to agree,
    #    and if no manager is in, a person has to help.
    OverThreshold: _ask_the_manager,
    ApprovalOutstanding: _ask_the_manager,
    ApprovalRequested: _speak_to_an_agent_out_of_hours,
    # 3. The transfer waited too long: prepare it again.
    Expired: _prepare_again,
    # 4. The payment must be reported to compliance.
    Posted: _report,
}


def next_step(outcome: Outcome) -> Directive | None:
    """Return the directive to the tool that must be called after `outcome`, or None."""
    rule = _NEXT_STEPS.get(type(outcome))
    return None if rule is None else rule(outcome)
