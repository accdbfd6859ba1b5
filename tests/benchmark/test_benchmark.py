"""The benchmark sends what it says, and can be run."""

import pytest

from .__main__ import COUNTS, calls, line, main
from .instructions import MISSING, find_counter


def test_a_ratio_that_is_a_fifth_worse_than_it_was_fails() -> None:
    assert [line("", "", [(100, ours)], "more", 0.5) for ours in (39, 41)] == [True, False]
    assert [line("", "", [(100, ours)], "less", 1.6) for ours in (201, 199)] == [True, False]


@pytest.mark.ci
@pytest.mark.anyio
async def test_no_counted_row_has_fallen(nightly: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Each stays within 5 % of what it was.

    A busy machine lets fewer calls share a commit. So the rows of calls count only with `perf`.
    """
    counter = find_counter()
    if counter is None:
        pytest.skip(MISSING)
    if counter.name == "valgrind" and not nightly:
        pytest.skip("`perf` counts nothing here, and `valgrind` takes ten minutes (--nightly)")
    rows = [row for row in COUNTS if counter.name == "perf" or row is not calls]
    fell = await main(*(f"--only={row.__name__}" for row in rows))
    assert not fell, capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.anyio
async def test_rows_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"--only={row}" for row in ("http", "proxy")]
    await main(*rows, "--rounds", "1", "--seconds", "0.1")
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.count("|") for line in lines] == [7] * 7
