"""The first scenario file, and that no tool is called for it."""

from pathlib import Path

import yaml

from banking_server.conformance.server.scenario import load_server_scenario

from .small_server import SmallServer
from .support import serving, suite

# A first scenario file


def test_a_first_scenario_calls_nothing_and_can_be_loaded(tmp_path: Path) -> None:
    server, path = SmallServer(), tmp_path / "first.yaml"
    with serving(server) as url:
        run = suite("scenario", "--url", url, "--output", path)
        assert suite("scenario", "--url", url).output == path.read_text()
        there = suite("scenario", "--url", url, "--output", path)
        assert (there.code, "the file exists" in there.errors) == (2, True)
    assert server.calls == 0
    assert (run.code, run.output, f"{path} --url {url}\n" in run.errors) == (0, "", True)
    assert [step.call for step in load_server_scenario(path).steps] == ["login"]
    # Without the marks, every tool is a step.
    every = path.read_text().replace("\n  # - ", "\n  - ").replace("\n  #   ", "\n    ")
    steps = yaml.safe_load(every)["steps"]
    assert [step["call"] for step in steps] == [tool["name"] for tool in SmallServer.tools]
    assert steps[1]["arguments"] == {"sku": "TEXT", "quantity": 1}
