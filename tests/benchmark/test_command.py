"""`banking-server benchmark`, small: right answers, and everything is told."""

import json
import socket
from pathlib import Path

import pytest

from banking_server.bank.location import in_full
from banking_server.benchmark import flood, machine, rows
from banking_server.benchmark.figures import Figure
from banking_server.benchmark.load import BenchmarkFailed
from banking_server.benchmark.rows import ROWS

from ..kit import postgres
from ..kit.command import Cli

TINY = (
    *("--rounds", "1", "--seconds", "0.1", "--calls", "50"),
    *("--accounts", "100", "--entries", "1000"),
)


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(("locked-1",), id="one"),
        pytest.param(tuple(ROWS), id="every", marks=pytest.mark.nightly),
    ],
)
def test_rows_are_measured_and_told_as_json(
    cli: Cli, chosen: tuple[str, ...], tmp_path: Path
) -> None:
    only = [] if chosen == tuple(ROWS) else [part for row in chosen for part in ("--only", row)]
    ended = cli("benchmark", *TINY, *only, "--json", "--folder", str(tmp_path))
    assert ended.code == 0, ended
    told = json.loads(ended.out)
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["fsync_ms"] > 0
    assert told["rounds"] == 1
    assert tuple(row["row"] for row in told["rows"]) == chosen
    for row in told["rows"]:
        assert row["failed"] is None
        # The clients of the SDK and the servers over stdio are called by the command itself.
        has_load = row["row"] not in ("chain", "proxy", "stdio")
        assert (row["calls"] > 0, row["loadCpu"] is not None) == (has_load, has_load), row
        for figure in row["figures"]:
            (measured,) = figure["rounds"]
            assert all(value > 0 for value in measured.values()), figure
            ratio = measured[figure["bank"]] / measured[figure["against"]]
            assert figure["ratios"] == [figure["ratio"]] == [pytest.approx(ratio)]
    assert [file.name for file in tmp_path.iterdir() if "benchmark" in file.name] == []


def test_a_flood_that_cannot_be_made_is_said() -> None:
    with pytest.raises(BenchmarkFailed, match="descriptors"):
        flood.limit_descriptors(2**50)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(BenchmarkFailed, match="refused"):
            flood.idle_sockets(nobody.getsockname()[1]).__enter__()


@pytest.mark.parametrize(
    ("bound", "met"),
    [({"at_least": 2.0}, True), ({"at_least": 2.1}, False), ({"at_most": 2.0}, True)],
)
def test_a_figure_is_the_median_of_the_ratios_of_its_rounds(
    bound: dict[str, float], met: bool
) -> None:
    rounds = tuple({"bare": bare, "bank": bank} for bare, bank in ((1, 2), (4, 4), (2, 20)))
    figure = Figure("calls", "a second", "bare", "bank", rounds, **bound)
    assert (figure.ratios, figure.ratio, figure.median("bank")) == ([2, 1, 10], 2, 4)
    assert figure.is_met is met


def test_a_wrong_answer_fails_its_row(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LOCKED", "acc_euro_001")  # It is not.
    ended = cli("benchmark", *TINY, "--only", "locked-1", "--folder", str(tmp_path))
    assert ended.code == 1
    assert "| locked-1 | | | | | | FAILED |" in ended.out
    assert "locked-1 failed: 1 of the answers were wrong. The first: prepare: 200" in ended.out


def test_memory_is_no_disk(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "IN_MEMORY", (machine.filesystem(tmp_path),))
    ended = cli("benchmark", *TINY, "--folder", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "--folder" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "nix"),
        ("--accounts", "15"),
        ("--accounts", "100", "--entries", "999"),
        ("--folder", "/nowhere"),
    ],
)
def test_what_cannot_be_measured(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli("benchmark", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert arguments[-2].strip("-") in ended.err or arguments[-1] in ended.err


@pytest.mark.nightly
@pytest.mark.needs_program(postgres.MISSING)
def test_servers_on_one_postgresql_database_are_measured(cli: Cli, tmp_path: Path) -> None:
    with postgres.empty_database() as url:
        text = in_full(url)
        ended = cli("benchmark", *TINY, "--json", "--folder", str(tmp_path), "--database", text)
        assert ended.code == 0, ended
        (row,) = json.loads(ended.out)["rows"]
        assert (row["row"], row["failed"]) == ("servers", None)
        assert [figure["bank"] for figure in row["figures"]] == ["2", "3"]
        for figure in row["figures"]:
            assert all(value > 0 for value in figure["rounds"][0].values()), figure
        assert postgres.sql(url, "SELECT 1 FROM pg_tables WHERE tablename = 'account'") == []


def test_only_a_postgresql_database_is_measured(cli: Cli, tmp_path: Path) -> None:
    for database, said in (
        (str(tmp_path / "bank.db"), "--database must be a URL that begins with postgresql://"),
        ("mysql://me:pw@h/d", "--database must be a path, or a URL that begins with postgresql://"),
    ):
        ended = cli("benchmark", "--database", database)
        assert ended.code == 2
        assert said in " ".join(ended.err.replace("│", " ").split())
    ended = cli(
        "benchmark", "--database", "postgresql://me:secret@127.0.0.1:1/d", "--seconds", "0.1"
    )
    assert ended.code == 1
    assert "secret" not in ended.out + ended.err
