"""The fault run finds nothing lost or doubled, and would see it."""

from pathlib import Path

import pytest

from ..kit import postgres
from .__main__ import ARRANGEMENTS, COLUMNS, WRONG, main


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    _, _, *lines = capsys.readouterr().out.splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    return [dict(zip(COLUMNS, cells, strict=True)) for cells in table]


def is_a_result(row: dict[str, str]) -> bool:
    """Whether something was acknowledged, and something killed."""
    return int(row["acknowledged postings"]) > 10 and "servers killed: " in row["faults"]


@pytest.mark.ci
def test_nothing_is_lost_or_doubled(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main("--minutes=0.1", "--only=two servers on one file", f"--folder={tmp_path}")
    (row,) = rows(capsys)
    assert {row[column] for column in WRONG} == {"0"}
    assert is_a_result(row)
    assert code == 0


@pytest.mark.ci
def test_a_loss_is_seen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main("--minutes=0.1", "--control", f"--folder={tmp_path}") == 1
    (row,) = rows(capsys)
    assert int(row["lost"]) > 0
    assert int(row["wrong reads"]) > 0
    assert row["doubled"] == "0"


@pytest.mark.ci
def test_what_broke_off_is_no_result(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "one-server-on-SQLite").touch()
    assert main("--only=one server on SQLite", f"--folder={tmp_path}") == 2
    assert "broke off, no result" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.needs_program(postgres.MISSING)
def test_no_arrangement_loses_or_doubles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = main("--minutes=2", f"--folder={tmp_path}")
    found = rows(capsys)
    assert [row["arrangement"] for row in found] == list(ARRANGEMENTS)
    for row in found:
        assert {row[column] for column in WRONG} == {"0"}
        assert is_a_result(row)
    assert code == 0
    for log in tmp_path.glob("three*/server-*.log"):
        assert "Traceback" not in log.read_text(), "no fault of a disk explains it"
