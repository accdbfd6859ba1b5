"""What the runs come to: each judged by its database, then the table, then the chart."""

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import Decimal
from math import sqrt
from xml.sax.saxutils import escape

from .runs import Run
from .tasks import NAMES, Case, Task
from .ways import WITH_AGENT, Way


def _case(run: Run) -> Case:
    return Case(**{field.name: run[field.name] for field in fields(Case)})


def judge(run: Run) -> tuple[bool, list[str]]:
    """Judge a run by what the bank held at its end, the branch being closed.

    Return whether that is what the task asks for, and nothing else; and what was done that nobody
    asked for, each in a few words.
    """
    case, stored = _case(run), run["stored"]
    task = Task(case.task)
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


_PERSON = re.compile(r"\bI(?:'ll|'d| will| need| want| would| have to)\b")
"""The model speaks as if it were the customer, or promises what it will not do: a run is over."""

_ID = re.compile(r"\b[a-z]+_[0-9a-f]{16}\b")

_AGENT = re.compile(
    r"\b(?:agent|representative|handoff|call(?:ed)? (?:you )?back|callback)\b", re.I
)
"""What an answer has to name where an agent was asked for."""

_MOVED = re.compile(
    r"\b(?:transferred|moved|posted|sent)\b|\b(?:transfer|payment|money|it)\b.*"
    r"\b(?:complete[d]?|confirmed|done|executed|made|processed|success\w*)\b",
    re.I,
)
"""A sentence that says that money has moved, if it has none of the next words."""

_NOT_YET = re.compile(
    r"n't\b|\b(?:after|approv\w+|before|can|cannot|could|declined|fail\w*|if|locked|must|needs?|not|"
    r"once|pending|please|prepared|request\w*|to be|unable|until|will|would)\b|\?",
    re.I,
)


def told_truly(run: Run) -> bool:
    """Say whether a run that is right also ended in an answer that says what became of it.

    The rules are strict: an answer has to name the agent who was asked for, or the amount that was
    moved; to say that money has moved where it has, and only there; and to give no id that the
    bank does not have. It must not repeat the request, nor speak as the customer.
    """
    case, answer = _case(run), run["answer"] or ""
    known = {one for (one,) in run["stored"]["ids"]}
    if not judge(run)[0] or not known.issuperset(_ID.findall(answer)):
        return False
    if _PERSON.search(answer) or case.words.casefold() in answer.casefold():
        return False
    sentences = re.split(r"(?<=[.!?])\s+", answer)
    moved = any(_MOVED.search(one) and not _NOT_YET.search(one) for one in sentences)
    if case.task != Task.TRANSFER:
        return not moved and _AGENT.search(answer) is not None
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", _ID.sub("", answer))
    amounts = {Decimal(number.replace(",", "")) for number in numbers}
    return moved and Decimal(case.amount) / 100 in amounts


def wilson(right: int, runs: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, from 0 to 1."""
    z = statistics.NormalDist().inv_cdf(0.975)
    share, extra = right / runs, z * z / runs
    half = z * sqrt(share * (1 - share) / runs + extra / (4 * runs))
    return (share + extra / 2 - half) / (1 + extra), (share + extra / 2 + half) / (1 + extra)


COSTS: dict[str, Callable[[Run], int]] = {
    "calls": lambda run: len(run["stored"]["calls"]),
    "replies": lambda run: len(run["replies"]),
    "tokens in": lambda run: sum(reply["prompt_tokens"] for reply in run["replies"]),
    "tokens out": lambda run: sum(reply["completion_tokens"] for reply in run["replies"]),
}
"""What a run costs, by the name of the table's column."""

ALL = "all tasks"


class Line:
    """All runs of one task in one way, counted."""

    def __init__(self, task: Task | str, way: Way, runs: Sequence[Run]) -> None:
        self.task, self.way, self.runs = task, way, len(runs)
        verdicts = [judge(run) for run in runs]
        self.right = sum(right for right, _ in verdicts)
        self.wrong = sum(bool(wrong) for _, wrong in verdicts)
        self.refused = sum(bool(run["refused"]) for run in runs)
        self.told = sum(map(told_truly, runs))
        ids = [right for run, (right, _) in zip(runs, verdicts, strict=True) if _gives_ids(run)]
        self.ids = f"{sum(ids)} of {len(ids)}"
        self.names = f"{self.right - sum(ids)} of {self.runs - len(ids)}"
        self.costs = {name: statistics.median_low(map(of, runs)) for name, of in COSTS.items()}

    @property
    def share(self) -> str:
        """How many were right, in words."""
        low, high = wilson(self.right, self.runs)
        return f"{self.right} of {self.runs} ({100 * low:.0f}\u2013{100 * high:.0f} %)"


def _gives_ids(run: Run) -> bool:
    return _case(run).names_ids


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
    columns = ["task", "way", "right", "ids", "names", "wrong action", "refused", "told truly"]
    rows: list[list[object]] = [[*columns, *COSTS], ["---"] * (len(columns) + len(COSTS))]
    for one in lines(runs):
        told = one.told if one.way in WITH_AGENT else ""
        counts = [one.share, one.ids, one.names, one.wrong, one.refused, told]
        rows.append([one.task, one.way, *counts, *(f"{cost:,}" for cost in one.costs.values())])
    wrong = [
        f"- {run['task']} {run['number']}, {run['way']}: {action}"
        for run in runs
        for action in judge(run)[1]
    ]
    made = {name: value for run in runs for name, value in run["conditions"].items()}
    parts = [
        "# What was measured",
        "From `python -m tests.comparison report`; [README.md](README.md) says how to read it.",
        "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows),
        "Wrong actions:" if wrong else "There was no wrong action.",
        "\n".join(wrong),
        f"{len(runs)} runs, all made with:",
        "\n".join(f"- {name}: {value}" for name, value in made.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


WIDTH, BARS, LENGTH, ROW = 900, 200, 360, 26

COLOURS = {
    "light": ("#1f2328", "#ffffff", "#d1d9e0", "#0969da", "#cf222e"),
    "dark": ("#f0f6fc", "#0d1117", "#3d444d", "#4493f8", "#f85149"),
}
"""Of the text, the ground, the whole bar, what is right, and what is wrong."""

TITLE = "How often each way of chaining tools did what was asked"
TOLD = "Blue: as asked. Red: a wrong action. The thin line: the 95 % interval."


def charts(runs: Sequence[Run]) -> dict[str, str]:
    """Return a bar for each task and way as SVG, for both lights, by the names of their files."""
    return {f"comparison-{light}.svg": _chart(runs, light) for light in COLOURS}


def _chart(runs: Sequence[Run], light: str) -> str:
    text, ground, whole, right, wrong = COLOURS[light]
    rows = [_text(24, TITLE), _text(24, TOLD)]
    for task in Task:
        bars = [_bar(line) for line in lines(runs) if line.task is task]
        rows += ["", _text(24, task), *bars]
    height = ROW * (len(rows) + 1)
    groups = [f'<g transform="translate(0 {ROW * n})">{row}</g>' for n, row in enumerate(rows)]
    style = (
        f"text {{ font: 14px system-ui, sans-serif; fill: {text} }} .end {{ text-anchor: end }} "
        f"svg {{ background: {ground} }} .all {{ fill: {whole} }} .right {{ fill: {right} }} "
        f".wrong {{ fill: {wrong} }} .interval {{ fill: {text} }}"
    )
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" role="img">'
    told = f"<title>{TITLE}</title><desc>{TOLD}</desc><style>{style}</style>"
    return "\n".join([start, told, *groups, "</svg>\n"])


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
