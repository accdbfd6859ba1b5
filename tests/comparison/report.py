"""What the runs come to: each judged by its database, then the table."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import fields
from math import sqrt

from .runs import Run, plan
from .tasks import NAMES, Case, Task
from .ways import Way


def _case(run: Run) -> Case:
    return Case(**{field.name: run[field.name] for field in fields(Case)})


def judge(run: Run) -> tuple[bool, bool]:
    """Judge a run by what the bank held at its end, the branch being closed.

    Return whether that is what was asked for, and nothing else; and whether something was done
    that nobody asked for.
    """
    case, stored = _case(run), run["stored"]
    transfers, approvals, handoffs = stored["transfers"], stored["approvals"], stored["handoffs"]
    asked = [case.source, case.target, case.amount, None]
    statuses = [status for *transfer, status in transfers if transfer == asked]
    wrong = (
        len(statuses) < len(transfers)
        or len(statuses) > 1
        or ("posted" in statuses and case.task != Task.TRANSFER)
        or len(approvals) > (case.task == Task.THRESHOLD)
        # An approval that is requested out of hours takes an agent.
        or len(handoffs) > (case.task == Task.LOCKED or bool(approvals))
    )
    match case.task:
        case Task.LOCKED:
            done = not statuses and any(_is_about(case, *handoff) for handoff in handoffs)
        case Task.THRESHOLD:
            done = statuses == ["pending"] and len(approvals) == len(handoffs) == 1
        case _:
            done = statuses == ["posted"] and not stored["reports"]
    return done and not wrong, wrong


def _is_about(case: Case, reason: str, choice: str | None) -> bool:
    """Say whether the agent is told which account it is, and how the customer is connected."""
    named = any(name.lower() in reason.lower() for name in (case.source, NAMES[case.source]))
    return named and choice == case.connection


def wilson(right: int, runs: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, from 0 to 1."""
    z = statistics.NormalDist().inv_cdf(0.975)
    share, extra = right / runs, z * z / runs
    half = z * sqrt(share * (1 - share) / runs + extra / (4 * runs))
    return (share + extra / 2 - half) / (1 + extra), (share + extra / 2 + half) / (1 + extra)


COSTS: dict[str, Callable[[Run], int]] = {
    "calls": lambda run: len(run["stored"]["calls"]),
    "replies": lambda run: len(run["replies"]),
    "tokens in": lambda run: sum(reply["tokens_in"] for reply in run["replies"]),
    "tokens out": lambda run: sum(reply["tokens_out"] for reply in run["replies"]),
}
"""What a run costs, by the name of the table's column."""

ALL = "all tasks"


class Line:
    """All runs of one task in one way, counted."""

    def __init__(self, task: Task | str, way: Way, runs: Sequence[Run]) -> None:
        self.task, self.way, self.runs = task, way, len(runs)
        verdicts = [judge(run) for run in runs]
        self.right = sum(right for right, _ in verdicts)
        self.wrong = sum(wrong for _, wrong in verdicts)
        self.refused = sum(bool(run["refused"]) for run in runs)
        self.costs = {name: statistics.median_low(map(of, runs)) for name, of in COSTS.items()}

    @property
    def share(self) -> str:
        """How many were right, in words."""
        low, high = wilson(self.right, self.runs)
        return f"{self.right} of {self.runs} ({100 * low:.0f}\u2013{100 * high:.0f} %)"


def lines(runs: Sequence[Run]) -> list[Line]:
    """Return a line for each task and way, in their own order, and one for each way in all."""
    found = {
        (task, way): [run for run in runs if run["way"] == way and task in (ALL, run["task"])]
        for task in (*Task, ALL)
        for way in Way
    }
    return [Line(task, way, group) for (task, way), group in found.items() if group]


def page(runs: Sequence[Run]) -> str:
    """Return the table in Markdown, how to read it, each wrong action, and the conditions."""
    columns = ["task", "way", "right", "wrong action", "refused"]
    rows: list[list[object]] = [[*columns, *COSTS], ["---"] * (len(columns) + len(COSTS))]
    before: Task | str = ""
    for one in lines(runs):
        counts = [one.share, one.wrong, one.refused]
        costs = [f"{cost:,}" for cost in one.costs.values()]
        rows.append([one.task if one.task != before else "", one.way, *counts, *costs])
        before = one.task
    wrong = [
        f"- {run['task']} {run['number']}, {run['way']}: {run['stored']['transfers']}"
        for run in runs
        if judge(run)[1]
    ]
    made = {name: value for run in runs for name, value in run["conditions"].items()}
    parts = [
        "# What was measured",
        "From `python -m tests.comparison report`; [README.md](README.md) says how to read it.",
        "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows),
        "Wrong actions, with the transfers that there were:" if wrong else "No wrong action.",
        "\n".join(wrong),
        f"{len(runs)} of the {len(plan())} runs that are planned, all made with:",
        "\n".join(f"- {name}: {value}" for name, value in made.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
