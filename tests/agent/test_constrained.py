"""Replies that the endpoint holds to JSON: how that is found out, and what is shown of them."""

from typing import Any

import pytest

from banking_server.agent.reply import CallRequest, Unreadable, certain_text, read_reply

from ..kit.model import Action, call, error
from .support import scene

pytestmark = pytest.mark.anyio


def reply(message: str) -> str:
    return call("reply_to_user", message=message)


def format_of(request: dict[str, Any]) -> str | None:
    kind = request.get("response_format", {}).get("type")
    return kind if kind is None else str(kind)


GOOD = reply("hello")


@pytest.mark.parametrize(
    ("probed", "found"),
    [
        ([GOOD], "json_schema"),
        ([error(400, "no such type"), GOOD], "json_object"),
        (['{"greeting": "hello"}', '{"tool": "hello"}'], "none"),
    ],
)
async def test_auto_goes_by_what_comes_back_and_remembers(probed: list[Action], found: str) -> None:
    answer = reply("One.") if found != "none" else "One."
    async with scene([*probed, answer, answer], format="auto") as s:
        first, second = await s.agent.ask("1"), await s.agent.ask("2")
    assert (first.answer, second.answer) == ("One.", "One.")
    assert len(s.model.requests) == len(probed) + 2
    assert [format_of(r) for r in s.model.requests[: len(probed)]] == [
        "json_schema",
        "json_object",
    ][: len(probed)]
    for request in s.model.requests[-2:]:
        assert format_of(request) == (None if found == "none" else found)
    # What it cost is counted, where there was a reply.
    assert first.model_calls == 1 + sum(isinstance(one, str) for one in probed)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Is it {80}?</think>It is 80.", "It is 80."),
        ("so it is</think>\n\nIt is 80.", "It is 80."),
    ],
)
async def test_thoughts_are_neither_shown_nor_kept(text: str, answer: str) -> None:
    async with scene([text, "Yes."], stream=True) as s:
        run = await s.agent.ask("What is oak?")
        await s.agent.ask("Sure?")
    assert run.answer == answer
    assert s.model.requests[1]["messages"][2]["content"] == answer
    taken_back = "so it is\n" if text.startswith("so") else ""
    assert "".join(s.shown) == f"{taken_back}{answer}Yes."


def test_a_call_is_not_made_of_a_thought() -> None:
    assert isinstance(read_reply(f"<think>{call('buy', door='oak')}"), Unreadable)
    made = read_reply(f"<think>I buy it.</think>{call('buy', door='oak')}")
    assert made == CallRequest(("buy",), {"door": "oak"})
    assert certain_text("Hello <thi") == "Hello"
