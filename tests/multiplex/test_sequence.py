"""A list of requests is run in order, as single calls would be, or not at all.

Each step is the caller's own call, over as many rounds and servers as its questions need.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from tool_chaining import IDENTIFIER
from tool_chaining.arguments import ArgumentCheck

from ..kit.bank import (
    SECRET,
    Customer,
    World,
    answered,
    audiences,
    code_of,
    next_tool,
    structured,
    words,
)
from ..kit.model import error, scripted_model
from ..kit.servers import http_client
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    CONFIRM,
    EVERYDAY,
    FOREIGN,
    HANDOFF,
    LOCKED,
    LOCKED_TEXT,
    PREPARE,
    SAVINGS,
    TO_AN_AGENT,
    TO_SAVINGS,
)
from ..server.in_memory import URL, bank_in_memory
from .support import (
    MULTIPLEX,
    ClientModel,
    answer_of,
    multiplex,
    multiplex_round,
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
        assert ArgumentCheck().problem("", tool.input_schema, {"tools": [whole]}) is None
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

BAD_LISTS: dict[str, tuple[Any, str]] = {
    "eleven": (
        [request(number, ACCOUNTS) for number in range(11)],
        "tools: has 11: at most 10 are allowed, but",
    ),
    "unknown tool": ([GOOD, request(2, "make_rich")], "tools.1.params.name: there is no tool 'ma"),
    "itself": ([GOOD, request(2, MULTIPLEX, {"tools": [GOOD]})], "cannot be called inside itself"),
    "no condition": ([GOOD, request(2, ACCOUNTS, when=take("[0].status"))], "exactly one of"),
    "broken Unicode": ([request(1, HANDOFF, {"reason": "\ud800"})], "arguments: is not valid JSON"),
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


# --- what would ask the customer ------------------------------------------------------------------

YES: dict[str, Any] = {"agreed": True}
TRANSFER = take("[1].structuredContent.transferId")
CALL_IT_ALONE = "It has a question for the customer, so call it alone, outside a plan."


def tools(world: World) -> list[str]:
    return [tool for tool, _ in world.outcomes()]


async def test_a_step_that_has_a_question_is_refused_and_works_alone(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode, answers=[YES]) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, PREPARE, {**TO_SAVINGS, "fromAccountId": EVERYDAY, "amount": 40}),
            request(3, CONFIRM, {"transferId": TRANSFER, "action": "confirm"}),
            request(4, HANDOFF, {"reason": "A question"}),
            request(5, PREPARE, {"amount": 5}),
            request(6, BALANCE, {"accountId": EVERYDAY}),
        )
        assert me.asked == []
        assert statuses(result) == ["done", "done", *["failed"] * 3, "done"]
        assert [step["message"] for step in results(result)[2:5]] == [CALL_IT_ALONE] * 3
        transfer = results(result)[1]["structuredContent"]["transferId"]
        assert structured(await me.confirm(transfer))["status"] == "posted"
        assert len(me.asked) == 1
    assert world.outcomes()[2:5] == [(CONFIRM, "failed"), (HANDOFF, "failed"), (PREPARE, "failed")]


# --- over the rounds of its prompts ---------------------------------------------------------------

TWO_PROMPTS = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {**TO_SAVINGS, "fromAccountId": prompt("the account"), "amount": 40}),
    request(3, BALANCE, {"accountId": prompt("the account")}),
]


async def test_a_finished_step_runs_once_and_a_request_state_fits_one_call(
    world: World,
) -> None:
    """2026-07-28: prompts travel in results."""
    async with world.customer(sampling_callback=ClientModel({})) as me:
        first = await multiplex_round(me, *TWO_PROMPTS)
        assert tools(world) == [ACCOUNTS]
        # Without an answer it is asked for again.
        answers = answered(first, answer_of(EVERYDAY))
        await multiplex_round(me, *TWO_PROMPTS, **{**answers, "input_responses": {}})
        second = await multiplex_round(me, *TWO_PROMPTS, **answers)
        assert tools(world) == [ACCOUNTS, PREPARE]
        state = second.request_state or ""
        assert EVERYDAY not in state
        more = answered(second, answer_of(EVERYDAY))
        changed = f"{state[:-9]}{'A' if state[-9] != 'A' else 'B'}{state[-8:]}"
        for bad in (changed, "", json.dumps({"done": [], "for_user": []})):
            with pytest.raises(MCPError, match="requestState"):
                await multiplex_round(me, *TWO_PROMPTS, **{**more, "request_state": bad})
        with pytest.raises(MCPError, match="requestState"):
            await multiplex_round(me, *TWO_PROMPTS, request(6, ACCOUNTS), **more)
        last = await multiplex_round(me, *TWO_PROMPTS, **more)
        again = await multiplex_round(me, *TWO_PROMPTS, **more)
    assert statuses(last) == ["done"] * 3
    assert results(again)[:2] == results(last)[:2]
    assert tools(world) == [ACCOUNTS, PREPARE, *[BALANCE, MULTIPLEX] * 2]


# --- over HTTP, without sessions ------------------------------------------------------------------


@asynccontextmanager
async def over_http(
    world: World, customer: str = "CUST001", mode: str = "auto", **options: Any
) -> AsyncIterator[Customer]:
    """Connect a customer with a token that may only read, to a server without sessions."""
    assert isinstance(world.location, Path)
    person = Customer(mode)
    async with bank_in_memory(world.location, world.clock, secret=SECRET, workers=2) as bank:
        token, transport = bank.token(customer, "bank:read"), httpx2.ASGITransport(bank.app)
        async with http_client(URL, token, mode, transport=transport, **options) as person.client:
            yield person


async def test_a_step_without_its_scope_is_refused_and_every_step_leaves_an_event(
    world: World,
) -> None:
    """The chain is the whole call's."""
    chain = {"chainId": "0b0e7a3c-chain", "level": 2, "previousTool": ACCOUNTS}
    async with over_http(world) as me:
        result = await me.call(
            MULTIPLEX,
            tools=[
                request(1, ACCOUNTS),
                request(2, PREPARE, {**TO_SAVINGS, "amount": 5}),
                request(3, BALANCE, {"accountId": 5}),
                request(4, BALANCE, {"accountId": FOREIGN}),
            ],
            meta={IDENTIFIER: chain},
        )
    assert statuses(result) == ["done", *["failed"] * 3]
    refused = f"{PREPARE} needs a token with the scope bank:transfer."
    assert results(result)[1]["message"] == refused
    assert world.outcomes() == [
        (ACCOUNTS, "listed"),
        (PREPARE, "scope_missing"),
        (BALANCE, "invalid_arguments"),
        (BALANCE, "not_found"),
        (MULTIPLEX, "completed"),
    ]
    for event in world.events():
        assert (event["customer_id"], event["chain_id"]) == ("CUST001", "0b0e7a3c-chain")
        assert (event["chain_level"], event["chain_previous_tool"]) == (2, ACCOUNTS)


