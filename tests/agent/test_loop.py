"""The agent: what it does with the model's replies, and what the model gets to see."""

import re
from itertools import pairwise
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import ListToolsResult, Tool

from banking_server.client.agent.loop import Bounds
from banking_server.client.agent.prompt import answer_now, reply_schema
from banking_server.client.agent.toolbox import Toolbox, ToolsUnavailable

from ..kit.model import Reply, call, error, native
from .shop import SECRET, TITLE
from .support import not_called, scene

pytestmark = pytest.mark.anyio

ANSWER = call("reply_to_user", message="80 EUR.")
PART = {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}}
SCHEMA = {**PART, "$defs": {"Part": {**PART, "description": "A part."}}}
DEEP: dict[str, Any] = {"$ref": "#"}
for _ in range(90):
    DEEP = {"properties": {"deeper": DEEP}}
ODD: list[tuple[dict[str, Any], str]] = [
    ({"a": {"required": True, "properties": {"b": {}}}}, "- b (any value, optional"),
    ({"a": {"type": [1, "string"]}}, "- a (string, required"),
    (DEEP["properties"], "- deeper (any value, optional"),
]


async def test_native_calls_are_made_and_answered_by_their_ids() -> None:
    both = Reply("Looking.", calls=[("price", {"door": "oak"}), ("price", {"door": "elm"})])
    async with scene([both, "Both 80."], tools="native") as s:
        run = await s.agent.ask("What are oak and elm?")
    assert run.answer == "Both 80."
    assert [arguments["door"] for _, arguments in s.calls] == ["oak", "elm"]
    first, second = s.model.requests
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"price", "buy"}
    assert "for_the_app" not in s.model.told
    assert "Tool: price" not in first["messages"][0]["content"]
    assistant, oak, elm = second["messages"][2:]
    ids = [one["id"] for one in assistant["tool_calls"]]
    assert [oak["tool_call_id"], elm["tool_call_id"]] == ids
    assert (oak["role"], oak["content"]) == ("tool", "Result of price:\noak costs 80 EUR")


async def test_names_are_those_that_endpoints_allow_and_references_are_no_circles() -> None:
    own = ["a.b", "3_a_b", "a/b", "a_b", "x" * 128, "x" * 127 + "y", "grüß"]

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema=SCHEMA) for name in own])

    async with Client(Server("s", on_list_tools=list_tools)) as client:
        toolbox = await Toolbox.gather({"se rv": client})
        with pytest.raises(ToolsUnavailable, match="No tool and no server has these"):
            await Toolbox.gather({"se rv": client}, allowed=["none"])
    made = [offered.name for offered in toolbox.tools]
    assert len(set(made)) == len(own)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in made)
    assert [offered.tool.name for offered in toolbox.tools] == own
    words = toolbox.tools[0].in_words()
    assert "Arguments:\n- part (object, optional): A part.\n  - part (object" in words


@pytest.mark.parametrize(("properties", "words"), ODD)
async def test_a_schema_may_be_any_json(properties: dict[str, Any], words: str) -> None:
    schema = {"type": "object", "properties": properties, "required": [1, *properties]}

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="list_parts", input_schema=schema)])

    async with Client(Server("s", on_list_tools=list_tools)) as client:
        toolbox = await Toolbox.gather({"s": client})
    assert words in toolbox.tools[0].in_words()
    assert reply_schema(toolbox.tools)
    assert toolbox.lists("s", "part") is toolbox.tools[0]


async def test_the_tools_are_described_and_a_reply_is_held_to_them_if_it_can_be() -> None:
    async with scene([error(400, "no such type"), call("price", door="oak"), ANSWER]) as s:
        assert (await s.agent.ask("What is oak?")).answer == "80 EUR."
    price = (
        "Tool: price\n"
        "Title: Price of a Door\n"
        "Description: Look up the price of a door.\n"
        "Arguments:\n"
        "- door (string, required): The door's name.\n"
        '- currency (one of "EUR", "USD", optional, default "EUR"): What to pay in.\n'
        "- pieces (integer, at least 1, at most 9, optional, default 1): Pieces\n\n"
    )
    assert price in s.model.requests[0]["messages"][0]["content"]
    assert ["response_format" in request for request in s.model.requests] == [True, False, False]
    held = s.model.requests[0]["response_format"]
    assert held["type"] == "json_schema"
    options = held["json_schema"]["schema"]["anyOf"]
    schema = next(one for one in options if one["properties"]["tool"] == {"const": "price"})
    assert schema["properties"]["arguments"]["properties"]["currency"]["enum"] == ["EUR", "USD"]


async def test_a_bad_call_is_never_made_and_the_model_is_told() -> None:
    bad = {
        call("sell", door="oak"): "no tool 'sell'; the tools are: price",
        call("buy"): "'door' is a required property",
        call("buy", door="a") + call("buy", door="b"): "goes on after",
        '{"action": "buy", "action_input": "oak"}': "write the call of buy as",
    }
    async with scene([*bad, call("buy", door="oak"), "Bought."]) as s:
        run = await s.agent.ask("Buy an oak door.")
    assert run.answer == "Bought."
    assert s.calls == [("buy", {"door": "oak"})]
    for problem, told, noted in zip(bad.values(), s.told[1:5], not_called(run), strict=True):
        assert problem in told
        assert problem in noted


