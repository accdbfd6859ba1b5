"""A run of the benchmark: the machine, and its rows one after the other."""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from banking_server.bank.location import URL
from banking_server.bank.scale import Scale
from banking_server.benchmark.figures import Result
from banking_server.benchmark.load import BenchmarkFailed
from banking_server.benchmark.machine import Machine, describe, folder_on_disk
from banking_server.benchmark.rows import ROWS, ROWS_ON_POSTGRESQL, Bench


@dataclass(frozen=True)
class Report:
    """Everything that a run measured."""

    measured_at: datetime
    machine: Machine
    rounds: int
    seconds: float
    results: tuple[Result, ...]

    @property
    def has_failed(self) -> bool:
        """Whether a row could not be measured."""
        return any(result.failed for result in self.results)


def run_benchmark(
    rows: Sequence[str],
    *,
    folder: Path | None,
    rounds: int,
    seconds: float,
    calls: int,
    scale: Scale,
    database: URL | None = None,
    on_row: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure the rows, with databases in a folder that is made in `folder` and deleted afterwards.

    A row that fails is no reason not to measure the others. Raises `BenchmarkFailed` if nothing
    can be measured: `folder` is no place for a database.
    """
    began = datetime.now(UTC)
    results = []
    with tempfile.TemporaryDirectory(
        prefix="banking-server-benchmark-", dir=folder_on_disk(folder)
    ) as made:
        bench = Bench(
            Path(made),
            rounds=rounds,
            seconds=seconds,
            calls=calls,
            scale=scale,
            database=database,
        )
        with closing(bench):
            machine = describe(Path(made))
            for row in rows:
                on_row(row)
                results.append(_measure(row, bench))
    return Report(began, machine, rounds, seconds, tuple(results))


def _measure(row: str, bench: Bench) -> Result:
    began = time.monotonic()
    failed = None
    figures = []
    bench.loads.clear()
    try:
        figures = {**ROWS, **ROWS_ON_POSTGRESQL}[row](bench)
    except BenchmarkFailed as error:
        failed = str(error)
    return Result(
        row=row,
        figures=tuple(figures),
        failed=failed,
        calls=sum(each.calls for load in bench.loads for each in load.labels.values()),
        load_cpu=max((load.cpu for load in bench.loads), default=None),
        seconds=round(time.monotonic() - began, 1),
    )
