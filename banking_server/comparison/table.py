"""All runs together: counts and medians, as JSON, as a Markdown table and as a chart."""

import json
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from banking_server import __version__
from banking_server.agent import Endpoint
from banking_server.comparison.run import Measured
from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import Way


@dataclass(frozen=True)
class Summary:
    """All runs of one task in one way: counts, and medians of what a run cost."""

    task: Task
    way: Way
    runs: int
    correct: int
    model_calls: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float


def summarize(measured: Iterable[Measured]) -> list[Summary]:
    """Return one line for each task and way, in the order in which they were run."""
    groups: dict[tuple[Task, Way], list[Measured]] = {}
    for run in measured:
        groups.setdefault((run.task, run.way), []).append(run)
    return [
        Summary(
            task=task,
            way=way,
            runs=len(group),
            correct=sum(run.correct for run in group),
            model_calls=statistics.median(run.model_calls for run in group),
            prompt_tokens=statistics.median(run.prompt_tokens for run in group),
            completion_tokens=statistics.median(run.completion_tokens for run in group),
            seconds=round(statistics.median(run.seconds for run in group), 2),
        )
        for (task, way), group in groups.items()
    ]


def as_json(measured: Sequence[Measured], endpoint: Endpoint | None) -> str:
    """Return every run and the summary as JSON, with what they were measured on."""
    report = {
        "measuredAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "model": None if endpoint is None else endpoint.model,
        "temperature": None if endpoint is None else endpoint.settings.temperature,
        "summary": [asdict(line) for line in summarize(measured)],
        "runs": [asdict(run) for run in measured],
    }
    return json.dumps(report, indent=2)


def as_markdown(measured: Sequence[Measured]) -> str:
    """Return the summary as a Markdown table, and correct runs as a Mermaid chart."""
    lines = [
        "| task | way | correct | model calls | prompt tokens | completion tokens | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    summaries = summarize(measured)
    lines += [
        f"| {line.task} | {line.way} | {line.correct} of {line.runs} | {line.model_calls:g} | "
        f"{line.prompt_tokens:g} | {line.completion_tokens:g} | {line.seconds:g} |"
        for line in summaries
    ]
    ways = [way for way in Way if any(line.way is way for line in summaries)]
    shares = []
    for way in ways:
        group = [line for line in summaries if line.way is way]
        shares.append(100 * sum(line.correct for line in group) / sum(line.runs for line in group))
    names = ", ".join(f'"{way}"' for way in ways)
    return "\n".join(
        [
            *lines,
            "",
            "```mermaid",
            "xychart-beta",
            '    title "Runs that ended as asked, all tasks"',
            f"    x-axis [{names}]",
            '    y-axis "percent" 0 --> 100',
            f"    bar [{', '.join(f'{share:.0f}' for share in shares)}]",
            "```",
        ]
    )
