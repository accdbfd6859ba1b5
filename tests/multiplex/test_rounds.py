"""2026-07-28: questions travel in results, and what is finished is not run again."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import (
    CallToolResult,
    CreateMessageRequest,
    ElicitResult,
    InputRequiredResult,
)

from ..kit.bank import Customer, World, code_at_desk
from ..kit.words import ACCOUNTS, BALANCE, CONFIRM, EVERYDAY, PREPARE, SAVINGS, TO_SAVINGS
from .support import (
    MULTIPLEX,
    ClientModel,
    answered,
    multiplex,
    multiplex_round,
    prompt,
    request,
    results,
    statuses,
    take,
    wanted_of,
)

pytestmark = pytest.mark.anyio

WHOLE_STORY = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {**TO_SAVINGS, "fromAccountId": prompt("the account"), "amount": 40}),
    request(3, BALANCE, {"accountId": prompt("the same account")}),
    request(
        4, CONFIRM, {"transferId": take("[1].structuredContent.transferId"), "action": "confirm"}
    ),
    request(5, BALANCE, {"accountId": EVERYDAY}),
]
TOOLS_OF_THE_STORY = [ACCOUNTS, PREPARE, BALANCE, CONFIRM, BALANCE, MULTIPLEX]
YES = {"agreed": True}


def agreed(result: InputRequiredResult, action: Any = "accept") -> dict[str, Any]:
    answer = ElicitResult(action=action, content=YES if action == "accept" else None)
    responses = dict.fromkeys(result.input_requests or (), answer)
    return {"input_responses": responses, "request_state": result.request_state}


async def asked(me: Customer, *steps: dict[str, Any], **more: Any) -> InputRequiredResult:
    """Make a round that ends with a question."""
    result = await multiplex_round(me, *steps, **more)
    assert isinstance(result, InputRequiredResult)
    return result


async def ended(me: Customer, *steps: dict[str, Any], **more: Any) -> CallToolResult:
    """Make the last round."""
    result = await multiplex_round(me, *steps, **more)
    assert isinstance(result, CallToolResult)
    return result


def tools(world: World) -> list[str]:
    return [tool for tool, _ in world.outcomes()]


async def test_two_inferences_and_a_confirmation_in_one_sequence(world: World, mode: str) -> None:
    model = ClientModel({"the account": EVERYDAY, "the same account": EVERYDAY})
    async with world.customer(mode=mode, answers=[YES], sampling_callback=model) as me:
        result = await multiplex(me, *WHOLE_STORY)
        (question,) = me.asked
    assert statuses(result) == ["done"] * 5, results(result)
    assert results(result)[3]["structuredContent"]["status"] == "posted"
    assert model.wanted == ["the account", "the same account"]
    assert "40.00 USD" in question.message
    # Each step ran once, whatever the number of rounds.
    assert tools(world) == TOOLS_OF_THE_STORY
    assert world.sql("SELECT count(*) FROM posting WHERE kind = 'transfer'") == [(1,)]


def open_customer(world: World) -> Any:
    """A customer who offers both, and whose rounds the test makes itself."""
    return world.customer(can_be_asked=True, sampling_callback=ClientModel({}))


async def test_no_round_runs_a_finished_step_again(world: World) -> None:
    """Not even where it would now give something else; and a replayed round moves no money."""
    async with open_customer(world) as me:
        first = await asked(me, *WHOLE_STORY)
        assert tools(world) == [ACCOUNTS]
        (wanted,) = (first.input_requests or {}).values()
        assert isinstance(wanted, CreateMessageRequest)
        assert wanted_of(wanted.params) == "the account"
        second = await asked(me, *WHOLE_STORY, **answered(first, EVERYDAY))
        assert tools(world) == [ACCOUNTS, PREPARE]
        third = await asked(me, *WHOLE_STORY, **answered(second, EVERYDAY))
        assert tools(world) == [ACCOUNTS, PREPARE, BALANCE]
        assert world.sql("SELECT status FROM transfer") == [("pending",)]
        assert third.request_state is not None
        assert EVERYDAY not in third.request_state
        last = await ended(me, *WHOLE_STORY, **agreed(third))
        assert tools(world) == TOOLS_OF_THE_STORY
        again = await ended(me, *WHOLE_STORY, **agreed(third))
    assert statuses(last) == ["done"] * 5
    assert results(again)[:4] == results(last)[:4]
    before, after = (results(last)[step]["structuredContent"]["reserved"] for step in (2, 4))
    assert (before, after) == (40, 0)
    assert world.sql("SELECT count(*) FROM posting WHERE kind = 'transfer'") == [(1,)]


async def up_to_the_confirmation(me: Customer) -> InputRequiredResult:
    first = await asked(me, *WHOLE_STORY)
    second = await asked(me, *WHOLE_STORY, **answered(first, EVERYDAY))
    return await asked(me, *WHOLE_STORY, **answered(second, EVERYDAY))


async def test_a_state_is_our_own_and_good_for_its_own_requests_only(world: World) -> None:
    async with open_customer(world) as me:
        question = await up_to_the_confirmation(me)
        ran = tools(world)
        answers = agreed(question)
        state = answers["request_state"]
        changed = f"{state[:-9]}{'A' if state[-9] != 'A' else 'B'}{state[-8:]}"
        for bad in (changed, state[:-4], "", json.dumps({"done": [], "arguments": {}})):
            with pytest.raises(MCPError, match="requestState"):
                await multiplex_round(me, *WHOLE_STORY, **{**answers, "request_state": bad})
        others = [
            [*WHOLE_STORY[:4], request(5, BALANCE, {"accountId": SAVINGS})],
            [*WHOLE_STORY, request(6, ACCOUNTS)],
        ]
        for other in others:
            with pytest.raises(MCPError, match="requestState"):
                await multiplex_round(me, *other, **answers)
        with pytest.raises(MCPError, match="requestState"):
            await me.client.session.call_tool(
                CONFIRM,
                {"transferId": "tr_x", "action": "confirm"},
                allow_input_required=True,
                **answers,
            )
        assert tools(world) == ran
        code = code_at_desk(await me.prepare(amount=40))
    assert code not in question.model_dump_json()


async def test_an_answer_without_its_state_or_of_another_kind_counts_for_nothing(
    world: World,
) -> None:
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("?")})]
    async with open_customer(world) as me:
        first = await asked(me, *steps)
        answers = answered(first, SAVINGS)
        # No state: begun from the start. No answer: asked for again.
        await asked(me, *steps, input_responses=answers["input_responses"])
        again = await asked(me, *steps, **{**answers, "input_responses": {}})
        failed = await ended(me, *steps, **agreed(first))
        last = await ended(me, *steps, **answered(again, SAVINGS))
    assert statuses(failed) == ["done", "failed"]
    assert "arguments.accountId" in results(failed)[1]["message"]
    assert statuses(last) == ["done", "done"]
    assert tools(world) == [ACCOUNTS, ACCOUNTS, MULTIPLEX, BALANCE, MULTIPLEX]
