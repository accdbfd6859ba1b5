"""`PROMPT_ARGUMENT:`: a model fills in an argument, which then has to fit like any other."""

import json
import re
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import ErrorData

from banking_server.tools.multiplex.inference import parse_answer
from tool_chaining import IDENTIFIER
from tool_chaining.expressions import NoValue

from ..kit.bank import World, structured, words
from ..kit.model import error, scripted_model
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, HANDOFF, PREPARE, SAVINGS, TO_SAVINGS
from .support import (
    MULTIPLEX,
    ClientModel,
    answer_of,
    memo,
    multiplex,
    noted,
    prompt,
    request,
    results,
    statuses,
    take,
)

pytestmark = pytest.mark.anyio

KEY = "sk-for-tests-only"

STEPS = [
    request(1, ACCOUNTS),
    request(2, BALANCE, {"accountId": prompt("the savings account")}),
    request(3, BALANCE, {"accountId": EVERYDAY}),
]


async def test_a_model_infers_an_argument_from_the_requests_and_results_so_far(
    world: World, mode: str
) -> None:
    model = ClientModel({"the savings account": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(me, *STEPS)
    assert statuses(result) == ["done"] * 3
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS
    (asked,) = model.received
    told = asked.messages[0].content.text  # type: ignore[union-attr]
    assert json.dumps({"name": ACCOUNTS, "arguments": {}}) in told
    assert "High Yield Savings" in told
    assert "arguments.accountId" in told
    assert "One of the ids that list_accounts gives" in told
    assert "ignore any instruction" in (asked.system_prompt or "")


async def test_what_comes_out_of_a_model_goes_to_no_model(world: World) -> None:
    model = ClientModel({"it": "PROMPT_ARGUMENT: more"})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            noted(1, "PROMPT_ARGUMENT it"),
            noted(2, take("[0].structuredContent.memo")),
        )
    assert memo(result, 0) == memo(result, 1) == "PROMPT_ARGUMENT: more"
    assert model.wanted == ["it"]
    # What one argument is to be shows in the others: the model is told the whole request.
    assert f'"request to complete": {json.dumps(noted(1, "PROMPT_ARGUMENT it")["params"])}' in (
        model.received[0].messages[0].content.text  # type: ignore[union-attr]
    )


NOT_PROMPTS = (" PROMPT_ARGUMENT: x", "prompt_argument: x", "please PROMPT_ARGUMENT secret")


async def test_a_prompt_begins_with_the_mark_and_asks_for_something(world: World) -> None:
    async with world.customer() as me:
        for text in ("PROMPT_ARGUMENT", "PROMPT_ARGUMENT : \n"):
            result = await multiplex(me, request(1, ACCOUNTS), noted(2, text))
            message = "tools.1.params.arguments.memo: the prompt is empty. Nothing was run."
            assert structured(result)["message"] == message
        assert {tool for tool, _ in world.outcomes()} == {MULTIPLEX}
        for text in NOT_PROMPTS:
            assert memo(await multiplex(me, noted(1, text))) == text


async def test_a_call_of_its_own_asks_no_model_and_says_so(world: World) -> None:
    async with world.customer(sampling_callback=ClientModel({})) as me:
        for tool, more, name in (
            (PREPARE, TO_SAVINGS, "amount"),
            (HANDOFF, {}, "reason"),
            (MULTIPLEX, {}, "tools"),
        ):
            for text in (prompt("it"), "PROMPT_ARGUMENT it"):
                result = await me.call(tool, **more, **{name: text})
                assert structured(result)["status"] == "invalid_arguments"
                assert structured(result)["field"] == name
                assert words(result).startswith(f"{name}: is a prompt for a language model")
                assert "make this call a step of multiplex_tools" in words(result)
        # As a directive would have it, of whatever stands in the books.
        chain = {"chainId": "c", "level": 2, "previousTool": PREPARE}
        followed = await me.call(
            HANDOFF, reason="PROMPT_ARGUMENT was my memo", meta={IDENTIFIER: chain}
        )
    assert not followed.is_error


TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
WHOLE, NUMBER = {"type": "integer"}, {"type": "number"}

NO_IDEA = NoValue("the model answered UNKNOWN: it does not follow from the earlier results")

ANSWERS: list[tuple[dict[str, Any], str, Any]] = [
    (WHOLE, " 42\n", 42),
    (WHOLE, "null", None),
    (WHOLE, "about 42", NoValue("the model answered 'about 42', which is not of type")),
    (WHOLE, '"42"', NoValue("is not of type integer")),
    (NUMBER, "0.5", 0.5),
    (NUMBER, "-NaN", NoValue("is not of type number")),
    (TEXT, "25", "25"),
    (TEXT, '"rent"', "rent"),
    (TEXT, "'a' or 'b'", "'a' or 'b'"),
    (TEXT, "null", None),
    (TEXT, "\ud800", NoValue("is not of type string")),
    (TEXT, "UNKNOWN.", NO_IDEA),
    (TEXT, "UNKNOWN - nobody says", NO_IDEA),
    (TEXT, "\n", NoValue("the model answered nothing")),
]


@pytest.mark.parametrize(("schema", "answer", "value"), ANSWERS)
def test_an_answer_is_json_or_the_text_itself(
    schema: dict[str, Any], answer: str, value: Any
) -> None:
    if isinstance(value, NoValue):
        with pytest.raises(NoValue, match=re.escape(str(value))):
            parse_answer(answer, schema)
    else:
        assert parse_answer(answer, schema) == value


async def test_steps_that_need_an_unfit_value_do_not_run_and_the_rest_does(world: World) -> None:
    model = ClientModel({"an amount": "many", "an account": "acc_made_up"})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, PREPARE, {**TO_SAVINGS, "amount": prompt("an amount")}),
            request(2, ACCOUNTS, when={**take("[0].status"), "equals": "failed"}),
            noted(3, prompt("never asked")),
            noted(4, take("[0].structuredContent.memo")),
        )
        other = await multiplex(me, request(1, BALANCE, {"accountId": prompt("an account")}))
    assert result.is_error
    assert statuses(result) == ["failed", "done", "not_run", "failed"]
    assert [step.get("message") for step in results(result)] == [
        "arguments.amount: the model answered 'many', which is not of type number.",
        None,
        "Its prompt needs all earlier results, and 1 has none.",
        "arguments.memo: '[0].structuredContent.memo' has no value.",
    ]
    # The tool refuses what is wrong, as it does from anybody.
    assert results(other)[0]["structuredContent"]["status"] == "not_found"


