"""The bank of `tests/tools`, a tool with arguments of every type, and no model but a test's own."""

import os

import pytest

from banking_server.tools import TOOLS

from .support import fill_form


@pytest.fixture(autouse=True)
def _no_model_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("BANKING_"):
            monkeypatch.delenv(name)


@pytest.fixture
def with_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers have the tool `fill_form` too."""
    monkeypatch.setattr("banking_server.server.build.TOOLS", (*TOOLS, fill_form))