async def test_a_directive_is_followed_and_kept_from_the_model_as_is_what_is_for_users() -> None:
    reserve, unknown = call("reserve", door="oak"), call("deliver", delivery_id="o_1")
    async with scene([reserve, unknown, "Ordered. Which delivery?"]) as s:
        run = await s.agent.ask("Reserve oak.")
    assert run.answer == "Ordered. Which delivery?"
    ordered = {"door": "oak", "reason": "out of stock"}
    assert s.calls == [("reserve", {"door": "oak"}), ("order", ordered)]
    assert s.consent.asked == [("order", ordered)]
    assert [(c.by, c.step.tool, c.step.level) for c in run.calls] == [
        ("model", "reserve", 1),
        ("directive", "order", 2),
    ]
    # One answer to the one call that the model made, with the status of the other.
    told, unnamed = s.told[1:]
    assert "ordered oak: no. 77" in told
    assert '"status": "out_of_stock"' in told
    assert "has already run. Do not call it again." in told
    # The client did not declare the extension, so that the server puts its directive in words too.
    assert "Next step" in str(run.calls[0].step.result)
    for directive in ("nextStep", "nextTool", "Next step", TITLE):
        assert directive not in s.model.told
    assert "[shown to the user, and not to you]" in told
    assert "is no id that the server or the user has named" in unnamed
    assert SECRET in str(run.calls[0].step.result)
    assert "431" not in s.model.told


async def test_a_tool_that_the_model_is_not_offered_is_not_followed_to() -> None:
    script = [call("order", door="oak"), call("reserve", door="oak"), "No."]
    async with scene(script, allowed=["reserve"]) as s:
        run = await s.agent.ask("Reserve oak.")
    assert s.called == ["reserve"]
    assert "the host did not consent" in not_called(run)[-1]
    assert "was not made" in s.told[-1]


@pytest.mark.parametrize(
    ("trust", "can_ask", "called"),
    [
        (False, True, ["price", "reserve", "order"]),
        (False, False, []),
        (True, False, ["price", "reserve"]),
    ],
)
async def test_where_nobody_can_be_asked_only_what_reads_is_called(
    trust: bool, can_ask: bool, called: list[str]
) -> None:
    """What a server says of a tool counts only if it is trusted."""
    script = [call("price", door="oak"), call("reserve", door="oak"), "Done."]
    async with scene(script, can_ask=can_ask, trust=trust) as s:
        await s.agent.ask("Reserve oak.")
    assert s.called == called
    assert [tool for tool, _ in s.consent.asked] == (called if can_ask else [])
    system = s.model.requests[0]["messages"][0]["content"]
    assert ("Nobody can be asked for consent here" in system) is not can_ask
    if not called:
        assert "price was not called. Nobody can be asked" in s.told[1]


async def test_the_models_own_call_whose_answer_was_lost_is_not_made_again_unasked() -> None:
    """Nor by a chain (TC-C-55)."""
    script = [call("pay", amount=80), call("pay", amount=80), "?", call("pay", amount=80), "Paid."]
    async with scene(script) as s:
        s.agent.call_timeout = 0.3
        assert (await s.agent.ask("Pay.")).answer == "?"
        assert (s.called, s.consent.again) == (["pay"], 0)
        assert (await s.agent.ask("Pay all the same.")).answer == "Paid."
    assert (s.called, s.consent.again) == (["pay", "pay"], 1)


async def test_turns_are_bounded() -> None:
    script = [call("price", door="oak"), call("sell"), "Never asked for."]
    async with scene(script) as s:
        s.agent.bounds = Bounds(turns=2)
        run = await s.agent.ask("Go on.")
    assert (run.answer, len(s.model.requests)) == (None, 2)
    assert run.report() == "The model has replied 2 times. Done so far: price (by the model)."


async def test_time_is_bounded_while_a_tool_is_called() -> None:
    pay = native("pay", amount=1)
    async with scene([pay, "I am back."], tools="native") as s:
        s.agent.bounds = Bounds(seconds=0.5)
        run = await s.agent.ask("Wait.")
        again = await s.agent.ask("Are you there?")
    assert "The 0.5 seconds for this request are over." in run.report()
    assert "The call of pay was under way" in run.report()
    assert again.answer == "I am back."
    # Each native call has its answer, or endpoints would refuse the conversation.
    sent = s.model.requests[-1]["messages"]
    roles = [message["role"] for message in sent]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "whether it took effect is not known" in sent[4]["content"]


@pytest.mark.parametrize("form", ["prompt", "native"])
async def test_a_repetition_ends_in_an_answer_without_tools(form: str) -> None:
    make: Any = call if form == "prompt" else native
    once, other = make("buy", door="oak"), make("price", door="elm")
    async with scene([once, other, once, "Bought once.", "Yes."], tools=form) as s:
        run = await s.agent.ask("Buy oak.")
        assert run.answer == "Bought once."
        assert s.called == ["buy", "price"]
        last = s.model.requests[-1]
        assert "tools" not in last
        assert s.told[-1].endswith(answer_now("Buy oak."))
        # Two messages of the user's in a row are refused by some models' templates.
        roles = [message["role"] for message in last["messages"]]
        assert ("user", "user") not in pairwise(roles)
        await s.agent.ask("Sure?")
    # What asked for the answer is not kept.
    assert answer_now("Buy oak.") not in str(s.model.requests[-1])


async def test_the_oldest_requests_are_left_out_and_old_messages_are_cut() -> None:
    long = "oak " * 500
    script = ["One.", *[call("buy", door=long + each) for each in "ab"], "Two.", "Three."]
    async with scene(script) as s:
        s.agent.bounds = Bounds(history=6_000)
        for request in ("First", "Second", "Third"):
            assert (await s.agent.ask(request)).answer is not None
    sent = [[one["content"] for one in request["messages"]] for request in s.model.requests]
    assert sent[1][1:] == ["First", "One.", "Second"]
    assert sent[3][1] == "Second", "the first request is no longer told"
    assert all("characters)" in old for old in sent[3][2:4]), "the model's call and its result"
    assert "characters)" not in sent[3][5], "the newest result is whole"
