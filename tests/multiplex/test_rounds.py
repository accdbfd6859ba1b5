"""2026-07-28: questions travel in results, and what is finished is not run again."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)

from ..kit.bank import Customer, World, code_of, structured, words
from ..kit.words import ACCOUNTS, BALANCE, CONFIRM, EVERYDAY, PREPARE, SAVINGS, TO_SAVINGS
from .support import (
    FORM,
    MULTIPLEX,
    ClientModel,
    multiplex,
    multiplex_round,
    prompt,
    ref,
    request,
    results,
    statuses,
    wanted_of,
)

pytestmark = pytest.mark.anyio

WHOLE_STORY = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {**TO_SAVINGS, "fromAccountId": prompt("the account"), "amount": 40}),
    request(3, BALANCE, {"accountId": prompt("the same account")}),
    request(
        4, CONFIRM, {"transferId": ref("#/1/structuredContent/transferId"), "action": "confirm"}
    ),
    request(5, BALANCE, {"accountId": EVERYDAY}),
]
TOOLS_OF_THE_STORY = [ACCOUNTS, PREPARE, BALANCE, CONFIRM, BALANCE, MULTIPLEX]
ANSWERS = {"the account": EVERYDAY, "the same account": EVERYDAY}
YES = {"agreed": True}


def answered(result: InputRequiredResult, text: str) -> dict[str, Any]:
    """Answer every question of the model's with `text`."""
    assert result.input_requests
    responses = {}
    for key, asked in result.input_requests.items():
        assert isinstance(asked, CreateMessageRequest)
        responses[key] = CreateMessageResult(
            role="assistant", content=TextContent(type="text", text=text), model="by hand"
        )
    return {"input_responses": responses, "request_state": result.request_state}


def agreed(result: InputRequiredResult) -> dict[str, Any]:
    assert result.input_requests
    (key,) = result.input_requests
    assert isinstance(result.input_requests[key], ElicitRequest)
    answer = ElicitResult(action="accept", content=YES)
    return {"input_responses": {key: answer}, "request_state": result.request_state}


def tools(world: World) -> list[str]:
    return [tool for tool, _ in world.outcomes()]


async def test_two_inferences_and_a_confirmation_in_one_sequence(world: World, mode: str) -> None:
    model = ClientModel(ANSWERS)
    async with world.customer(mode=mode, answers=[YES], sampling_callback=model) as me:
        result = await multiplex(me, *WHOLE_STORY)
        (question,) = me.asked
    assert statuses(result) == ["done"] * 5, results(result)
    assert results(result)[3]["structuredContent"]["status"] == "posted"
    assert model.wanted == ["the account", "the same account"]
    assert "40.00 USD" in question.message
    # Each step ran once, whatever the number of rounds.
    assert tools(world) == TOOLS_OF_THE_STORY
    assert world.sql("SELECT count(*) FROM transfer") == [(1,)]
    assert world.sql("SELECT count(*) FROM posting WHERE kind = 'transfer'") == [(1,)]


def open_customer(world: World, **more: Any) -> Any:
    """A customer who offers both, and whose rounds the test makes itself."""
    return world.customer(can_be_asked=True, sampling_callback=ClientModel({}), **more)


async def test_no_round_runs_a_finished_step_again(world: World) -> None:
    async with open_customer(world) as me:
        first = await multiplex_round(me, *WHOLE_STORY)
        assert isinstance(first, InputRequiredResult)
        assert tools(world) == [ACCOUNTS]
        (asked,) = (first.input_requests or {}).values()
        assert isinstance(asked, CreateMessageRequest)
        assert wanted_of(asked.params) == "the account"

        second = await multiplex_round(me, *WHOLE_STORY, **answered(first, EVERYDAY))
        assert isinstance(second, InputRequiredResult)
        assert tools(world) == [ACCOUNTS, PREPARE]

        third = await multiplex_round(me, *WHOLE_STORY, **answered(second, EVERYDAY))
        assert isinstance(third, InputRequiredResult)
        assert tools(world) == [ACCOUNTS, PREPARE, BALANCE]
        ((status,),) = world.sql("SELECT status FROM transfer")
        assert status == "pending"

        last = await multiplex_round(me, *WHOLE_STORY, **agreed(third))
        assert isinstance(last, CallToolResult)
    assert statuses(last) == ["done"] * 5
    assert tools(world) == TOOLS_OF_THE_STORY


async def test_a_finished_result_is_kept_as_it_was(world: World) -> None:
    """Steps are not run again even where they would now give something else."""
    steps = [request(1, BALANCE, {"accountId": EVERYDAY}),
             request(2, BALANCE, {"accountId": prompt("?")})]  # fmt: skip
    async with open_customer(world) as me:
        first = await multiplex_round(me, *steps)
        assert isinstance(first, InputRequiredResult)
        await me.prepare(amount=100)
        last = await multiplex_round(me, *steps, **answered(first, EVERYDAY))
        assert isinstance(last, CallToolResult)
    before, after = (step["structuredContent"]["reserved"] for step in results(last))
    assert (before, after) == (0, 100)


