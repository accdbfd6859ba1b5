"""The examples are, and print, what the pages show.

`tests/test_shown_commands.py` judges the server by the suite, and `tests/conformance` the client.
"""

import runpy

import pytest

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
