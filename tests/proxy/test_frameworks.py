"""Frameworks that know nothing of chains, unmodified, finish the story through the proxy."""

from pathlib import Path

import pytest

from ..adapters.support import CAN_ASK, FRAMEWORKS, missing
from ..kit.bank import World
from ..kit.command import command
from ..kit.words import FROM_LOCKED, HANDOFF, LOCKED_TEXT, PREPARE
from .pipe import PROXY
from .wire import proxy_over_http

INSTALL = "pip install '.[test]'"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("pydantic_ai", INSTALL)),
    pytest.mark.needs_program(missing("agents", INSTALL)),
]


@pytest.mark.parametrize("over", ["stdio", "http"])
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