async def test_all_arguments_of_a_step_are_asked_for_in_one_round(world: World) -> None:
    step = request(1, PREPARE, {"fromAccountId": prompt("from"), "toAccountId": prompt("to"),
                                "amount": prompt("how much")})  # fmt: skip
    async with open_customer(world) as me:
        first = await multiplex_round(me, step)
        assert isinstance(first, InputRequiredResult)
        assert first.input_requests is not None
        asked = {wanted_of(one.params) for one in first.input_requests.values()}  # type: ignore[arg-type]
    assert asked == {"from", "to", "how much"}


@pytest.mark.usefixtures("with_form")
async def test_ten_inferred_steps_fit_the_rounds_that_a_client_allows_by_default(
    world: World,
) -> None:
    model = ClientModel(lambda wanted: wanted)
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me, *(request(n, FORM, {"note": prompt(f"number {n}")}) for n in range(10))
        )
    assert statuses(result) == ["done"] * 10
    assert tools(world) == [FORM] * 10 + [MULTIPLEX]
    assert model.wanted == [f"number {n}" for n in range(10)]


async def test_two_confirmations_are_asked_for_one_by_one(world: World, mode: str) -> None:
    """The answer to one question is never taken for the answer to the next."""
    async with world.customer(mode=mode, answers=[YES, {"agreed": False}]) as me:
        result = await multiplex(
            me,
            request(1, PREPARE, {**TO_SAVINGS, "amount": 1}),
            request(2, PREPARE, {**TO_SAVINGS, "amount": 2}),
            *(
                request(number + 3, CONFIRM, {
                    "transferId": ref(f"#/{number}/structuredContent/transferId"),
                    "action": "confirm",
                })
                for number in (0, 1)
            ),
        )  # fmt: skip
        assert [("1.00" in one.message, "2.00" in one.message) for one in me.asked] == [
            (True, False), (False, True)
        ]  # fmt: skip
    posted, declined = (step["structuredContent"]["status"] for step in results(result)[2:])
    assert (posted, declined) == ("posted", "declined")
    assert world.sql("SELECT status FROM transfer ORDER BY amount_minor") == [
        ("posted",), ("pending",)
    ]  # fmt: skip


async def test_pickers_inside_a_step_are_answered_in_their_own_rounds(
    world: World, mode: str
) -> None:
    answers = [{"picked": EVERYDAY}, {"picked": SAVINGS}]
    async with world.customer(mode=mode, answers=answers) as me:
        result = await multiplex(me, request(1, ACCOUNTS), request(2, PREPARE, {"amount": 5}))
    assert statuses(result) == ["done", "done"]
    made = results(result)[1]["structuredContent"]
    assert (made["fromAccountId"], made["toAccountId"]) == (EVERYDAY, SAVINGS)
    assert tools(world) == [ACCOUNTS, PREPARE, MULTIPLEX]


async def test_a_customer_who_says_no_is_heard(world: World, mode: str) -> None:
    model = ClientModel(ANSWERS)
    async with world.customer(mode=mode, answers=["decline"], sampling_callback=model) as me:
        result = await multiplex(me, *WHOLE_STORY)
    assert results(result)[3]["structuredContent"]["status"] == "declined"
    assert world.sql("SELECT status FROM transfer") == [("pending",)]


async def up_to_the_confirmation(me: Customer) -> tuple[InputRequiredResult, InputRequiredResult]:
    first = await multiplex_round(me, *WHOLE_STORY)
    assert isinstance(first, InputRequiredResult)
    second = await multiplex_round(me, *WHOLE_STORY, **answered(first, EVERYDAY))
    assert isinstance(second, InputRequiredResult)
    third = await multiplex_round(me, *WHOLE_STORY, **answered(second, EVERYDAY))
    assert isinstance(third, InputRequiredResult)
    return first, third


async def test_a_replayed_round_moves_no_money_twice(world: World) -> None:
    async with open_customer(world) as me:
        _, asked = await up_to_the_confirmation(me)
        receipts = []
        for _ in range(3):
            last = await multiplex_round(me, *WHOLE_STORY, **agreed(asked))
            assert isinstance(last, CallToolResult)
            receipts.append(results(last)[3]["structuredContent"])
    assert receipts[0] == receipts[1] == receipts[2]
    assert world.sql("SELECT count(*) FROM posting WHERE kind = 'transfer'") == [(1,)]
    assert tools(world).count(PREPARE) == 1
    assert tools(world).count(CONFIRM) == 3


async def test_a_no_in_a_step_cannot_be_turned_into_a_yes(world: World) -> None:
    async with open_customer(world) as me:
        _, asked = await up_to_the_confirmation(me)
        yes = agreed(asked)
        no = {key: ElicitResult(action="decline") for key in yes["input_responses"]}
        heard = await multiplex_round(me, *WHOLE_STORY, **{**yes, "input_responses": no})
        assert isinstance(heard, CallToolResult)
        assert results(heard)[3]["structuredContent"]["status"] == "declined"
        again = await multiplex_round(me, *WHOLE_STORY, **yes)
        assert isinstance(again, InputRequiredResult)
    assert world.sql("SELECT status, declines FROM transfer") == [("pending", 1)]


