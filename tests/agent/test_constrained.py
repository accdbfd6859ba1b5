"""Replies that the endpoint holds to JSON: how that is found out, and what is shown of them."""

import pytest

from banking_server.agent.reply import CallRequest, Unreadable, certain_text, read_reply

from ..kit.model import call, error
from .support import scene

pytestmark = pytest.mark.anyio


async def test_a_reply_is_held_to_the_tools_if_the_endpoint_can() -> None:
    answer = call("reply_to_user", message="80 EUR.")
    async with scene([call("price", door="oak"), answer], stream=True) as s:
        assert (await s.agent.ask("What is oak?")).answer == "80 EUR."
    assert "".join(s.shown) == "80 EUR."
    held = s.model.requests[0]["response_format"]
    assert held["type"] == "json_schema"
    options = held["json_schema"]["schema"]["anyOf"]
    price = next(one for one in options if one["properties"]["tool"] == {"const": "price"})
    assert price["properties"]["arguments"]["properties"]["currency"] == {"enum": ["EUR", "USD"]}


async def test_an_endpoint_that_rejects_the_schema_is_asked_without() -> None:
    async with scene([error(400, "no such type"), "One.", "Two."]) as s:
        first, second = await s.agent.ask("1"), await s.agent.ask("2")
    assert (first.answer, second.answer) == ("One.", "Two.")
    assert ["response_format" in request for request in s.model.requests] == [True, False, False]


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
