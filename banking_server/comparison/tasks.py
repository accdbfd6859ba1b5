"""What is to be achieved: the tasks, and what the customer of each wording means and agrees to."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from banking_server.comparison import wordings
from banking_server.comparison.wordings import Wording


class Task(StrEnum):
    """What is to be achieved."""

    LOCKED = "locked account to recorded handoff"
    """The accounts' ids are given; the bank directs to an agent."""
    TRANSFER = "list, choose, transfer"
    """The accounts' names are given; the transfer is to be posted. The bank directs nothing."""
    THRESHOLD = "threshold exceeded"
    """The ids are given; the bank directs to a manager, and then, out of hours, to an agent."""
    BALANCE = "balance of savings"
    """A question."""
    MOVE = "move and confirm"
    """An everyday request: names, and short ones; otherwise like `TRANSFER`."""
    LOCKED_BY_NAME = "pay from a locked account"
    """An everyday request: like `LOCKED`, with names."""
    PAY = "pay a payee, with report"
    """A payment to be posted; the bank then directs to a compliance report."""
    SPENT = "spent last month"
    """A question that needs the sum of a calendar month."""


CHAINS: Final = (Task.LOCKED, Task.TRANSFER, Task.THRESHOLD)
"""The tasks that are run unless others are named."""

EVERYDAY: Final = (Task.BALANCE, Task.MOVE, Task.LOCKED_BY_NAME, Task.PAY, Task.SPENT)

QUESTIONS: Final = (Task.BALANCE, Task.SPENT)
"""Nothing may be changed, and the answer must hold the right figure."""

DIRECTED: Final = (Task.LOCKED, Task.THRESHOLD, Task.LOCKED_BY_NAME, Task.PAY)
"""The bank names a step that follows."""

POSTED: Final = (Task.TRANSFER, Task.MOVE, Task.PAY)
"""The money is to have moved."""

TO_AN_AGENT: Final = (Task.LOCKED, Task.LOCKED_BY_NAME)

USUAL_SOURCE: Final = wordings.SAVINGS
"""Where the customer takes money from if the words leave it open."""

_WORDINGS: Final[dict[Task, tuple[Wording, ...]]] = {
    Task.LOCKED: wordings.LOCKED,
    Task.TRANSFER: wordings.TRANSFER,
    Task.THRESHOLD: wordings.THRESHOLD,
    Task.BALANCE: wordings.BALANCE,
    Task.MOVE: wordings.MOVE,
    Task.LOCKED_BY_NAME: wordings.LOCKED_BY_NAME,
    Task.PAY: wordings.PAY,
    Task.SPENT: wordings.SPENT,
}

WORDINGS: Final = min(len(each) for each in _WORDINGS.values())
"""Wordings of each task."""


@dataclass(frozen=True)
class Case:
    """One wording of a task, and what the customer means by it."""

    task: Task
    number: int
    """Of the wording, from 1."""
    words: str
    minor: int
    """The amount, in minor units; 0 for a question."""
    source: str
    """The id of the account to take the money from; empty for a question."""
    target: str
    """The id of the account or payee to send it to; empty for a question."""
    source_said: bool
    """Whether the words say which account to take it from."""
    all_debits: bool = False
    """Of what was spent: whether what was moved to accounts of the customer's own counts too."""

    @property
    def amount(self) -> float:
        """The amount as JSON has it."""
        return self.minor / 100

    @property
    def connection(self) -> Literal["callback", "realtime"]:
        """How the customer wants to be connected with an agent: by turns the one and the other."""
        return "callback" if self.number % 2 else "realtime"


def cases(task: Task) -> list[Case]:
    """Return the wordings of a task, always in the same order."""
    return [
        Case(
            task,
            number,
            wording.words,
            wording.minor,
            wording.source or (USUAL_SOURCE if wording.minor else ""),
            wording.target,
            bool(wording.source),
            wording.all_debits,
        )
        for number, wording in enumerate(_WORDINGS[task], 1)
    ]
