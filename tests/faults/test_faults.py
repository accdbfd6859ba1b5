"""The fault run finds nothing lost or doubled, and would see it."""

from pathlib import Path

import pytest

from ..kit import postgres
from .__main__ import ARRANGEMENTS, WRONG, main
from .runs import DISK_FAULTS, NO_DISK


def columns(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    """Return the table: the number of each row, by arrangement."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    (_, *names), _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {name: {row[0]: row[n] for row in rows} for n, name in enumerate(names, 1)}


def is_sound(column: dict[str, str]) -> bool:
    """Whether nothing is wrong, although something was acknowledged, and something killed."""
    happened = min(int(column["postings acknowledged"]), int(column["servers killed"]))
    return happened > 0 and {column[row] for row in WRONG} == {"0"}


@pytest.mark.ci
def test_two_servers_on_one_file_lose_and_double_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main("--minutes=0.1", "--only=two servers on one file", f"--folder={tmp_path}") == 0
    (column,) = columns(capsys).values()
    assert is_sound(column)
    for fault in (*DISK_FAULTS, "power cuts") if NO_DISK is None else ():
        assert int(column[fault]) > 0, "each kind of fault is met"


@pytest.mark.needs_program(NO_DISK)
def test_a_disk_that_only_pretends_to_sync_loses_postings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main("--minutes=0.1", "--control", f"--folder={tmp_path}") == 1
    (column,) = columns(capsys).values()
    assert int(column["acknowledged and lost"]) > 0
    assert int(column["wrong reads"]) > 0


@pytest.mark.nightly
@pytest.mark.needs_program(NO_DISK)
@pytest.mark.needs_program(postgres.MISSING)
def test_no_arrangement_loses_or_doubles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main("--minutes=2", f"--folder={tmp_path}") == 0
    found = columns(capsys)
    assert list(found) == list(ARRANGEMENTS)
    for column in found.values():
        assert is_sound(column)
    for log in tmp_path.glob("three*/server-*.log"):
        assert "Traceback" not in log.read_text(), "here no fault of a disk explains it"
