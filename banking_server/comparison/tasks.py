"""What is to be achieved, in the customer's words, and when it is."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from banking_server.bank.end_state import EndState


class Task(StrEnum):
    """What is to be achieved."""

    LOCKED = "locked account to recorded handoff"
    TRANSFER = "list, choose, transfer"
    THRESHOLD = "threshold exceeded"


CHECKING, SAVINGS, EVERYDAY = "acc_checking_001", "acc_savings_001", "acc_everyday_001"
NAMES: Final = {
    CHECKING: "Primary Checking",
    SAVINGS: "High Yield Savings",
    EVERYDAY: "Everyday Checking",
}
"""The accounts of the demo data that the tasks use. Primary Checking is locked."""


@dataclass(frozen=True)
class Case:
    """One variant of a task, in the customer's words."""

    task: Task
    words: str
    source: str
    """The id of the account to take the money from."""
    target: str
    """The id of the account to send it to."""
    amount: float


def cases(task: Task) -> list[Case]:
    """Return the variants of a task: other words and amounts, not other seeds of one prompt.

    If choosing the accounts is part of the task, the words give their names only; otherwise they
    give their ids too.
    """

    def named(account: str) -> str:
        return NAMES[account] if task is Task.TRANSFER else f"{NAMES[account]} ({account})"

    source, targets, amounts = {
        Task.LOCKED: (CHECKING, (SAVINGS, EVERYDAY), (250, 19.99, 75.5, 1200, 40)),
        Task.TRANSFER: (SAVINGS, (EVERYDAY,), (25.5, 310, 42.42, 99.99, 1500)),
        Task.THRESHOLD: (SAVINGS, (EVERYDAY,), (12000, 10000.01, 15500, 20000, 11111.11)),
    }[task]
    wordings = (
        "Please transfer {amount} USD from my {source} account to my {target} account.",
        "Move {amount} dollars from {source} to {target}.",
        "I need {amount} USD in {target}; take it from {source}.",
        "Can you send {amount} from {source} over to {target} for me?",
        "Transfer {amount} to {target}. The money should come from {source}.",
    )
    return [
        Case(
            task,
            wording.format(amount=amount, source=named(source), target=named(target)),
            source,
            target,
            amount,
        )
        for index, (wording, amount) in enumerate(zip(wordings, amounts, strict=True))
        for target in [targets[index % len(targets)]]
    ]


def is_achieved(case: Case, end: EndState, *, branch_open: bool) -> bool:
    """Whether the bank holds what the task asks for, and nothing else.

    `branch_open` says whether the branch was open: if not, a transfer above the threshold is
    handed to an agent too.
    """
    if case.task is Task.LOCKED:
        return (
            len(end.handoffs) == 1
            and case.source in end.handoffs[0].reason
            and end.handoffs[0].choice == "callback"
            and not end.transfers
        )
    if len(end.transfers) != 1:
        return False
    transfer = end.transfers[0]
    as_asked = (transfer.from_account_id, transfer.to_account_id, transfer.amount_minor) == (
        case.source,
        case.target,
        round(case.amount * 100),
    )
    if case.task is Task.TRANSFER:
        return as_asked and transfer.status == "posted" and not end.handoffs
    return (
        as_asked
        and transfer.status == "pending"
        and [approval.status for approval in end.approvals] == ["requested"]
        and len(end.handoffs) == (0 if branch_open else 1)
    )
