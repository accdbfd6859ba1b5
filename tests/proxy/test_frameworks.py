"""Clients that know nothing of chains, unmodified, finish the story through the proxy.

LangChain does it in `tests/adapters/test_other_environments.py`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..adapters.support import CAN_ASK, FRAMEWORKS, missing
from ..conformance.node_project import TYPESCRIPT, node
from ..conformance.node_project import missing as missing_in_node
from ..kit.bank import SECRET, World
from ..kit.command import PATIENCE, command, environment
from ..kit.servers import http_server
from ..kit.words import FROM_LOCKED, HANDOFF, LOCKED, LOCKED_TEXT, PREPARE, SAVINGS
from .wire import CHAINING, NEW, PROXY, proxy_over_http

INSTALL = "pip install '.[dev]'"


@pytest.mark.anyio
@pytest.mark.needs_program(missing("pydantic_ai", INSTALL))
@pytest.mark.needs_program(missing("agents", INSTALL))
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_the_locked_account_hands_itself_off(framework: str, world: World) -> None:
    bank = ("--trust-hints", "--", *command("--database", str(world.location)))
    said = await FRAMEWORKS[framework]((*PROXY, *bank), (PREPARE, FROM_LOCKED), follow=False)
    first, second = world.events()
    assert [first["tool"], second["tool"]] == [PREPARE, HANDOFF]
    assert first["chain_id"] == second["chain_id"]
    [(chosen,)] = world.sql("SELECT choice FROM handoff")
    assert chosen == ("callback" if framework in CAN_ASK else None)
    assert said.index(LOCKED_TEXT) < said.index("Your reference is ho_")
    assert said.count("That call was made for you: do not make it again.") == 1


@pytest.mark.needs_program(missing_in_node("@modelcontextprotocol/client", TYPESCRIPT))
def test_the_typescript_sdk(world: World, tmp_path: Path) -> None:
    """Its first generation, and its second one on both revisions; over stdio and HTTP.

    The user picks the account. How to be connected is asked once, for there is one handoff then.
    """
    assert isinstance(world.location, Path)
    # Node looks for packages beside the script, not beside the one who starts it.
    script = tmp_path / "client.mjs"
    script.write_text(Path(__file__).with_name("typescript_client.mjs").read_text())
    (tmp_path / "node_modules").symlink_to((TYPESCRIPT / "node_modules").resolve())
    with http_server(world.location.parent, BANKING_SECRET=SECRET) as bank:
        token = {"TOOL_CHAINING_PROXY_TOKEN": bank.token()}
        with proxy_over_http(tmp_path, "--trust-hints", "--url", bank.url, **token) as proxy:
            kinds: list[dict[str, Any]] = [{"sdk": 1}, {"mode": "legacy"}, {"mode": {"pin": NEW}}]
            targets = (
                {"url": proxy.url},
                {"command": [*PROXY, "--trust-hints", "--url", bank.url]},
            )
            picks = [LOCKED, "callback"]
            call = (PREPARE, {"toAccountId": SAVINGS, "amount": 250})
            runs = [
                {**kind, **target, "call": call, "picks": picks}
                for kind in kinds
                for target in targets
            ]
            ended = subprocess.run(
                [str(node()), str(script), *map(json.dumps, runs)],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                env=environment(**token),
            )
    assert ended.returncode == 0, ended.stderr
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    events = world.events()
    assert [event["tool"] for event in events] == [PREPARE, HANDOFF] * len(runs)
    assert world.sql("SELECT choice FROM handoff") == [("callback",)]
    assert [one["_meta"][CHAINING]["chainId"] for one in results] == [
        event["chain_id"] for event in events[1::2]
    ]
    for result in results:
        assert result["structuredContent"]["status"] == "account_locked"
        said = [item["text"] for item in result["content"]]
        assert said[0] == LOCKED_TEXT
        assert "Your reference is ho_" in said[1]
