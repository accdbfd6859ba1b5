"""The dry run and the first scenario file: what a run would call, and that neither calls a tool."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from banking_server.conformance.server.draft import placeholder
from banking_server.conformance.server.plan import plan
from banking_server.conformance.server.scenario import load_server_scenario
from banking_server.conformance.target.era import Era

from .small_server import SmallServer
from .support import SHOP, examine_server, scenario_of, serving, suite

FOLLOWED = {
    "the call of the directive, and on: at most 10 calls": 2,
    "the call of the directive: step asked, call 2": 1,
}
"""How many calls a directive leads to at this shop."""


@pytest.mark.parametrize("era", Era)
def test_the_dry_run_says_how_often_tools_are_called(era: Era) -> None:
    made: list[str] = []

    class Recorded(SmallServer):
        def call(self, request: Any) -> Any:
            if "inputResponses" not in request.params and request.params["name"] != "login":
                made.append(request.params["name"])
            return super().call(request)

    examine_server(Recorded, [era])
    lines = [line.strip() for line in plan(scenario_of(SmallServer), era)]
    planned = sum(FOLLOWED.get(line, 0) or ": step " in line for line in lines)
    planned += sum(int(found[1]) for line in lines if (found := re.search(r"again, (\d+)", line)))
    assert planned == len(made)


def test_the_dry_run_connects_to_nothing_and_shows_no_secret() -> None:
    run = suite("server", "--dry-run", "--scenario", SHOP)
    assert run.code == 0
    assert "sesame" not in run.output
    assert "with `follow: [{repeatable: true}]` the first is made again, too" in run.output
    assert '"phrase": "[redacted]"' in run.output


def test_the_dry_run_misses_a_variable_as_a_run_does(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP.read_text().replace("{value: alice}", "{environment: NO_SUCH_VARIABLE}"))
    arguments = ("server", "--scenario", path, "--url", "http://127.0.0.1:9")
    dry = suite(*arguments, "--dry-run")
    assert dry == suite(*arguments)
    assert (dry.code, dry.output) == (2, "")
    assert dry.errors == (
        "tool-chaining-conformance: scenario shop: user: "
        "the environment variable NO_SUCH_VARIABLE is not set\n"
    )


# A first scenario file


def test_a_first_scenario_calls_nothing_and_can_be_loaded(tmp_path: Path) -> None:
    server, path = SmallServer(), tmp_path / "first.yaml"
    with serving(server) as url:
        run = suite("scenario", "--url", url, "-o", path)
        assert suite("scenario", "--url", url).output == path.read_text()
        there = suite("scenario", "--url", url, "-o", path)
        assert (there.code, "the file is there already" in there.errors) == (2, True)
    assert server.calls == 0
    assert (run.code, run.output, run.errors) == (0, "", "")
    assert [step.call for step in load_server_scenario(path).steps] == ["login"]
    # Without the marks, every tool is a step.
    every = path.read_text().replace("\n  # - ", "\n  - ").replace("\n  #   ", "\n    ")
    steps = yaml.safe_load(every)["steps"]
    assert [step["call"] for step in steps] == [tool["name"] for tool in SmallServer.tools]
    assert steps[1]["arguments"] == {"sku": "TEXT", "quantity": 1}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"const": 7}, 7),
        ({"type": "array", "items": {"type": "boolean"}}, []),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "TEXT"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}, 1),
        ({"type": "null"}, None),
    ],
    ids=str,
)
def test_placeholders(schema: Any, value: Any) -> None:
    assert placeholder(schema) == value
