"""The output of the desk commands, for agents, managers and auditors."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel
from rich.console import Console

from banking_server.bank.models import Approval, AuditEvent, Handoff
from banking_server.bank.money import format_money, to_decimal
from banking_server.client.printing import say, say_in_parts

if TYPE_CHECKING:  # Each command imports only the modules of the bank that it needs.
    from banking_server.bank.approvals import OpenApproval
    from banking_server.bank.transfers.outcomes import TransferView
    from banking_server.bank.transfers.records import PendingCode

_WISHES = {"realtime": "wants to speak to an agent now", "callback": "wants to be called back"}


def show_handoffs(out: Console, handoffs: Sequence[Handoff]) -> None:
    """Print handoffs in the given order, oldest first."""
    if not handoffs:
        say(out, "No customer is waiting for an agent.")
    for handoff in handoffs:
        wish = _WISHES.get(handoff.choice or "", "has not said how to be connected")
        say(out, f"{handoff.handoff_id}  {handoff.status}", style="bold")
        say(out, f"{handoff.customer_id} {wish}, since {_time(handoff.created_at)}", indent=2)
        say(out, handoff.reason, indent=2)
        if handoff.claimed_by:
            say(out, f"taken by {handoff.claimed_by}", indent=2)


def show_open_approvals(out: Console, waiting: "Sequence[OpenApproval]") -> None:
    """Print the requests that wait for a manager, each with its transfer."""
    if not waiting:
        say(out, "No transfer is waiting for a manager.")
    for request in waiting:
        show_approval(out, request.approval)
        say(out, _transfer(request.transfer), indent=2)


def show_approval(out: Console, approval: Approval) -> None:
    """Print a request for approval, and who decided it."""
    say(out, f"{approval.approval_id}  {approval.status}", style="bold")
    by = f"; {approval.status} by {approval.decided_by}" if approval.decided_by else ""
    say(out, f"{approval.customer_id}, asked on {_time(approval.created_at)}{by}", indent=2)
    say(out, approval.reason, indent=2)


def show_codes(out: Console, waiting: "Sequence[PendingCode]") -> None:
    """Print the codes of pending transfers."""
    if not waiting:
        say(out, "No transfer is waiting to be confirmed.")
    for each in waiting:
        transfer = each.transfer
        say(out, f"{transfer.transfer_id}  {each.code}", style="bold")
        first = ", after a manager has approved it" if each.needs_manager else ""
        say(out, f"{transfer.customer_id}, until {_time(transfer.expires_at)}{first}", indent=2)
        say(out, _transfer(transfer), indent=2)


def handoff_as_json(handoff: Handoff) -> str:
    """Return a handoff as one line of JSON."""
    return _as_json(
        handoff, "handoff_id", "status", "customer_id", "choice", "reason", "created_at"
    )


def approval_as_json(request: "OpenApproval") -> str:
    """Return a request that waits for a manager, and its transfer, as one line of JSON."""
    names = ("approval_id", "status", "customer_id", "reason", "created_at")
    return _as_json(request.approval, *names, **_about(request.transfer))


def code_as_json(waiting: "PendingCode") -> str:
    """Return the code of a transfer as one line of JSON."""
    also = {"code": waiting.code, "needsManager": waiting.needs_manager}
    transfer = waiting.transfer
    return _as_json(transfer, "customer_id", "expires_at", **also, **_about(transfer))


def event_as_json(event: AuditEvent) -> str:
    """Return an event as one line of JSON."""
    names = ("event_id", "at", "customer_id", "tool", "outcome", "subject")
    return _as_json(event, *names, "chain_id", "chain_level", "chain_previous_tool")


def _about(transfer: "TransferView") -> dict[str, Any]:
    return {
        "transferId": transfer.transfer_id,
        "amount": float(to_decimal(transfer.amount_minor)),
        "currency": transfer.currency,
        "fromAccountId": transfer.from_account_id,
        "toAccountId": transfer.to_account_id,
    }


def _as_json(record: object, *names: str, **more: Any) -> str:
    """Return members of a record as one line of JSON, with their names in MCP.

    A time is UTC in ISO 8601, an amount a number. Unknown values are null.
    """
    members = {to_camel(name): getattr(record, name) for name in names} | more
    return json.dumps(members, default=datetime.isoformat)


def show_settled(out: Console, transfers: "Sequence[TransferView]") -> None:
    """Print what a settlement did."""
    if not transfers:
        say(out, "Nothing was due.")
    for transfer in transfers:
        why = f": {transfer.reason}" if transfer.reason else ""
        say(out, f"{transfer.transfer_id}  {transfer.status}{why}", style="bold")
        say(out, _transfer(transfer), indent=2)


def show_events(out: Console, events: Sequence[AuditEvent]) -> None:
    """Print a part of the audit trail, with the chains of the calls."""
    for event in events:
        subject = f" {event.subject}" if event.subject else ""
        say_in_parts(
            out,
            (f"{_time(event.at)}  ", "dim"),
            (f"{event.customer_id}  ", ""),
            (event.tool, "bold"),
            (f"  {event.outcome}{subject}", ""),
        )
        if event.chain_id:
            after = f", after {event.chain_previous_tool}" if event.chain_previous_tool else ""
            chain = f"chain {event.chain_id}, call {event.chain_level}{after}"
            say(out, chain, indent=2, style="dim")


def _transfer(transfer: "TransferView") -> str:
    amount = format_money(transfer.amount_minor, transfer.currency)
    to = transfer.to_account_holder or transfer.to_account_name
    return f"{amount} from {transfer.from_account_name} to {to} ({transfer.transfer_id})"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