async def test_a_tampered_state_is_refused_and_runs_nothing(world: World) -> None:
    async with open_customer(world) as me:
        _, asked = await up_to_the_confirmation(me)
        ran = tools(world)
        answers = agreed(asked)
        state = answers["request_state"]
        changed = f"{state[:-9]}{'A' if state[-9] != 'A' else 'B'}{state[-8:]}"
        by_hand = json.dumps({"done": [], "arguments": {}})
        for bad in (changed, state[:-4], "", "v1.", "{}", by_hand):
            with pytest.raises(MCPError, match="requestState"):
                await multiplex_round(me, *WHOLE_STORY, **{**answers, "request_state": bad})
        assert tools(world) == ran


async def test_a_state_is_good_for_its_own_requests_only(world: World) -> None:
    async with open_customer(world) as me:
        _, asked = await up_to_the_confirmation(me)
        ran = tools(world)
        others = [
            [*WHOLE_STORY[:4], request(5, BALANCE, {"accountId": SAVINGS})],
            [*WHOLE_STORY, request(6, ACCOUNTS)],
            WHOLE_STORY[:4],
        ]
        for other in others:
            with pytest.raises(MCPError, match="requestState"):
                await multiplex_round(me, *other, **agreed(asked))
        with pytest.raises(MCPError, match="requestState"):
            await me.client.session.call_tool(
                CONFIRM,
                {"transferId": "tr_x", "action": "confirm"},
                allow_input_required=True,
                **agreed(asked),
            )
    assert tools(world) == ran


async def test_the_state_shows_nothing_to_the_client(world: World) -> None:
    async with open_customer(world) as me:
        _, asked = await up_to_the_confirmation(me)
        code = code_of(await me.prepare(amount=40))
    assert asked.request_state is not None
    assert code not in asked.request_state
    assert EVERYDAY not in asked.request_state
    assert code not in asked.model_dump_json()


async def test_answers_without_a_state_begin_from_the_start(world: World) -> None:
    """Nothing is run on the strength of an answer to a question that was not put."""
    async with open_customer(world) as me:
        first = await multiplex_round(me, *WHOLE_STORY)
        assert isinstance(first, InputRequiredResult)
        answers = answered(first, EVERYDAY)
        again = await multiplex_round(me, *WHOLE_STORY, input_responses=answers["input_responses"])
        assert isinstance(again, InputRequiredResult)
    assert tools(world) == [ACCOUNTS, ACCOUNTS]
    assert world.sql("SELECT * FROM transfer") == []


async def test_an_answer_of_the_wrong_kind_fails_its_step(world: World) -> None:
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("?")})]
    async with open_customer(world) as me:
        first = await multiplex_round(me, *steps)
        assert isinstance(first, InputRequiredResult)
        agreement = ElicitResult(action="accept", content=YES)
        last = await multiplex_round(
            me,
            *steps,
            input_responses=dict.fromkeys(first.input_requests or (), agreement),
            request_state=first.request_state,
        )
        assert isinstance(last, CallToolResult)
    assert statuses(last) == ["done", "failed"]
    assert "arguments.accountId" in results(last)[1]["message"]


async def test_an_answer_that_is_left_out_is_asked_for_again(world: World) -> None:
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("?")})]
    async with open_customer(world) as me:
        first = await multiplex_round(me, *steps)
        assert isinstance(first, InputRequiredResult)
        again = await multiplex_round(
            me, *steps, input_responses={}, request_state=first.request_state
        )
        assert isinstance(again, InputRequiredResult)
        last = await multiplex_round(me, *steps, **answered(again, SAVINGS))
        assert isinstance(last, CallToolResult)
    assert statuses(last) == ["done", "done"]
    assert tools(world) == [ACCOUNTS, BALANCE, MULTIPLEX]


async def test_confirming_by_code_where_nobody_can_be_asked(world: World, mode: str) -> None:
    """One call prepares, the customer reads the code, and another call confirms with it."""
    async with world.customer(mode=mode) as me:
        prepared = await multiplex(me, request(1, PREPARE, {**TO_SAVINGS, "amount": 3}))
        confirm = {
            "transferId": results(prepared)[0]["structuredContent"]["transferId"],
            "action": "confirm",
        }
        without = await multiplex(me, request(1, CONFIRM, confirm))
        code = code_of(prepared)
        confirmed = await multiplex(me, request(1, CONFIRM, {**confirm, "confirmationCode": code}))
    assert results(without)[0]["structuredContent"]["status"] == "confirmation_needed"
    assert results(confirmed)[0]["structuredContent"]["status"] == "posted"
    assert structured(confirmed)["status"] == "completed"
    assert "was made at" in words(confirmed)
