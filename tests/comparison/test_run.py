"""A run counts what happened, and is judged by the database alone."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from banking_server.agent import Endpoint, ModelSettings
from banking_server.comparison.run import Measured, measure
from banking_server.comparison.tasks import Case, Task, cases
from banking_server.comparison.ways import Way

from ..kit.model import ScriptedModel, call, scripted_model

pytestmark = pytest.mark.anyio

LOCKED, TRANSFER = cases(Task.LOCKED)[0], cases(Task.TRANSFER)[0]


async def with_model(
    case: Case, way: Way, script: Callable[[dict[str, Any]], Any]
) -> tuple[Measured, ScriptedModel]:
    with scripted_model(script) as model:
        settings = ModelSettings(url=model.url, name="scripted", tools="prompt")
        async with Endpoint(settings) as endpoint:
            return await measure(case, way, endpoint), model


def told(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


def prepare(case: Case) -> str:
    return call(
        "prepare_money_transfer",
        fromAccountId=case.source,
        toAccountId=case.target,
        amount=case.amount,
    )


async def test_the_agent_needs_no_model_for_the_step_that_a_directive_names() -> None:
    def script(request: dict[str, Any]) -> str:
        return prepare(LOCKED) if len(request["messages"]) == 2 else "An agent will call you back."

    run, model = await with_model(LOCKED, Way.AGENT, script)
    assert run.correct
    assert run.model_calls == len(model.requests) == 2
    assert (run.prompt_tokens, run.completion_tokens) == (200, 20)


async def test_without_directives_the_model_has_to_find_the_step_in_the_text() -> None:
    def script(request: dict[str, Any]) -> str:
        words = told(request)
        if len(request["messages"]) == 2:
            return prepare(LOCKED)
        step = re.search(r"exactly these arguments: (\{.*?\})", words.replace('\\"', '"'))
        if step:
            return call("request_agent_handoff", **json.loads(step[1]))
        return "An agent will call you back."

    run, model = await with_model(LOCKED, Way.TEXT_ONLY, script)
    assert run.correct
    assert run.model_calls == 3
    assert re.search(r"nextTool\W+tool", model.told) is None


async def test_a_model_that_only_says_that_it_is_done_is_not_believed() -> None:
    run, _ = await with_model(LOCKED, Way.AGENT, lambda _: "Done: everything is as you asked.")
    assert run.ended == "answered"
    assert not run.correct


async def test_a_transfer_of_another_amount_is_not_what_was_asked() -> None:
    def script(request: dict[str, Any]) -> str:
        words = told(request)
        transfer = re.search(r"tr_[0-9a-f]+", words)
        if len(request["messages"]) == 2:
            return call(
                "prepare_money_transfer",
                fromAccountId=TRANSFER.source,
                toAccountId=TRANSFER.target,
                amount=TRANSFER.amount + amiss,
            )
        if len(request["messages"]) == 4 and transfer:
            return call(
                "confirm_or_cancel_money_transfer", transferId=transfer[0], action="confirm"
            )
        return "Done."

    amiss = 0.0
    run, _ = await with_model(TRANSFER, Way.AGENT, script)
    assert run.correct
    amiss = 1.0
    run, _ = await with_model(TRANSFER, Way.AGENT, script)
    assert not run.correct


async def test_inferred_arguments_are_counted_through_the_clients_own_model() -> None:
    def script(request: dict[str, Any]) -> str:
        words = told(request)
        wanted = words.rsplit("What is wanted:", 1)[1]
        if "transferId" in wanted:
            return re.findall(r"tr_[0-9a-f]+", words)[-1]
        return TRANSFER.source if "High Yield Savings" in wanted else TRANSFER.target

    run, model = await with_model(TRANSFER, Way.INFERRED, script)
    assert run.correct, run
    assert run.model_calls == len(model.requests) == 3
