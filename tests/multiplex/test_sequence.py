"""A list of requests is run in order, as single calls would be, or not at all."""

import json
from typing import Any

import pytest

from banking_server.chaining import IDENTIFIER
from banking_server.chaining.arguments import argument_problem

from ..kit.bank import World, audiences, code_of, next_tool, structured, words
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    CONFIRM,
    EVERYDAY,
    HANDOFF,
    LOCKED,
    LOCKED_TEXT,
    PREPARE,
    TO_AN_AGENT,
    TO_SAVINGS,
)
from .support import (
    MULTIPLEX,
    ClientModel,
    multiplex,
    noted,
    prompt,
    request,
    results,
    statuses,
    take,
)

pytestmark = pytest.mark.anyio


async def test_requests_run_in_order_and_their_results_are_a_list(world: World, mode: str) -> None:
    """A request may have the `_meta` of MCP's own; it says nothing here of whose call it is."""
    whole = request(1, BALANCE, {"accountId": EVERYDAY})
    whole["params"]["_meta"] = {IDENTIFIER: {"chainId": "made-up", "level": 4}}
    async with world.customer(mode=mode) as me:
        (tool,) = [one for one in (await me.client.list_tools()).tools if one.name == MULTIPLEX]
        assert argument_problem(tool.input_schema, {"tools": [whole]}) is None
        result = await multiplex(
            me,
            whole,
            request("1", PREPARE, {**TO_SAVINGS, "amount": 25}),
            request(3, BALANCE, {"accountId": EVERYDAY}),
        )
    assert not result.is_error
    assert structured(result)["status"] == "completed"
    before, prepared, after = results(result)
    assert [before["id"], prepared["id"], after["id"]] == [1, "1", 3]
    assert prepared["structuredContent"]["status"] == "pending"
    assert before["structuredContent"]["reserved"] == 0
    assert after["structuredContent"]["reserved"] == 25
    assert json.loads(result.content[-1].text) == results(result)  # type: ignore[union-attr]
    assert world.outcomes() == [
        (BALANCE, "balance"),
        (PREPARE, "prepared"),
        (BALANCE, "balance"),
        (MULTIPLEX, "completed"),
    ]
    assert {event["chain_id"] for event in world.events()} == {None}


GOOD = request(1, ACCOUNTS)
WITH_PROMPT = {"jmespath": "[0].x", "notEquals": "PROMPT_ARGUMENT the name"}

BAD_LISTS: dict[str, tuple[Any, str]] = {
    "eleven": (
        [request(number, ACCOUNTS) for number in range(11)],
        "tools: has 11: at most 10 are allowed, but",
    ),
    "id twice": ([request("a", ACCOUNTS), request("a", ACCOUNTS)], "tools.1.id: the id 'a'"),
    "id of no type": ([{**GOOD, "id": 1.5}], "tools.0.id: must be a whole number or a text"),
    "unknown tool": ([GOOD, request(2, "make_rich")], "tools.1.params.name: there is no tool 'ma"),
    "itself": ([GOOD, request(2, MULTIPLEX, {"tools": [GOOD]})], "cannot be called inside itself"),
    "no condition": ([GOOD, request(2, ACCOUNTS, when=take("[0].status"))], "exactly one of"),
    "compared with a list": (
        [GOOD, request(2, ACCOUNTS, when={**take("[0].x"), "equals": []})],
        "tools.1.when.equals: must be a text, a number, true, false or null",
    ),
    "compared with a prompt": (
        [GOOD, request(2, ACCOUNTS, when=WITH_PROMPT)],
        "tools.1.when: reads like a prompt, and no model is asked here",
    ),
    "broken Unicode": ([request(1, HANDOFF, {"reason": "\ud800"})], "arguments: holds broken"),
    "too much to infer": (
        [GOOD, *(request(n, HANDOFF, {f"a{i}": prompt("?") for i in range(7)}) for n in (2, 3, 4))],
        "at most 20",
    ),
}


@pytest.mark.parametrize(("tools", "said"), BAD_LISTS.values(), ids=BAD_LISTS)
async def test_a_list_with_a_mistake_is_refused_by_name_and_not_begun(
    world: World, tools: Any, said: str
) -> None:
    async with world.customer() as me:
        result = await me.call(MULTIPLEX, tools=tools)
    assert result.is_error
    assert said in words(result)
    assert structured(result)["field"] == "tools"
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


# --- a step's directive ends the sequence, and is the whole call's --------------------------------

LOCKED_STEPS = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {"fromAccountId": LOCKED, "amount": 5}),
    request(3, HANDOFF, {"reason": "never asked"}),
    request(4, BALANCE, {"accountId": prompt("never asked either")}),
]


async def test_a_directive_stops_the_sequence_and_becomes_the_whole_calls(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode, sampling_callback=ClientModel({})) as me:
        result = await multiplex(me, *LOCKED_STEPS)
    assert next_tool(result) == TO_AN_AGENT
    # This client follows no directives, so its model is told in words.
    assert "Next step suggested by this server" in words(result, "assistant")
    # Once in structured content too, and in no copy of it.
    assert structured(result)["nextStep"] == TO_AN_AGENT
    assert "nextStep" not in words(result) + json.dumps(results(result))
    # What is for the user alone reaches them, and no list of results.
    assert result.content[0].text == LOCKED_TEXT  # type: ignore[union-attr]
    assert LOCKED_TEXT in structured(result)["message"]
    assert not result.is_error
    assert structured(result)["status"] == "stopped"
    assert statuses(result) == ["done", "done", "not_run", "not_run"]
    _, stopped, unrun, _ = results(result)
    assert stopped["structuredContent"]["status"] == "account_locked"
    assert stopped["content"] == []
    assert unrun["message"] == "An earlier step's result names the tool to call next."
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, PREPARE, MULTIPLEX]


# --- what is meant for the customer reaches the customer, and no model ----------------------------


async def test_a_code_never_reaches_the_clients_model(world: World, mode: str) -> None:
    model = ClientModel(lambda wanted: f"123456: {wanted}")
    async with world.customer(mode=mode, sampling_callback=model) as me:
        earlier = await me.prepare(amount=39)
        confirm = {"transferId": structured(earlier)["transferId"], "action": "confirm"}
        result = await multiplex(
            me,
            request(1, CONFIRM, {**confirm, "confirmationCode": code_of(earlier)}),
            request(2, PREPARE, {**TO_SAVINGS, "amount": 40}),
            noted(3, prompt("the confirmation code")),
            request(4, BALANCE, {"accountId": EVERYDAY}),
            noted(5, prompt("all codes there are")),
            # No reference leads to what is for the customer alone.
            noted(6, take("[1].content[1].text")),
            request(7, HANDOFF, {"reason": {"text": "{join(' ', [1].content[].text)}"}}),
        )
    assert statuses(result) == [*["done"] * 5, "failed", "done"]
    blocks = [block for block in result.content if audiences(block) == ["user"]]
    codes = [code_of(result.model_copy(update={"content": [block]})) for block in blocks]
    assert len(set(codes)) == 3
    trail = str(world.sql("SELECT * FROM audit_event"))
    for code in (*codes, code_of(earlier)):
        assert code not in model.told
        assert code not in json.dumps(results(result))
        assert code not in trail + str(world.stored()["handoff"])
    for code in codes:
        assert structured(result)["message"].count(code) == 1
    assert "123456" not in trail
    # The model was told of the transfer itself.
    assert results(result)[1]["structuredContent"]["transferId"] in model.told