MINE = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("mine")})]


async def test_a_question_is_answered_through_another_server_by_its_own_customer(
    world: World,
) -> None:
    model = ClientModel({})
    async with (
        over_http(world, sampling_callback=model) as me,
        over_http(world, sampling_callback=model) as me_again,
        over_http(world, "CUST002", sampling_callback=model) as other,
    ):
        answers = answered(await multiplex_round(me, *MINE), answer_of(SAVINGS))
        with pytest.raises(MCPError, match="requestState"):
            await multiplex_round(other, *MINE, **answers)
        result = await multiplex_round(me_again, *MINE, **answers)
    assert statuses(result) == ["done", "done"]
    assert tools(world) == [ACCOUNTS, BALANCE, MULTIPLEX]


async def test_the_banks_model_stands_in_for_the_clients_and_its_errors_stay_inside(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """2025-11-25 without a session has no way to ask, though the client offers its model."""
    async with over_http(world, mode="legacy", sampling_callback=ClientModel({})) as me:
        result = await multiplex(me, *MINE)
    assert "BANKING_MODEL_URL" in results(result)[1]["message"]
    with scripted_model([error(500, "the oracle at 10.9.8.7 is silent")] * 3) as endpoint:
        monkeypatch.setenv("BANKING_MODEL_URL", endpoint.url)
        monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
        async with over_http(world) as me:
            result = await multiplex(me, *MINE)
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: the bank's language model gives no answer now.")
    assert "10.9.8.7" not in message
    incident = message.rstrip(".").split()[-1]
    assert any(incident in line and "HTTP 500" in line for line in caplog.text.splitlines())
