"""What is to be achieved, and what the customer of each wording means by it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import yaml


class Task(StrEnum):
    LOCKED = "locked account to recorded handoff"
    """The bank directs to an agent."""
    TRANSFER = "list, choose, transfer"
    """The accounts' names are given; the transfer is to be posted. The bank directs nothing."""
    THRESHOLD = "threshold exceeded"
    """The bank directs to a manager, and then, the branch being closed, to an agent."""


NAMES = {
    "acc_checking_001": "Primary Checking",  # It is locked.
    "acc_savings_001": "High Yield Savings",
    "acc_everyday_001": "Everyday Checking",
    "acc_retirement_001": "Retirement Fund",
}
"""The accounts of the demo data that the wordings mean."""


@dataclass(frozen=True)
class Case:
    """One wording of a task, and what the customer means by it."""

    task: Task
    number: int
    """Of the wording, from 1."""
    by: str
    """Whose words they are."""
    words: str
    amount: int
    """In minor units."""
    source: str
    """The id of the account to take the money from."""
    target: str
    """The id of the account to send it to."""

    @property
    def dollars(self) -> float:
        """The amount as JSON has it."""
        return self.amount / 100

    @property
    def connection(self) -> str:
        """How the customer wants to be connected with an agent: by turns, two and two."""
        return "callback" if self.number % 4 in (1, 2) else "realtime"


@cache
def cases(task: Task) -> tuple[Case, ...]:
    """Return the wordings of a task, always in the same order."""
    text = Path(__file__).with_name("wordings.yaml").read_text(encoding="utf-8")
    wordings = yaml.safe_load(text)[task]
    return tuple(Case(task, number, **one) for number, one in enumerate(wordings, 1))
