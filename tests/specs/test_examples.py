"""The examples run, and are judged, as the pages print them.

The client under test is judged in `tests/conformance`, as `project_client`.
"""

import runpy
import sys

import pytest

from ..conformance.support import suite
from ..kit.pages import ROOT, block

EXAMPLES = ROOT / "specs" / "examples"
LIBRARY = "specs/python/README.md"
SUITE = "specs/conformance/README.md"


def test_the_page_prints_the_scenario() -> None:
    assert block(SUITE, "orders.yaml", "yaml") == (EXAMPLES / "orders.yaml").read_text()


def test_the_client_prints_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLES)
    runpy.run_path("client.py", run_name="__main__")
    assert capsys.readouterr().out == block(LIBRARY, "what it prints", "text")


@pytest.mark.ci
def test_the_suite_finds_the_server_conformant() -> None:
    scenario = EXAMPLES / "orders.yaml"
    command = (sys.executable, EXAMPLES / "orders.py")
    ran = suite("server", "--scenario", scenario, "--json", "--", *command)
    assert ran.code == 0, ran.output + ran.errors
    assert ran.report["verdict"] == "conformant"
