"""The benchmark runs; the nightly workflow compares its ratios with the recorded ones."""

import pytest

from .__main__ import main
from .instructions import MISSING


@pytest.mark.nightly
@pytest.mark.anyio
async def test_rows_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"--only={row}" for row in ("passing", "http", "proxy")]
    await main(*rows, "--rounds", "1", "--seconds", "0.1")
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.count("|") for line in lines] == [7] * (5 if MISSING is None else 4)
