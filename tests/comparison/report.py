"""What the runs come to: each judged by its database, the table, and the chart."""

import statistics
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple
from xml.sax.saxutils import escape

from .runs import Run
from .tasks import NAMES, Case, Task
from .ways import WITH_AGENT, WITH_MODEL, Way

# --- judging


class Verdict(NamedTuple):
    """What came of a run, by the database alone."""

    right: bool
    """It holds what the task asks for, and nothing else."""
    wrong: list[str]
    """What was done that nobody asked for, each in a few words."""


def judge(run: Run) -> Verdict:
    """Judge a run by what the bank held at its end, the branch being closed."""
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
    return Verdict(achieved and not wrong, wrong)


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


# --- the table


class Line(NamedTuple):
    """All runs of one task in one way; calls, tokens and seconds are medians."""

    task: Task
    way: Way
    runs: int
    right: int
    wrong: int
    """Runs in which something was done that nobody asked for."""
    refused: int
    """Runs in which the customer was asked to agree to something else than they wanted."""
    answered: int
    """Runs that were right and ended in an answer to the user."""
    calls: float
    model_calls: float
    tokens_in: float
    tokens_out: float
    seconds: float

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
    return [_line(task, way, group) for (task, way), group in found.items() if group]


def _line(task: Task, way: Way, runs: Sequence[Run]) -> Line:
    verdicts = [judge(run) for run in runs]
    answers = [run["answer"] is not None for run in runs]

    def tokens(name: str) -> float:
        return statistics.median(sum(reply[name] for reply in run["replies"]) for run in runs)

    return Line(
        *(task, way, len(runs)),
        right=sum(one.right for one in verdicts),
        wrong=sum(bool(one.wrong) for one in verdicts),
        refused=sum(bool(run["refused"]) for run in runs),
        answered=sum(one.right and said for one, said in zip(verdicts, answers, strict=True)),
        calls=statistics.median(len(run["stored"]["calls"]) for run in runs),
        model_calls=statistics.median(len(run["replies"]) for run in runs),
        tokens_in=tokens("prompt_tokens"),
        tokens_out=tokens("completion_tokens"),
        seconds=statistics.median(run["seconds"] for run in runs),
    )


_HEAD = """\
| task | way | right (95 %) | wrong action | refused | answered | calls | model calls | tokens in \
| tokens out | seconds |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""

_READING = """\
Each run has a new bank, and is judged by its database alone. The interval is Wilson's. *Wrong
action*: something was done that nobody asked for. *Refused*: the customer, a script, was asked to
agree to something else than they wanted. *Answered*: right, and it ended in an answer. Calls,
tokens and seconds are medians."""


def table(runs: Sequence[Run]) -> str:
    """Return the table in Markdown, each wrong action, and the conditions."""
    rows = [_HEAD]
    for one in lines(runs):
        cells = [
            *(one.task, one.way, one.share, one.wrong, one.refused),
            *(one.answered if one.way in WITH_AGENT else "", f"{one.calls:g}"),
            *(f"{one.model_calls:g}", f"{one.tokens_in:,.0f}", f"{one.tokens_out:,.0f}"),
            f"{one.seconds:.0f}",
        ]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    done = [
        f"- {run['task']} {run['number']}, {run['way']}: {action}"
        for run in runs
        for action in judge(run).wrong
    ]
    made = sorted({str(run["conditions"]) for run in runs})
    parts = ["\n".join(rows), _READING, "\n".join(done), *(f"Made under {one}." for one in made)]
    return "\n\n".join(part for part in parts if part)


# --- the chart

WIDTH, BARS, LENGTH, ROW, TOP = 1000, 200, 360, 26, 104

_STYLE = """
  :root { color-scheme: light dark }
  svg { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
  .paper { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .track { fill: #e4e8ed } .right { fill: #2f6fdb } .wrong { fill: #c62828 }
  .interval { stroke: #1f2328; stroke-width: 1.5 }
  .heading { font-size: 18px; font-weight: 600 } .task { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 }
    .track { fill: #2a313c } .right { fill: #3f7fee } .wrong { fill: #f2645a }
    .interval { stroke: #f0f6fc }
  }"""


def chart(runs: Sequence[Run]) -> str:
    """Return a bar for each task and way as SVG, in the light or dark colours of the reader."""
    title = "How often each way of chaining tools did what was asked"
    body = [_text(24, 34, title, "text heading"), *_legend()]
    found = lines(runs)
    y = TOP
    for task in dict.fromkeys(line.task for line in found):
        body.append(_text(24, y, task, "text task"))
        y += 10
        for line in (one for one in found if one.task is task):
            body += _bar(line, y)
            y += ROW
        y += 24
    told = " ".join(f"{one.task}, {one.way}: {one.share}, wrong: {one.wrong}." for one in found)
    size = f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
            'aria-labelledby="title desc">',
            f'<title id="title">{title}</title>',
            f'<desc id="desc">{escape(told)}</desc>',
            f"<style>{_STYLE}\n</style>",
            f'<rect class="paper" width="{WIDTH}" height="{y}"/>',
            *body,
            "</svg>\n",
        ]
    )


def _legend() -> list[str]:
    parts = []
    kinds = {"right": "as asked", "track": "not as asked", "wrong": "wrong action"}
    for number, (kind, words) in enumerate(kinds.items()):
        parts.append(_rectangle(kind, 24 + 130 * number, 56, 12, 12))
        parts.append(_text(42 + 130 * number, 67, words, "quiet"))
    return [*parts, *_interval(420, 444, 62), _text(452, 67, "95 % interval", "quiet")]


def _bar(line: Line, y: int) -> list[str]:
    """Return one row: the way, its bar, and the figures in words."""
    right, wrong = (LENGTH * count / line.runs for count in (line.right, line.wrong))
    low, high = (BARS + LENGTH * share for share in wilson(line.right, line.runs))
    cost = (
        f"{line.tokens_in + line.tokens_out:,.0f} tokens" if line.way in WITH_MODEL else "no model"
    )
    harm = f", wrong action: {line.wrong}" if line.wrong else ""
    return [
        _text(BARS - 12, y + 17, line.way, "text", "end"),
        _rectangle("track", BARS, y + 6, LENGTH, 14),
        _rectangle("right", BARS, y + 6, right, 14),
        _rectangle("wrong", BARS, y + 20, wrong, 4),  # A run that is wrong is not right.
        *_interval(low, high, y + 13),
        _text(BARS + LENGTH + 16, y + 17, f"{line.share}{harm}", "text"),
        _text(WIDTH - 24, y + 17, cost, "quiet", "end"),
    ]


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}"/>'


def _interval(low: float, high: float, y: float) -> list[str]:
    ends = [(low, y, high, y), *((x, y - 4, x, y + 4) for x in (low, high))]
    return [
        f'<line class="interval" x1="{a:.1f}" y1="{b:g}" x2="{c:.1f}" y2="{d:g}"/>'
        for a, b, c, d in ends
    ]


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