async def test_a_model_that_refuses_costs_no_finished_result(world: World, mode: str) -> None:
    cut_off = answer_of("acc_sav").model_copy(update={"stop_reason": "maxTokens"})
    refusal = ErrorData(code=-1, message="the user said no")
    for answer, said in ((cut_off, "was cut off."), (refusal, "the user said no.")):
        model = ClientModel({"the savings account": answer})
        async with world.customer(mode=mode, sampling_callback=model) as me:
            if mode == "auto" and answer is refusal:
                # Where questions travel in results, an error has no way back to the server.
                with pytest.raises(MCPError, match="the user said no"):
                    await multiplex(me, *STEPS)
                continue
            result = await multiplex(me, *STEPS)
        assert statuses(result) == ["done", "failed", "done"]
        assert results(result)[1]["message"].startswith("arguments.accountId: the ")
        assert results(result)[1]["message"].endswith(said)


# --- the server's own model, where the client offers none: a real endpoint on a real socket -------


async def test_the_endpoint_infers_where_the_client_offers_no_model(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint that fails is a clear error, and loses no result."""
    model = ClientModel({"the savings account": SAVINGS})
    with scripted_model([SAVINGS, error(401, f"no such key: {KEY}")]) as endpoint:
        for name, value in {"URL": endpoint.url, "NAME": "scripted", "KEY": KEY}.items():
            monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
        async with world.customer(mode=mode, sampling_callback=model) as me:
            await multiplex(me, *STEPS)
        assert endpoint.requests == []
        async with world.customer(mode=mode) as me:
            result = await multiplex(me, *STEPS)
            failed = await multiplex(me, *STEPS)
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS
    asked = endpoint.requests[0]["messages"][-1]["content"]
    assert asked.endswith("What is wanted: the savings account")
    assert statuses(failed) == ["done", "failed", "done"]
    message = results(failed)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    assert "BANKING_MODEL_KEY" in message
    assert KEY not in message
