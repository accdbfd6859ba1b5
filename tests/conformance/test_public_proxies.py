"""Two public proxies, judged with the program that the suite writes for intermediaries.

They know nothing of chains: they follow none, and hand a directive on as the rest of a result.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from ..specs.test_packages import ENVIRONMENT
from .small_server import SmallServer
from .support import ONE_STEP, serving, suite

pytestmark = pytest.mark.nightly

FOLLOWS = "tool-chaining-client-follows-directive"


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return how each is started; `mcp-proxy` needs an environment of its own, with SDK 1."""
    folder = tmp_path_factory.mktemp("mcp-proxy")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "mcp-proxy==0.13.0"]
    subprocess.run(install, check=True, env=ENVIRONMENT)
    fastmcp = str(Path(sys.executable).with_name("fastmcp"))
    return {
        "fastmcp": [fastmcp, "run", "--no-banner"],
        "mcp-proxy": [str(folder / "bin" / "mcp-proxy"), "--transport", "streamablehttp"],
    }


@pytest.mark.parametrize("name", ["fastmcp", "mcp-proxy"])
def test_a_proxy_that_follows_nothing(
    name: str, commands: dict[str, list[str]], tmp_path: Path
) -> None:
    written, scenario = tmp_path / "proxy_under_test.py", tmp_path / "one.yaml"
    suite("program", "--proxy", "--output", written)
    head, main = written.read_text("utf-8").split("if __name__")
    own = f"def command(url, context, folder):\n    return [*{commands[name]}, url]\n\n\n"
    written.write_text(f"{head}{own}asked_about = {{}}.get\n\nif __name__{main}", "utf-8")
    only = ("--one-process", "--scenario", "follow/exact-arguments", "--json")
    as_client = suite("client", *only, "--", sys.executable, written)
    assert as_client.report["reason"] == f"failed: {FOLLOWS}"
    scenario.write_text(ONE_STEP + "    expect: {nextTool: ask_manager}\n    repeatable: true\n")
    with serving(SmallServer()) as url:
        options = ("--scenario", scenario, "--json")
        as_server = suite("server", *options, "--", *commands[name], url)
    assert as_server.report["verdict"] == "conformant"
    assert "does not advertise tool chaining" in as_server.report["reason"]
