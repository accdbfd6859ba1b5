"""The conversation within its bound: what is told in short, and that nothing is forgotten."""

import json
from typing import Any

import pytest

from banking_server.agent import RunOutcome
from banking_server.agent.history import Account, Brief, Earlier, size

from ..kit.model import Reply, call, native
from .support import scene

pytestmark = pytest.mark.anyio

LONG = "oak " * 300


@pytest.mark.parametrize("form", ["prompt", "native"])
async def test_old_requests_are_told_in_short_and_the_newest_whole(form: str) -> None:
    def answer(request: dict[str, Any]) -> Reply | str:
        last = request["messages"][-1]
        if last["content"].startswith("Buy"):
            make = {"door": LONG + last["content"]}
            return native("buy", **make) if form == "native" else call("buy", **make)
        return "Bought, and it is no. 12."

    async with scene(answer, bounds={"history": 6_000}, tools=form) as s:
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


async def test_a_request_under_way_keeps_its_newest_result() -> None:
    script = [call("price", door=f"{n} " + "y" * 2_000) for n in range(4)]
    async with scene([*script, "Many."], bounds={"history": 6_000}) as s:
        await s.agent.ask("What are they?")
    last = s.model.requests[-1]["messages"]
    assert last[1]["content"] == "What are they?"
    assert "characters of this are left out now]" in last[3]["content"]
    assert "characters of this" not in last[-1]["content"]
    # Where that is not enough, the oldest turns go, and are told in short.
    assert [message["role"] for message in last] == ["system", "user"] + ["assistant", "user"] * 2
    assert "Done so far in this request, in short:\n- price: done" in last[0]["content"]


def paid(number: int, changes: bool = True) -> Account:
    line = f"- pay: done [pay_{number}]"
    return Account("x" * 100, (Brief(f"{line}; called with {{}}", line, changes),))


def test_what_changed_something_is_let_go_of_last() -> None:
    earlier = Earlier()
    assert earlier.in_words() == ""
    for one in (paid(1), Account("talk"), paid(2, changes=False), paid(3)):
        earlier.add(one)
    told: list[list[str]] = []
    for _ in range(7):
        earlier.hold(len(earlier.in_words()) - 1)
        told.append(earlier.in_words().replace("x" * 100, "x").splitlines()[1:])
    words = "- (Not listed: requests and answers in words: "
    first, read, last = (f"- pay: done [pay_{number}]" for number in (1, 2, 3))
    more = "; called with {}"
    assert told == [
        [f"{words}2.)", first + more, "x", "x"],
        [f"{words}3.)", first + more, read + more, "x"],
        [f"{words}4.)", first + more, read + more, last + more],
        [f"{words}4; calls that changed nothing: 1.)", first + more, last + more],
        [f"{words}4; calls that changed nothing: 1.)", first, last + more],
        [f"{words}4; calls that changed nothing: 1.)", first, last],
        [
            f"{words}4; calls that changed nothing: 1; calls that may have changed something: 2.)",
        ],
    ]
