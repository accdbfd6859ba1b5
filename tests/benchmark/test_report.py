"""The table of what was measured, and what is said of clients that fail."""

from datetime import UTC, datetime

import pytest

from banking_server.benchmark import rows
from banking_server.benchmark.figures import Figure, Result
from banking_server.benchmark.load import BenchmarkFailed
from banking_server.benchmark.machine import Machine
from banking_server.benchmark.report import as_text
from banking_server.benchmark.run import Report

MACHINE = Machine(2, "x86_64", "3.11.7", "3.53.0", {"mcp": "2.3.1"}, None, 1.234)
ROUNDS = ({"bare": 1000.0, "bank": 1500.0}, {"bare": 1000.0, "bank": 2500.0})


def told(*figures: Figure) -> list[str]:
    result = Result("locked", figures, None, 1234, 0.25, 3.0)
    return as_text(Report(datetime.now(UTC), MACHINE, 2, 3.0, (result,))).splitlines()


def test_a_figure_is_a_row_with_its_target() -> None:
    lines = told(
        Figure("locked", "a second", "bare", "bank", ROUNDS, at_least=0.5),
        Figure("balance", "ms", "bare", "bank", ROUNDS, at_most=1.1),
        Figure("memory", "MiB", "a", "b", ({"a": 2.0, "b": 2.5},)),
    )
    at = lines.index("| --- | ---: | ---: | ---: | --- | --- | --- |")
    assert lines[at + 1 : at + 4] == [
        "| locked | bare: 1,000 | 2,000 a second | 2.00 | 1.50 to 2.50 | \u2265 0.50 | met |",
        "| balance | bare: 1,000 | 2,000 ms | 2.00 | 1.50 to 2.50 | \u2264 1.10 | NOT MET |",
        "| memory | a: 2.00 | 2.50 MiB | 1.25 | 1.25 to 1.25 |  |  |",
    ]
    assert lines[0] == "2 cores (x86_64), Python 3.11.7, SQLite 3.53.0, mcp 2.3.1"
    assert "a file system of unknown kind, one fsync there: 1.23 ms" in lines[1]
    assert "1,234 answers came" in lines[at + 5]
    assert "25% of one core" in lines[at + 5]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BenchmarkFailed("A chain went wrong."), "^A chain went wrong.$"),
        (
            ExceptionGroup("group", [ExceptionGroup("inner", [OSError("it hung up")])]),
            "^A client failed: it hung up$",
        ),
    ],
)
def test_a_client_that_fails_is_told_in_one_line(error: Exception, said: str) -> None:
    async def rounds() -> tuple[dict[str, float], ...]:
        raise error

    with pytest.raises(BenchmarkFailed, match=said):
        rows._with_clients(rounds)
