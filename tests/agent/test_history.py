"""The conversation within its bound: what is told in short, and that nothing is forgotten."""

import json
from typing import Any

import pytest

from banking_server.agent import RunOutcome

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
    # Beside what is always told, the whole is within the bound, or nearly: a reminder is added.
    bare = s.model.requests[0]["messages"][0]["content"]
    told = sum(len(one["content"]) for one in [system, *others]) - len(bare)
    assert told <= 6_500
    assert "Earlier in this conversation, in short:" in system["content"]
    assert "- The user asked: Buy door number 6." in system["content"]
    assert "Result of buy: bought oak" in system["content"]
    assert "You said: Bought, and it is no. 12." in system["content"]
    assert "Buy door number 7." in json.dumps(others)
    assert "Buy door number 6." not in json.dumps(others)
    # The whole is bounded too, and says so.
    assert "older requests are not listed" in system["content"]
