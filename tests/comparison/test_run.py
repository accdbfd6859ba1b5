"""A run counts what happened, and is judged by the database alone."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from banking_server.agent import ModelSettings
from banking_server.bank.rules import is_branch_open
from banking_server.comparison.distractor import distracting_server
from banking_server.comparison.failures import Failure
from banking_server.comparison.model_calls import CountingEndpoint
from banking_server.comparison.record import Measured
from banking_server.comparison.run import IN_A_ROW, bank_server, make, measure, plan, seconds_left
from banking_server.comparison.tasks import CHAINS, QUESTIONS, Case, Task, cases
from banking_server.comparison.ways import WITH_AGENT, Way, left_out
from banking_server.server.settings import load_settings

from ..kit.model import Raw, ScriptedModel, call, error, scripted_model

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("in_this_process")]

SENT = "Your message has been sent to the budget app's support team."
LOCKED, TRANSFER = cases(Task.LOCKED)[0], cases(Task.TRANSFER)[0]


SCRIPTED: dict[str, Any] = {"name": "scripted", "tools": "prompt", "format": "none", "retries": 0}


async def with_model(
    case: Case, way: Way, script: Callable[[dict[str, Any]], Any]
) -> tuple[Measured, ScriptedModel]:
    with scripted_model(script) as model:
        settings = ModelSettings(url=model.url, **SCRIPTED)
        async with CountingEndpoint(settings) as endpoint:
            return await measure(case, way, endpoint), model


def told(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


def prepare(case: Case, **other: Any) -> str:
    asked = {"fromAccountId": case.source, "toAccountId": case.target, "amount": case.amount}
    return call("prepare_money_transfer", **{**asked, **other})


def in_order(*replies: str) -> Callable[[dict[str, Any]], str]:
    """Reply with these, one after the other, and then with the last again."""
    return lambda request: replies[min(len(request["messages"]) // 2 - 1, len(replies) - 1)]


async def test_the_agent_needs_no_model_for_the_step_that_a_directive_names() -> None:
    script = in_order(prepare(LOCKED), "An agent will call you back.")
    run, model = await with_model(LOCKED, Way.AGENT, script)
    assert (run.right, run.wrong, run.refused, run.failure) == (True, (), (), None)
    assert run.answer == "An agent will call you back."
    assert (run.calls, len(run.model_calls), len(model.requests)) == (3, 2, 2)
    assert (run.prompt_tokens, run.completion_tokens) == (200, 20)
    # The second prompt begins as the first did.
    first, second = run.model_calls
    assert (first.cached_tokens, first.cached_by_endpoint) == (0, False)
    assert 80 < second.cached_tokens < 100
    assert "contact_support" in model.told
    assert [entry["entry"] for entry in run.transcript].count("Called") == 2
    assert Measured.model_validate_json(run.model_dump_json(exclude_defaults=True)) == run


async def test_without_directives_the_model_reads_the_words_for_models() -> None:
    def script(request: dict[str, Any]) -> str:
        step = re.search(r"exactly these arguments: (\{.*?\})", told(request).replace('\\"', '"'))
        if step:
            return call("request_agent_handoff", **json.loads(step[1]))
        first = len(request["messages"]) == 2
        return prepare(LOCKED) if first else "An agent will call you back."

    run, model = await with_model(LOCKED, Way.TEXT_ONLY, script)
    assert run.right, run
    assert len(run.model_calls) == 3
    assert "currently locked" in model.told
    assert re.search(r"nextTool\W+tool", model.told) is None


async def test_with_the_users_text_alone_nothing_names_the_next_step() -> None:
    run, model = await with_model(
        LOCKED, Way.USER_TEXT_ONLY, in_order(prepare(LOCKED), "It is locked: ask an agent.")
    )
    assert (run.right, run.wrong, run.failure) == (False, (), Failure.STOPPED_EARLY)
    last = model.last_message()
    assert "You'll need to speak with a customer service agent" in last
    assert "request_agent_handoff" not in last


async def test_a_model_that_only_says_that_it_is_done_is_not_believed() -> None:
    run, _ = await with_model(LOCKED, Way.AGENT, lambda _: "Done: everything is as you asked.")
    assert (run.ended, run.right, run.failure) == ("answered", False, Failure.STOPPED_EARLY)


@pytest.mark.parametrize("task", QUESTIONS)
async def test_what_the_bank_says_is_the_right_answer_to_a_question(task: Task) -> None:
    look = {
        Task.BALANCE: call("get_account_balance", accountId="acc_savings_001"),
        Task.SPENT: call("get_account_statement", accountId="acc_everyday_001", month="last"),
    }[task]

    def script(request: dict[str, Any]) -> str:
        # The first line of the result says it all; the others are entries.
        first = len(request["messages"]) == 2
        return look if first else told(request).splitlines()[1]

    run, _ = await with_model(cases(task)[0], Way.AGENT, script)
    assert run.right, run.answer


async def test_the_customer_refuses_another_amount_and_the_distractor() -> None:
    script = in_order(
        prepare(TRANSFER, amount=TRANSFER.amount + 1),
        call("contact_support", message="It does not work."),
        "I could not do it.",
    )
    run, _ = await with_model(TRANSFER, Way.AGENT, script)
    assert (run.right, run.wrong, run.failure) == (False, (), Failure.WRONG_TOOL)
    assert run.tried == run.refused[:1]
    assert [words.split()[0] for words in run.refused] == [
        "prepare_money_transfer",
        "contact_support",
    ]


async def test_inferred_arguments_are_found_in_the_customers_words() -> None:
    def script(request: dict[str, Any]) -> str:
        words = told(request)
        wanted = words.rsplit("What is wanted:", 1)[1]
        if "transferId" in wanted:
            return re.findall(r"tr_[0-9a-f]+", words)[-1]
        if "the amount" in wanted:
            return "25.50"
        return TRANSFER.source if "take the money from" in wanted else TRANSFER.target

    run, model = await with_model(TRANSFER, Way.INFERRED, script)
    assert run.right, run
    assert TRANSFER.words in model.told
    assert (len(run.model_calls), run.calls, run.answer) == (4, 4, None)


async def test_what_the_words_leave_open_the_bank_asks_for() -> None:
    rent = cases(Task.PAY)[0]

    def script(request: dict[str, Any]) -> str:
        words = told(request)
        wanted = words.rsplit("What is wanted:", 1)[1]
        if "transferId" in wanted:
            return re.findall(r"tr_[0-9a-f]+", words)[-1]
        return "3500" if "the amount" in wanted else rent.target

    run, model = await with_model(rent, Way.INFERRED, script)
    assert run.right, run
    assert "take the money from" not in model.told


@pytest.mark.parametrize("task", [Task.TRANSFER, Task.LOCKED_BY_NAME])
async def test_a_plan_finds_accounts_by_their_names(task: Task) -> None:
    run = await measure(cases(task)[0], Way.REFERENCED, None)
    assert (run.right, run.calls, run.model_calls) == (True, 4, ())


def test_the_branch_is_closed_at_every_hour(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (bank_server(tmp_path / "bank.db").env or {}).items():
        monkeypatch.setenv(name, value)
    rules = load_settings().rules()
    monday = datetime(2026, 11, 23, tzinfo=UTC)
    hours = [monday + timedelta(minutes=30 * number + 1) for number in range(48)]
    assert not any(is_branch_open(rules, hour) for hour in hours)


async def test_the_distractor_does_nothing_of_use() -> None:
    async with Client(distracting_server()) as client:
        result = await client.call_tool("contact_support", {"message": "It is locked."})
    assert result.content == [TextContent(type="text", text=SENT)]


async def test_an_inferred_id_that_there_is_not_is_why_it_failed() -> None:
    run, _ = await with_model(TRANSFER, Way.INFERRED, lambda _: "acc_nowhere_001")
    assert (run.right, run.failure) == (False, Failure.INVENTED_ID)


@pytest.mark.parametrize("way", [Way.AGENT, Way.INFERRED])
async def test_a_failure_of_the_endpoint_is_none_of_the_way(way: Way) -> None:
    run, _ = await with_model(TRANSFER, way, lambda _: error(500))
    assert (run.right, run.failure) == (False, None)
    assert run.unavailable is not None
    assert "HTTP 500" in run.unavailable


async def test_a_run_that_breaks_off_is_judged_all_the_same() -> None:
    # Nobody has as much, so that no transfer comes that could be confirmed.
    case = Case(Task.PAY, 1, "", 10**10, "acc_savings_001", "acc_payee_001", True)
    run = await measure(case, Way.NEXT_TOOL, None)
    assert (run.right, run.ended) == (False, "failed: 'transferId'")


def body(cached: object) -> Raw:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    message = {"role": "assistant", "content": "Done."}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Raw(json.dumps({"choices": choices, "usage": usage}))


@pytest.mark.parametrize(
    ("cached", "said"), [(60, True), (0, True), (101, False), (-1, False), (None, False)]
)
async def test_what_was_cached_is_the_endpoints_to_say(cached: object, said: bool) -> None:
    with scripted_model(lambda _: body(cached)) as model:
        async with CountingEndpoint(ModelSettings(url=model.url, name="scripted")) as endpoint:
            await endpoint.complete([{"role": "user", "content": "Hello"}])
            (counted,) = endpoint.calls
    assert counted.cached_by_endpoint == said
    assert counted.cached_tokens == (cached if said else 0)


# --- all runs


def test_a_way_that_makes_no_sense_for_a_task_is_left_out_and_named() -> None:
    planned = plan([Task.TRANSFER, Task.BALANCE], list(Way), 1)
    assert {(case.task, way) for case, way in planned} == {
        *((Task.TRANSFER, way) for way in Way if way is not Way.NEXT_TOOL),
        (Task.BALANCE, Way.AGENT),
    }
    no_directive, question = left_out([Task.TRANSFER, Task.BALANCE], list(Way))
    assert no_directive.startswith(f"{Way.NEXT_TOOL} ({Task.TRANSFER}): the bank names no ")
    assert question.count(Task.BALANCE) == len(Way) - 1


def test_runs_are_taken_in_rounds_and_agents_one_after_the_other() -> None:
    planned = plan([Task.LOCKED, Task.THRESHOLD], list(Way), 2)
    assert [case.number for case, _ in planned] == [1] * 12 + [2] * 12
    first = [way in WITH_AGENT for _, way in planned[:12]]
    assert first == sorted(first)


def test_in_each_round_another_agent_finds_the_cache_without_its_prompt() -> None:
    rounds = [
        [run for run in plan(CHAINS, list(Way), 9) if run[0].number == n] for n in range(1, 10)
    ]
    begins = [next((case.task, way) for case, way in runs if way in WITH_AGENT) for runs in rounds]
    assert set(begins) == {(task, way) for task in CHAINS for way in WITH_AGENT}


async def test_no_more_runs_are_made_of_an_endpoint_that_is_gone() -> None:
    made: list[Measured] = []
    runs = [(TRANSFER, Way.AGENT)] * (IN_A_ROW + 1)
    with scripted_model(lambda _: error(500)) as model:
        settings = ModelSettings(url=model.url, **SCRIPTED)
        async with CountingEndpoint(settings) as endpoint:
            await make(runs, endpoint, made.append)
    assert len(made) == IN_A_ROW
    assert seconds_left(made, runs) > 0
    assert seconds_left([], runs) == 0
