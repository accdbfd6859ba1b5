"""The fault run finds nothing lost or doubled, and would see it."""

from pathlib import Path

import pytest

from ..kit import postgres
from .__main__ import ARRANGEMENTS, WRONG, main
from .runs import DISK_FAULTS, NO_DISK, OnSqlite


def columns(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    """Return the table: the number of each row, by arrangement."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    (_, *names), _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {name: {row[0]: row[n] for row in rows} for n, name in enumerate(names, 1)}


def is_well(column: dict[str, str]) -> bool:
    """Whether nothing is wrong, although something was acknowledged, and something killed."""
    happened = min(int(column["postings acknowledged"]), int(column["servers killed"]))
    return happened > 0 and {column[row] for row in WRONG} == {"0"}


@pytest.mark.ci
def test_nothing_is_lost_or_doubled(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main("--minutes=0.1", "--only=two servers on one file", f"--folder={tmp_path}") == 0
    (column,) = columns(capsys).values()
    assert is_well(column)
    for fault in (*DISK_FAULTS, "power cuts") if NO_DISK is None else ():
        assert int(column[fault]) > 0, "each kind of fault is met"


@pytest.mark.ci
@pytest.mark.parametrize(("keeps_the_file", "code", "lost"), [(True, 2, "0"), (False, 1, "1")])
def test_a_run_that_breaks_off_is_judged_all_the_same(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    keeps_the_file: bool,
    code: int,
    lost: str,
) -> None:
    def under_load(self: OnSqlite, seconds: float) -> None:
        (self.folder / "server-1.log").write_text("It starts.\nIt ends.\n")
        if not keeps_the_file:
            self.journal.write("posted", "a memo", "tr_1")
            self.path.write_bytes(b"")
        raise RuntimeError("no server")

    monkeypatch.setattr(OnSqlite, "under_load", under_load)
    assert main("--only=one server on SQLite", f"--folder={tmp_path}") == code
    (column,) = columns(capsys).values()
    assert column["result"] == "**broke off**: RuntimeError('no server'); a log ends: It ends."
    assert column["acknowledged and lost"] == lost


@pytest.mark.needs_program(NO_DISK)
def test_a_loss_is_seen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main("--minutes=0.1", "--control", f"--folder={tmp_path}") == 1
    (column,) = columns(capsys).values()
    assert int(column["acknowledged and lost"]) > 0
    assert int(column["wrong reads"]) > 0


@pytest.mark.ci
def test_what_broke_off_is_no_result(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "one-server-on-SQLite").touch()
    assert main("--only=one server on SQLite", f"--folder={tmp_path}") == 2
    (column,) = columns(capsys).values()
    assert "broke off, no result" in column["result"]
    assert {column[row] for row in WRONG} == {"-"}


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
        assert is_well(column)
    for log in tmp_path.glob("three*/server-*.log"):
        assert "Traceback" not in log.read_text(), "here no fault of a disk explains it"
