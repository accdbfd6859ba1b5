"""`banking-server compare`."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from anyio import sleep_forever

from banking_server.comparison.failures import Failure
from banking_server.comparison.record import FileUnusable, Measured, RunsFile, read_runs
from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import WITH_MODEL, Way

from ..comparison.support import in_this_process, made
from ..kit.command import Cli
from ..kit.model import error, scripted_model
from .support import one_line

__all__ = ["in_this_process"]

SCRIPTED = {"TOOLS": "prompt", "FORMAT": "none", "RETRIES": "0"}
THRESHOLD = ("--task", Task.THRESHOLD)
WITHOUT_MODEL = ("--way", Way.NEXT_TOOL, "--way", Way.REFERENCED)


@pytest.fixture
def _no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make up the runs of a comparison, so that none costs a server."""

    async def measure(case: Any, way: Way, endpoint: object) -> Measured:
        return made(way, case.number, case.task)

    monkeypatch.setattr("banking_server.comparison.run.measure", measure)


@pytest.mark.parametrize(
    ("tasks", "named"),
    [
        pytest.param((Task.BALANCE, Task.TRANSFER, Task.PAY), (Way.NEXT_TOOL, Way.AGENT), id="two"),
        pytest.param(("all",), (), id="every", marks=pytest.mark.nightly),
    ],
)
def test_the_ways_without_a_model_end_as_asked_and_cost_no_tokens(
    cli: Cli,
    tasks: tuple[str, ...],
    named: tuple[Way, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)  # As without the extra `model`.
    output, table, chart = (tmp_path / name for name in ("runs.jsonl", "table.md", "chart.svg"))
    compared = cli(
        *("compare", "--wordings", "1", "--output", str(output)),
        *("--table", str(table), "--chart", str(chart)),
        *(part for task in tasks for part in ("--task", task)),
        *(part for way in named for part in ("--way", way)),
    )
    assert compared.code == 0, compared.err
    runs = read_runs(output)
    assert {run.way for run in runs} == {way for way in named or Way if way not in WITH_MODEL}
    assert Task.PAY in {run.task for run in runs}
    for run in runs:
        assert run.right, run
        assert run.model_calls == ()
    assert compared.out.count("| 1 of 1 |") == len(runs)
    assert compared.out == table.read_text(encoding="utf-8")
    assert chart.read_text(encoding="utf-8").startswith("<svg")
    no_model, *told = compared.err.splitlines()
    assert no_model.startswith("No model is configured (BANKING_MODEL_URL)")
    assert [line.split(" (")[0] for line in told[:2]] == ["Left out: nextTool"] * 2
    assert f"{len(runs)} of {len(runs)}, 0 s left: " in told[-1]

    again = cli("compare", "--from", str(output))
    assert again.out == compared.out
    pay = cli("compare", "--from", str(output), "--task", Task.PAY, "--wordings", "1")
    rows = [line for line in pay.out.splitlines() if " of 1 |" in line]
    assert rows
    assert all(line.startswith(f"| {Task.PAY} |") for line in rows)
    assert cli("compare", "--from", str(output), "--way", Way.AGENT).out == ""


@pytest.mark.usefixtures("_no_runs")
def test_a_file_is_gone_on_with_where_it_ends(cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / "runs.jsonl"
    first = ("compare", *THRESHOLD, *WITHOUT_MODEL, "--output", str(output), "--wordings")
    assert cli(*first, "2").code == 0
    assert "holds something already" in one_line(cli(*first, "3"))
    more = cli(*first, "3", "--resume")
    assert more.code == 0, more.err
    assert [line.split(",")[0] for line in more.err.splitlines()] == ["5 of 6", "6 of 6"]
    assert "| 3 of 3 |" in more.out
    assert cli(*first, "3", "--resume").err == ""
    lines = output.read_text(encoding="utf-8").splitlines()
    other = [json.loads(line) for line in lines]
    other[0]["conditions"]["version"] = "0"
    output.write_text("".join(json.dumps(line) + "\n" for line in other), encoding="utf-8")
    refused = one_line(cli(*first, "3", "--resume"))
    assert 'was made under other conditions: version was "0", and is ' in refused


@pytest.mark.usefixtures("_no_runs")
@pytest.mark.parametrize(
    ("stop", "code", "words"),
    [
        (signal.SIGINT, 130, "Interrupted; these are the runs so far."),
        (signal.SIGTERM, 143, "Terminated; these are the runs so far."),
        (FileUnusable("The disk is full."), 2, "banking-server: The disk is full."),
        (
            ExceptionGroup("one", [OSError("no server")]),
            2,
            "banking-server: A run could not be made: no server",
        ),
    ],
    ids=["ctrl-c", "kill", "file", "server"],
)
def test_whatever_ends_it_the_runs_so_far_are_printed(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    stop: Exception | signal.Signals,
    code: int,
    words: str,
) -> None:
    appended: list[Measured] = []

    def append(_: RunsFile, run: Measured) -> None:
        appended.append(run)
        if len(appended) == 3 and isinstance(stop, Exception):
            raise stop

    async def measure(case: Any, way: Way, endpoint: object) -> Measured:
        if len(appended) == 3:
            signal.raise_signal(stop)
            await sleep_forever()
        return made(way, case.number, case.task)

    monkeypatch.setattr(RunsFile, "append", append)
    monkeypatch.setattr("banking_server.comparison.run.measure", measure)
    output = str(tmp_path / "runs.jsonl")
    ended = cli("compare", *THRESHOLD, *WITHOUT_MODEL, "--output", output)
    assert ended.code == code
    assert "| 1 of 1 |" in ended.out
    assert ended.err.splitlines()[-1] == words


def test_progress_says_what_was_wrong_and_how_long_it_will_take(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def measure(case: Any, way: Way, _: object) -> Measured:
        harm = {"right": False, "failure": Failure.DECLINED}
        wrong = ("moved 1.00 from a to b",) if case.number == 1 else ()
        return made(way, case.number, case.task, wrong=wrong, seconds=3000, **harm)

    monkeypatch.setattr("banking_server.comparison.run.measure", measure)
    told = cli("compare", *THRESHOLD, "--way", Way.NEXT_TOOL, "--wordings", "3").err.splitlines()
    first = "1 of 3, 1 h 40 min left: threshold exceeded 1, nextTool: WRONG: moved 1.00 from a to b"
    assert told[0].startswith(first)
    assert told[1].startswith("2 of 3, 50 min left: threshold exceeded 2, nextTool: not right, dec")


def test_a_price_is_told_where_there_are_prices(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with RunsFile(path, resume=False) as file:
        file.append(made(Way.AGENT))
    # 1,000 prompt tokens, of which 400 were cached, and 10 of the reply.
    prices = ("--price-in", "10", "--price-out", "100")
    assert "| 0.011 | 1 |" in cli("compare", "--from", str(path), *prices).out
    if Path("/dev/full").exists():
        full = cli("compare", "--from", str(path), "--table", "/dev/full")
        assert full.err == "banking-server: /dev/full cannot be written: No space left on device.\n"
        assert full.out
    cached = cli("compare", "--from", str(path), *prices, "--price-cached", "0")
    assert "| 0.007 | 1 |" in cached.out


@pytest.mark.usefixtures("in_this_process")
def test_an_endpoint_that_failed_is_told_by_the_exit_code_and_asked_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output = tmp_path / "runs.jsonl"
    compare = ("compare", *THRESHOLD, "--way", Way.AGENT, "--wordings", "1", "--output", output)
    replies: list[Any] = [error(500)]
    with scripted_model(lambda _: replies[0]) as model:
        for name, value in {"URL": model.url, "NAME": "m", **SCRIPTED}.items():
            monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
        failed = cli(*map(str, compare))
        assert (failed.code, failed.out) == (3, "")
        assert "There is no run to report on." in failed.err
        assert "HTTP 500" in failed.err
        replies[0] = "I cannot do that."
        again = cli(*map(str, compare), "--resume")
    assert again.code == 0, again.err
    assert "| agent | 0 of 1 |" in again.out
    assert [run.unavailable is None for run in read_runs(output)] == [False, True]


def test_no_file_is_written_over_by_another(cli: Cli, tmp_path: Path) -> None:
    runs, link = tmp_path / "runs.jsonl", tmp_path / "link"
    with RunsFile(runs, resume=False) as file:
        file.append(made(Way.AGENT))
    before = runs.read_bytes()
    link.hardlink_to(runs)
    other = tmp_path / "x" / ".." / "new"
    for arguments in (
        ("--from", runs, "--table", runs),
        ("--from", runs, "--chart", link),
        ("--output", runs, "--resume", "--table", runs),
        ("--output", tmp_path / "new", "--table", other),
    ):
        assert "are one file: name two." in one_line(cli("compare", *map(str, arguments)))
    refused = cli("compare", *THRESHOLD, *WITHOUT_MODEL, "--table", str(runs))
    assert f"{runs} holds runs: name another file." in one_line(refused)
    assert runs.read_bytes() == before


@pytest.mark.parametrize("option", ["--output", "--table", "--chart"])
def test_what_cannot_be_written_is_found_before_the_first_run(
    cli: Cli, tmp_path: Path, option: str
) -> None:
    refused = cli("compare", option, str(tmp_path / "nowhere" / "x"))
    assert refused.out == ""
    assert "cannot be written: No such file or directory" in one_line(refused)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--way", "nix"), "nix"),
        (("--task", "nix"), "nix"),
        (("--wordings", "21"), "there are 20 of each task"),
        (("--resume",), "goes on with the file of --output"),
        (("--from", "x", "--output", "y"), "makes no runs"),
        (("--price-in", "1"), "--price-in and --price-out"),
        (("--price-in", "1", "--price-out", "inf"), "A price must be a number, not inf."),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    refused = cli("compare", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err


def test_a_way_without_its_model(cli: Cli) -> None:
    refused = cli("compare", "--way", "agent")
    assert (refused.code, refused.out) == (2, "")
    assert "need a model" in refused.err


def test_without_scipy_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert "pip install '.[comparison]'" in one_line(cli("compare"))


@pytest.mark.parametrize("half", ["URL", "NAME"])
def test_a_model_that_is_half_configured(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    monkeypatch.setenv(f"BANKING_MODEL_{half}", "http://127.0.0.1:9/v1")
    missing = "NAME" if half == "URL" else "URL"
    assert f"set BANKING_MODEL_{missing}" in one_line(cli("compare", "--way", "agent"))
