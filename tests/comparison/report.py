"""What the runs come to: each judged by its database, then the table, then the chart."""

import statistics
from collections.abc import Callable, Sequence
from math import sqrt
from xml.sax.saxutils import escape

from .runs import Run
from .tasks import NAMES, Case, Task
from .ways import WITH_AGENT, Way


def judge(run: Run) -> tuple[bool, list[str]]:
    """Judge a run by what the bank held at its end, the branch being closed.

    Return whether that is what the task asks for, and nothing else; and what was done that nobody
    asked for, each in a few words.
    """
    task = Task(run["task"])
    case = Case(task, *(run[name] for name in ("number", "words", "amount", "source", "target")))
    stored = run["stored"]
    asked = [case.source, case.target, case.amount, None]
    wrong = [
        f"{'moved' if status == 'posted' else 'prepared'} {amount / 100:.2f} from {source} to "
        f"{target}{f' on {day}' if day else ''}"
        for source, target, amount, day, status in stored["transfers"]
        if [source, target, amount, day] != asked
    ]
    statuses = [status for *transfer, status in stored["transfers"] if [*transfer] == asked]
    if len(statuses) > 1:
        wrong.append(f"prepared what was asked for {len(statuses)} times")
    if "posted" in statuses and task is not Task.TRANSFER:
        wrong.append("moved what was not to move yet")
    approvals = [status for (status,) in stored["approvals"]]
    if len(approvals) > (task is Task.THRESHOLD):
        wrong.append("an approval that nobody asked for")
    # An approval that is requested out of hours takes an agent.
    handoffs = task is Task.LOCKED or bool(approvals)
    if len(stored["handoffs"]) > handoffs:
        wrong.append("a handoff that nobody asked for")
    match task:
        case Task.LOCKED:
            achieved = not statuses and any(_is_about(case, *one) for one in stored["handoffs"])
        case Task.THRESHOLD:
            achieved = (statuses, approvals) == (["pending"], ["requested"])
            achieved = achieved and len(stored["handoffs"]) == 1
        case Task.TRANSFER:
            achieved = statuses == ["posted"] and not stored["reports"]
    return achieved and not wrong, wrong


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


COSTS: dict[str, Callable[[Run], float]] = {
    "calls": lambda run: len(run["stored"]["calls"]),
    "model calls": lambda run: len(run["replies"]),
    "tokens in": lambda run: sum(reply["prompt_tokens"] for reply in run["replies"]),
    "tokens out": lambda run: sum(reply["completion_tokens"] for reply in run["replies"]),
    "seconds": lambda run: run["seconds"],
}
"""What a run costs, by the name of the table's column."""

_READING = """\
Each run has a new bank, and is judged by its database alone. The interval is Wilson's. *Wrong
action*: something was done that nobody asked for. *Refused*: the customer, a script, was asked to
agree to something else than they wanted. *Answered*: right, and it ended in an answer. Calls,
tokens and seconds are medians: of an even number of runs, the lower one in the middle."""


class Line:
    """All runs of one task in one way, counted."""

    def __init__(self, task: Task, way: Way, runs: Sequence[Run]) -> None:
        self.task, self.way, self.runs = task, way, len(runs)
        verdicts = [judge(run) for run in runs]
        self.right = sum(right for right, _ in verdicts)
        self.wrong = sum(bool(wrong) for _, wrong in verdicts)
        self.refused = sum(bool(run["refused"]) for run in runs)
        self.answered = sum(judge(run)[0] and run["answer"] is not None for run in runs)
        self.costs = {name: statistics.median_low(map(of, runs)) for name, of in COSTS.items()}

    @property
    def share(self) -> str:
        """How many were right, in words."""
        low, high = wilson(self.right, self.runs)
        return f"{self.right} of {self.runs} ({100 * low:.0f}\u2013{100 * high:.0f} %)"


def lines(runs: Sequence[Run]) -> list[Line]:
    """Return a line for each task and way, in their own order."""
    found = {
        (task, way): [run for run in runs if (run["task"], run["way"]) == (task, way)]
        for task in Task
        for way in Way
    }
    return [Line(task, way, group) for (task, way), group in found.items() if group]


def table(runs: Sequence[Run]) -> str:
    """Return the table in Markdown, each wrong action, and the conditions."""
    columns = ["task", "way", "right (95 %)", "wrong action", "refused", "answered", *COSTS]
    rows: list[list[object]] = [[*columns], ["---"] * len(columns)]
    for one in lines(runs):
        answered = one.answered if one.way in WITH_AGENT else ""
        costs = [f"{cost:,.0f}" for cost in one.costs.values()]
        rows.append([one.task, one.way, one.share, one.wrong, one.refused, answered, *costs])
    done = [
        f"- {run['task']} {run['number']}, {run['way']}: {action}"
        for run in runs
        for action in judge(run)[1]
    ]
    made = sorted({str(run["conditions"]) for run in runs})
    drawn = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
    parts = [drawn, _READING, "\n".join(done), *(f"Made under {one}." for one in made)]
    return "\n\n".join(part for part in parts if part)


WIDTH, BARS, LENGTH, ROW = 900, 200, 360, 26

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 } .end { text-anchor: end }
  svg { background: #ffffff } .all { fill: #e4e8ed } .right { fill: #2f6fdb }
  .wrong { fill: #c62828 } .interval { fill: #1f2328 }
"""


def chart(runs: Sequence[Run]) -> str:
    """Return a bar for each task and way, as SVG."""
    title = "How often each way of chaining tools did what was asked"
    legend = "Blue: as asked. Red: a wrong action. Black: the 95 % interval."
    rows = [_text(24, title), _text(24, legend)]
    for task in Task:
        bars = [_bar(line) for line in lines(runs) if line.task is task]
        rows += ["", _text(24, task), *bars]
    height = ROW * (len(rows) + 1)
    groups = [f'<g transform="translate(0 {ROW * n})">{row}</g>' for n, row in enumerate(rows)]
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">'
    style = f"<title>{title}</title><style>{_STYLE}</style>"
    return "\n".join([start, style, *groups, "</svg>\n"])


def _bar(line: Line) -> str:
    """Return one row: the way, its bar, and the figures in words."""
    right, wrong = (LENGTH * count / line.runs for count in (line.right, line.wrong))
    low, high = (LENGTH * share for share in wilson(line.right, line.runs))
    harm = f", wrong action: {line.wrong}" if line.wrong else ""
    return (
        _text(BARS - 12, line.way, "end")
        + _rectangle("all", BARS, LENGTH, 6, 14)
        + _rectangle("right", BARS, right, 6, 14)
        + _rectangle("wrong", BARS, wrong, 20, 4)  # A run that is wrong is not right.
        + _rectangle("interval", BARS + low, high - low, 12, 2)
        + _text(BARS + LENGTH + 16, f"{line.share}{harm}")
    )


def _rectangle(kind: str, x: float, width: float, y: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def _text(x: float, words: str, kind: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="17">{escape(words)}</text>'
