"""The conversation within its bound: what is told in short, and that nothing is forgotten."""

import json
from typing import Any

import pytest

from banking_server.agent import RunOutcome
from banking_server.agent.history import size

from ..kit.model import call
from .support import scene

pytestmark = pytest.mark.anyio

LONG = "oak " * 300


async def test_old_requests_are_told_in_short_and_the_newest_whole() -> None:
    def answer(request: dict[str, Any]) -> str:
        last = request["messages"][-1]
        if last["content"].startswith("Buy"):
            return call("buy", door=LONG + last["content"])
        return "Bought, and it is no. 12."

    async with scene(answer, bounds={"history": 6_000}) as s:
        for number in range(8):
            run = await s.agent.ask(f"Buy door number {number}.")
            assert run.outcome is RunOutcome.ANSWERED
        system, *others = s.model.requests[-1]["messages"]
    # Beside what is always told, the whole is within the bound: accounts, messages, reminder.
    bare = s.model.requests[0]["messages"][0]["content"]
    told = size([system, *others]) - len(bare)
    assert told <= 6_000
    assert others[0] == {"role": "user", "content": others[0]["content"]}
    assert "Earlier in this conversation, in short:" in system["content"]
    assert "- The user asked: Buy door number 4." in system["content"]
    assert "buy was called with" in system["content"]
    assert "Result of buy: bought oak" in system["content"]
    assert "You said: Bought, and it is no. 12." in system["content"]
    assert "Buy door number 7." in json.dumps(others)
    assert "Buy door number 4." not in json.dumps(others)
    # The whole is bounded too, and says so.
    assert "(Not listed: " in system["content"]
