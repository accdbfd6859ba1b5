"""Without the extra `model`: who asks for a model is told what to install, all else works."""

import subprocess
import sys

import pytest

from ..kit.command import PATIENCE, Cli, environment
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


@pytest.mark.ci
def test_every_module_can_be_imported_and_the_program_refuses_in_one_line() -> None:
    program = (
        "import importlib, pkgutil, sys\n"
        "sys.modules['openai'] = None\n"
        "import banking_server\n"
        "for module in pkgutil.walk_packages(banking_server.__path__, 'banking_server.'):\n"
        # An adapter needs its framework, which may need it in turn.
        "    if '.adapters.' not in module.name and not module.name.endswith('__main__'):\n"
        "        importlib.import_module(module.name)\n"
        "banking_server.cli.main()\n"
    )
    refused = subprocess.run(
        [sys.executable, "-c", program, "chat"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(**CONFIGURED),
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("banking-server: A language model needs the extra `model`")
    assert refused.stderr.count("\n") == 1
