"""Replies that the endpoint holds to JSON: how that is found out, and what is shown of them."""

import json
from typing import Any

import pytest

from banking_server.agent import Endpoint, RunOutcome, Toolbox
from banking_server.agent.constrained import ANSWER, fits, reply_schema
from banking_server.agent.reply import CallRequest, ForUser, Unreadable, certain_text, read_reply
from banking_server.chaining.arguments import argument_problem

from ..kit.model import Action, call, error, native, scripted_model
from .support import scene, settings

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
        (["hello", GOOD], "json_object"),
        ([error(400, "no such type"), GOOD], "json_object"),
        (['{"greeting": "hello"}', '{"tool": "hello"}'], "none"),
        ([error(400), error(422)], "none"),
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


async def test_what_cannot_be_asked_is_not_found_out() -> None:
    async with scene([error(401), GOOD, reply("Back.")], format="auto") as s:
        assert (await s.agent.ask("1")).outcome is RunOutcome.MODEL_UNAVAILABLE
        assert (await s.agent.ask("2")).answer == "Back."


async def test_a_form_that_is_rejected_later_is_asked_for_no_more() -> None:
    script = [GOOD, error(400), error(404), error(400), "Hi.", "Bye."]
    async with scene(script, format="auto") as s:
        assert (await s.agent.ask("1")).outcome is RunOutcome.MODEL_UNAVAILABLE
        assert [(await s.agent.ask(ask)).answer for ask in "23"] == ["Hi.", "Bye."]
    asked = [format_of(request) for request in s.model.requests]
    assert asked == ["json_schema", "json_schema", None, "json_schema", None, None]


async def test_nothing_is_probed_without_tools_or_in_the_native_form() -> None:
    async with scene([native("ready"), "One."], tools="auto", format="auto") as s:
        await s.agent.ask("1")
    assert [format_of(request) for request in s.model.requests] == [None, None]


async def test_each_tool_has_its_own_arguments_in_the_schema() -> None:
    async with scene([reply("Hi.")], format="json_object") as s:
        await s.agent.ask("Hi")
        schema = s.model.requests[0]["response_format"]["schema"]
    assert schema["anyOf"][0] == ANSWER
    price = schema["anyOf"][1]["properties"]
    assert price["tool"] == {"const": "price"}
    assert price["arguments"] == {
        "type": "object",
        "properties": {
            "door": {"type": "string"},
            "size": {
                "type": "object",
                "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
                "required": ["width"],
                "additionalProperties": False,
            },
            "currency": {"enum": ["EUR", "USD"]},
            "pieces": {"type": "integer"},
        },
        "required": ["door"],
        "additionalProperties": False,
    }
    fit = fits(schema)
    assert fit(call("price", door="oak"))
    assert not fit(call("price"))
    assert not fit(call("price", door="oak", size=None))
    assert not fit("[" * 100_000)


def test_odd_schemas_become_what_every_grammar_knows() -> None:
    from banking_server.agent.constrained import _plain

    root = {"$defs": {"loop": {"type": "array", "items": {"$ref": "#/$defs/loop"}}}}
    plain = {
        json.dumps({"type": ["string", "null"]}): {"type": "string"},
        json.dumps({"type": ["string", "integer"]}): {},
        json.dumps({"anyOf": [{"type": "null"}]}): {},
        json.dumps({"oneOf": [{"type": "string"}, {"const": 5}]}): {
            "anyOf": [{"type": "string"}, {"const": 5}]
        },
        json.dumps({"type": "object"}): {"type": "object"},
        json.dumps({"description": "anything"}): {},
    }
    for given, expected in plain.items():
        assert _plain(json.loads(given), root) == expected
    assert "$ref" not in json.dumps(_plain({"$ref": "#/$defs/loop"}, root))


async def test_without_tools_there_is_nothing_to_hold_a_reply_to() -> None:
    assert reply_schema([]) == ANSWER
    assert argument_problem(ANSWER, json.loads(GOOD)) is None
    with scripted_model(["Hello."]) as model:
        async with Endpoint(settings(model.url, format="json_object")) as endpoint:
            from banking_server.agent import Agent

            await Agent(endpoint, await Toolbox.gather({})).ask("Hi")
    assert "response_format" not in model.requests[0]


async def test_only_the_message_of_an_answer_is_streamed() -> None:
    script = [call("price", door="oak"), reply('It is "80"\nEUR. \U0001f600 <b>')]
    async with scene([*script], stream=True, format="json_object") as s:
        run = await s.agent.ask("What is oak?")
    assert "".join(s.shown) == run.answer == 'It is "80"\nEUR. \U0001f600 <b>'
    assert len(s.shown) > 2


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (reply("Done."), ForUser("Done.")),
        (f"```json\n{reply('Done.')}\n```", ForUser("Done.")),
        ("I see.\n\n" + reply("Done."), ForUser("I see.\nDone.")),
        ('{"tool": "reply_to_user", "arguments": {"text": "Done."}}', ForUser("Done.")),
        ('{"answer": "Done."}', ForUser("Done.")),
        ('{"tool": "reply_to_user", "arguments": {"text": 5}}', None),
        ('{"tool": "reply_to_user", "arguments": {}}', None),
        (reply("<think>hm</think>"), None),
        (reply("<think>hm</think>Done."), ForUser("Done.")),
    ],
)
def test_reply_to_user_is_for_the_user(text: str, meaning: Any) -> None:
    read = read_reply(text)
    assert read == meaning if meaning else isinstance(read, Unreadable)


THOUGHTS = [
    ("<think>Is it {80}?</think>It is 80.", "It is 80."),
    ("It is 80.\n<THINK>or is it", "It is 80."),
    ("so it is</think>\n\nIt is 80.", "It is 80."),
    ("<thinking>a</thinking><think>b</think>It is 80.", "It is 80."),
    ('<think about="it">a<think>b</think>c</think>It is 80.', "It is 80."),
]


@pytest.mark.parametrize(("text", "answer"), THOUGHTS)
@pytest.mark.parametrize("form", ["prompt", "native"])
@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_are_neither_shown_nor_kept(
    text: str, answer: str, form: str, stream: bool
) -> None:
    async with scene([text, "Yes."], tools=form, stream=stream) as s:
        run = await s.agent.ask("What is oak?")
        await s.agent.ask("Sure?")
    assert run.answer == answer
    assert s.model.requests[1]["messages"][2]["content"] == answer
    if stream:
        taken_back = "so it is\n" if text.startswith("so") else ""
        assert "".join(s.shown) == f"{taken_back}{answer}Yes."


def test_a_call_is_not_made_of_a_thought() -> None:
    assert isinstance(read_reply(f"<think>{call('buy', door='oak')}"), Unreadable)
    made = read_reply(f"<think>I buy it.</think>{call('buy', door='oak')}")
    assert made == CallRequest(("buy",), {"door": "oak"})
    assert certain_text("Hello <thi") == "Hello"
