"""All runs together: how often each way did what was asked, what it cost, and how ways differ.

Needs SciPy, which comes with the extra `comparison`.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from banking_server.comparison.failures import Failure
from banking_server.comparison.record import Measured
from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import WITH_AGENT, WITH_MODEL, Way

_MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Prices:
    """Of a million tokens each, in any one currency."""

    prompt: float
    cached: float
    completion: float

    def of(self, run: Measured) -> float:
        """Return what a run cost."""
        new = run.prompt_tokens - run.cached_tokens
        cost = new * self.prompt + run.cached_tokens * self.cached
        return (cost + run.completion_tokens * self.completion) / _MILLION


@dataclass(frozen=True)
class Summary:
    """All runs of one task in one way: counts, and medians of what a run cost."""

    task: Task
    way: Way
    runs: int
    """Those that the endpoint did not fail in. Only they are counted in what follows."""
    right: int
    interval: tuple[float, float]
    """Wilson's 95 % interval of the share that is right, from 0 to 1."""
    wrong: int
    """Runs with something that nobody asked for, be it done, or tried and refused."""
    done: int
    """Those of them in which it was done."""
    refused: int
    """Runs in which the customer refused something that they had not asked for."""
    answered: int | None
    """Runs that ended in an answer to the user; None where there is no agent to give one."""
    calls: float
    model_calls: float
    prompt_tokens: float
    new_tokens: float
    """Of the prompts, what was not in the endpoint's cache."""
    completion_tokens: float
    price: float | None
    """The mean of a run's; None where no prices are given."""
    seconds: float


def summarize(runs: Iterable[Measured], prices: Prices | None = None) -> list[Summary]:
    """Return one line for each task and way, tasks and ways in their own order."""
    groups: dict[tuple[Task, Way], list[Measured]] = {}
    for run in runs:
        if run.unavailable is None:
            groups.setdefault((run.task, run.way), []).append(run)
    return [
        _summary(task, way, groups[task, way], prices)
        for task in Task
        for way in Way
        if (task, way) in groups
    ]


def _summary(task: Task, way: Way, group: Sequence[Measured], prices: Prices | None) -> Summary:
    def median(of: Callable[[Measured], float]) -> float:
        return statistics.median(of(run) for run in group)

    right = sum(run.right for run in group)
    interval = _binomial(right, len(group)).proportion_ci(method="wilson")
    return Summary(
        task=task,
        way=way,
        runs=len(group),
        right=right,
        interval=(float(interval.low), float(interval.high)),
        wrong=sum(bool(run.wrong or run.tried) for run in group),
        done=sum(bool(run.wrong) for run in group),
        refused=sum(bool(run.refused) for run in group),
        answered=sum(run.answer is not None for run in group) if way in WITH_AGENT else None,
        calls=median(lambda run: run.calls),
        model_calls=median(lambda run: len(run.model_calls)),
        prompt_tokens=median(lambda run: run.prompt_tokens),
        new_tokens=median(lambda run: run.prompt_tokens - run.cached_tokens),
        completion_tokens=median(lambda run: run.completion_tokens),
        price=None if prices is None else statistics.mean(map(prices.of, group)),
        seconds=median(lambda run: run.seconds),
    )


@dataclass(frozen=True)
class Pair:
    """Two ways on the same wordings of one task, or of all."""

    first: Way
    second: Way
    task: Task | None
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    """McNemar's exact test, two-sided: how likely a difference as large is by chance alone."""


def pairs(runs: Iterable[Measured]) -> list[Pair]:
    """Compare each two of the ways with a model, for all tasks and for each."""
    right = {run.key: run.right for run in runs if run.unavailable is None}
    found = []
    for first, second in combinations(WITH_MODEL, 2):
        each = [
            (task, is_right, right[task, second, words])
            for (task, way, words), is_right in right.items()
            if way is first and (task, second, words) in right
        ]
        tasks = [task for task in Task if any(one == task for one, _, _ in each)]
        scopes: list[Task | None] = [None, *tasks] if len(tasks) > 1 else [*tasks]
        for task in scopes:
            counts = Counter((a, b) for of, a, b in each if task in (None, of))
            found.append(_pair(first, second, task, counts))
    return found


def _pair(first: Way, second: Way, task: Task | None, counts: Counter[tuple[bool, bool]]) -> Pair:
    only_first, only_second = counts[True, False], counts[False, True]
    differing = only_first + only_second
    p = float(_binomial(only_first, differing).pvalue) if differing else 1.0
    return Pair(
        first, second, task, counts[True, True], only_first, only_second, counts[False, False], p
    )


def _binomial(found: int, of: int) -> Any:
    from scipy.stats import binomtest  # Takes a second to load, and no run waits for it.

    return binomtest(found, of)


def failures(runs: Iterable[Measured]) -> dict[Way, Counter[Failure]]:
    """Return for each way how many of its runs failed in which way."""
    found: dict[Way, Counter[Failure]] = {}
    for run in runs:
        if run.failure is not None:
            found.setdefault(run.way, Counter())[run.failure] += 1
    return {way: found[way] for way in Way if way in found}
