"""The comparison counts what happened, and believes the database alone."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from banking_server.agent import Endpoint, ModelSettings
from banking_server.comparison import (
    WITH_MODEL,
    Case,
    Measured,
    Task,
    Way,
    as_json,
    as_markdown,
    cases,
    compare,
    measure,
    summarize,
)

from ..kit.model import ScriptedModel, call, scripted_model

pytestmark = pytest.mark.anyio

LOCKED, TRANSFER, THRESHOLD = (cases(task)[0] for task in Task)


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


async def test_the_ways_without_a_model_end_as_asked_and_cost_no_tokens() -> None:
    seen: list[Measured] = []
    measured = await compare(None, runs=1, on_run=seen.append)
    assert seen == measured
    assert {(run.task, run.way) for run in measured} == {
        (task, way) for task in Task for way in Way if way not in WITH_MODEL
    }
    for run in measured:
        assert run.correct, run
        assert (run.model_calls, run.prompt_tokens, run.completion_tokens) == (0, 0, 0)


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


@pytest.mark.parametrize("case", [LOCKED, TRANSFER, THRESHOLD], ids=lambda case: case.task.name)
async def test_a_model_that_only_says_that_it_is_done_is_not_believed(case: Case) -> None:
    run, _ = await with_model(case, Way.AGENT, lambda _: "Done: everything is as you asked.")
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


def test_the_variants_of_a_task_differ_in_words_and_amounts() -> None:
    for task in Task:
        variants = cases(task)
        assert len({case.words for case in variants}) == len({case.amount for case in variants})
        assert len(variants) == 5
        for case in variants:
            assert f"{case.amount:g}" in case.words or str(case.amount) in case.words
            assert (case.source in case.words) == (task is not Task.TRANSFER)


def test_a_way_that_is_none_and_a_way_without_its_model_are_said() -> None:
    def command(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "banking_server", "compare", *arguments],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], **settings},
            timeout=120,
        )

    unknown = command("--way", "nix")
    assert unknown.returncode == 2
    assert "nix" in unknown.stderr
    without = command("--way", "agent")
    assert (without.returncode, without.stdout) == (2, "")
    assert "need a model" in without.stderr
    half = command("--way", "agent", BANKING_MODEL_URL="http://127.0.0.1:9/v1")
    assert (half.returncode, half.stderr.count("\n")) == (2, 1)
    assert "BANKING_MODEL_NAME" in half.stderr


def run_of(way: Way, *, correct: bool, seconds: float, calls: int) -> Measured:
    return Measured(Task.LOCKED, way, "words", correct, calls, 10, 1, False, seconds, "completed")


def test_the_summary_gives_counts_and_medians() -> None:
    runs = [
        run_of(Way.AGENT, correct=True, seconds=1.0, calls=2),
        run_of(Way.AGENT, correct=False, seconds=9.0, calls=4),
        run_of(Way.AGENT, correct=True, seconds=2.0, calls=3),
        run_of(Way.NEXT_TOOL, correct=True, seconds=0.5, calls=0),
    ]
    agent, direct = summarize(runs)
    assert (agent.way, agent.runs, agent.correct, agent.seconds) == (Way.AGENT, 3, 2, 2.0)
    assert agent.model_calls == 3
    assert (direct.runs, direct.correct) == (1, 1)
    table = as_markdown(runs)
    assert "| locked account to recorded handoff | agent | 2 of 3 | 3 | 10 | 1 | 2 |" in table
    assert "bar [100, 67]" in table
    report = json.loads(as_json(runs, None))
    assert len(report["runs"]) == 4
    assert report["model"] is None
