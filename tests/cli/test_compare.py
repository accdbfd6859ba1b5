"""`banking-server compare`."""

import json
import sys
from pathlib import Path

import pytest

from banking_server.comparison.tasks import Task
from banking_server.comparison.ways import WITH_MODEL, Way

from ..kit.command import Cli
from .support import one_line


@pytest.mark.parametrize(
    "named",
    [
        pytest.param((Way.NEXT_TOOL, Way.AGENT), id="two"),
        pytest.param((), id="every", marks=pytest.mark.whole),
    ],
)
def test_the_ways_without_a_model_end_as_asked_and_cost_no_tokens(
    cli: Cli, named: tuple[Way, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)  # As without the extra `model`.
    output = tmp_path / "comparison.json"
    compared = cli(
        *("compare", "--runs", "1", "--output", str(output)),
        *(part for way in named for part in ("--way", way)),
    )
    assert compared.code == 0, compared.err
    runs = json.loads(output.read_text(encoding="utf-8"))["runs"]
    assert {(run["task"], run["way"]) for run in runs} == {
        (task, way) for task in Task for way in named or Way if way not in WITH_MODEL
    }
    for run in runs:
        assert run["correct"], run
        assert (run["model_calls"], run["prompt_tokens"], run["completion_tokens"]) == (0, 0, 0)
    assert compared.out.count("| 1 of 1 |") == len(runs)
    no_model, *told = compared.err.splitlines()
    assert no_model.startswith("No model is configured (BANKING_MODEL_URL)")
    assert len(told) == len(runs)
    assert told[0].startswith(f"{Task.LOCKED}, {Way.NEXT_TOOL}: correct after ")


def test_a_way_that_does_not_exist(cli: Cli) -> None:
    refused = cli("compare", "--way", "nix")
    assert refused.code == 2
    assert "nix" in refused.err


def test_a_way_without_its_model(cli: Cli) -> None:
    refused = cli("compare", "--way", "agent")
    assert (refused.code, refused.out) == (2, "")
    assert "need a model" in refused.err


@pytest.mark.parametrize("half", ["URL", "NAME"])
def test_a_model_that_is_half_configured(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    monkeypatch.setenv(f"BANKING_MODEL_{half}", "http://127.0.0.1:9/v1")
    missing = "NAME" if half == "URL" else "URL"
    assert f"set BANKING_MODEL_{missing}" in one_line(cli("compare", "--way", "agent"))
