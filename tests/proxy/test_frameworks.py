"""Clients and frameworks that know nothing of chains, unmodified, finish the story by the proxy.

LangChain, which has an environment of its own, is in `tests/adapters/test_other_environments.py`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..adapters.support import CAN_ASK, FRAMEWORKS, missing
from ..conformance import node_project
from ..kit.bank import World
from ..kit.command import PATIENCE, command, environment
from ..kit.words import FROM_LOCKED, HANDOFF, LOCKED_TEXT, PREPARE
from .pipe import CHAINING, PROXY
from .wire import proxy_over_http

INSTALL = "pip install '.[test]'"
each_way = pytest.mark.parametrize("over", ["stdio", "http"])


@pytest.mark.anyio
@pytest.mark.needs_program(missing("pydantic_ai", INSTALL))
@pytest.mark.needs_program(missing("agents", INSTALL))
@each_way
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_the_locked_account_hands_itself_off(
    framework: str, over: str, world: World, tmp_path: Path
) -> None:
    # Some show their model structured content, and drop all words beside it.
    bank = ("--text-only", "--", *command("--database", str(world.location)))
    call = (PREPARE, FROM_LOCKED)
    if over == "stdio":
        said = await FRAMEWORKS[framework]((*PROXY, *bank), call, follow=False)
    else:
        with proxy_over_http(tmp_path, *bank) as proxy:
            said = await FRAMEWORKS[framework](proxy.url, call, follow=False)
    first, second = world.events()
    assert [first["tool"], second["tool"]] == [PREPARE, HANDOFF]
    assert first["chain_id"] == second["chain_id"]
    [(chosen,)] = world.sql("SELECT choice FROM handoff")
    assert chosen == ("callback" if framework in CAN_ASK else None)
    assert said.index(LOCKED_TEXT) < said.index("Your reference is ho_")
    assert said.count("That call was made for you: do not make it again.") == 1


@pytest.mark.needs_program(node_project.missing("@modelcontextprotocol/sdk"))
@each_way
def test_the_typescript_sdk(over: str, world: World, tmp_path: Path) -> None:
    script = Path(__file__).with_name("story_client.mjs")
    # Node looks for packages beside the script.
    (tmp_path / script.name).write_text(script.read_text())
    (tmp_path / "node_modules").symlink_to(node_project.MODULES.resolve())

    def run(*server: str) -> Any:
        ran = subprocess.run(
            [str(node_project.node()), script.name, *server],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    bank = ("--", *command("--database", str(world.location)))
    if over == "stdio":
        result = run(*PROXY, *bank)
    else:
        with proxy_over_http(tmp_path, *bank) as proxy:
            result = run(proxy.url)
    assert [event["tool"] for event in world.events()] == [PREPARE, HANDOFF]
    assert world.sql("SELECT choice FROM handoff") == [("callback",)]
    assert result["content"][0]["text"] == LOCKED_TEXT
    assert result["structuredContent"]["status"] == "account_locked"
    assert result["_meta"][CHAINING]["outcome"] == "completed"
