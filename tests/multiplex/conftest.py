"""No model but a test's own."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_model_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("BANKING_"):
            monkeypatch.delenv(name)
