"""The benchmark runs, and no counted ratio is worse than on its page."""

import pytest

from .__main__ import COUNTS, main
from .instructions import MISSING

pytestmark = [pytest.mark.anyio, pytest.mark.nightly]


@pytest.mark.needs_program(MISSING)
async def test_no_counted_ratio_is_worse_than_on_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    worse = await main(*(f"--only={row.__name__}" for row in COUNTS))
    assert not worse, capsys.readouterr().out


async def test_rates_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    await main("--only=http", "--only=proxy", "--rounds", "1", "--seconds", "0.1")
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.count("|") for line in lines] == [7] * 6
