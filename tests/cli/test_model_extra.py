"""Without the extra `model`: who asks for a model is told what to install, all else works."""

import sys

import pytest

from ..kit.command import Cli
from .support import one_line

CONFIGURED = {"BANKING_MODEL_URL": "http://127.0.0.1:9/v1", "BANKING_MODEL_NAME": "any"}


@pytest.fixture
def _without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)


@pytest.mark.usefixtures("_without_the_extra")
@pytest.mark.parametrize(
    "arguments",
    [("chat",), (), ("serve", "--http")],
)
def test_a_configured_model_that_cannot_be_asked_is_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    for name, value in CONFIGURED.items():
        monkeypatch.setenv(name, value)
    assert "pip install '.[model]'" in one_line(cli(*arguments))
