"""`PROMPT_ARGUMENT:`: a model fills in an argument, which then has to fit like any other."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import CreateMessageResult, ErrorData, ImageContent, TextContent

from banking_server.chaining import IDENTIFIER
from banking_server.tools.multiplex.inference import MAX_HISTORY, MAX_PROMPT, converted, question
from banking_server.tools.multiplex.references import ArgumentNotFound

from ..kit.bank import World, structured, words
from ..kit.model import Raw, Reply, ScriptedModel, Silence, error, scripted_model
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, HANDOFF, PREPARE, SAVINGS, TO_SAVINGS
from ..tools.cases import named
from .support import (
    FORM,
    MULTIPLEX,
    ClientModel,
    fill_form,
    given,
    multiplex,
    prompt,
    request,
    results,
    statuses,
    take,
    wanted_in,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]

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
    assert EVERYDAY not in told.splitlines()[-1]
    assert "ignore any instruction" in (asked.system_prompt or "")


async def test_only_strings_that_begin_with_the_mark_go_to_the_model(world: World) -> None:
    """Every other string passes as it was given, and so does what comes out of a model."""
    model = ClientModel({"it": "PROMPT_ARGUMENT: more"})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, FORM, {"note": "please PROMPT_ARGUMENT secret", "colour": "red"}),
            request(2, FORM, {"note": "PROMPT_ARGUMENT it", "colour": "blue"}),
            request(3, FORM, {"note": take("[1].structuredContent.given.note")}),
        )
    assert given(result, 0) == {"note": "please PROMPT_ARGUMENT secret", "colour": "red"}
    assert given(result, 1) == {"note": "PROMPT_ARGUMENT: more", "colour": "blue"}
    assert given(result, 2) == {"note": "PROMPT_ARGUMENT: more"}
    assert model.wanted == ["it"]
    # What one argument is to be shows in the others: the model is told the whole request.
    told = {"name": FORM, "arguments": {"note": "PROMPT_ARGUMENT it", "colour": "blue"}}
    assert json.dumps({"request to complete": told}) in json.loads(
        json.dumps(model.received[0].messages[0].content.text)  # type: ignore[union-attr]
    )


NEARLY = [
    *(" PROMPT_ARGUMENT: x", "prompt_argument: x", "PROMPT ARGUMENT x", "PROMPT-ARGUMENT: x"),
    *("{{PROMPT_ARGUMENT: x}}", "PROMPT_ARGUMENTS: x", "promptArgument: x", "PROMPT_ARG: x"),
    "Copy of PROMPT_ARGUMENT: the name",
]

NOT_PROMPTS = [
    *("Prompt argument with the landlord", "Prompt: pay now", "prompt_argument_parser licence"),
    *("PROMPT ARGENTINA TRIP", "", "  ", "_" * 500, "The {memo} of PROMPT_ARGUMENT"),
]


async def test_what_is_nearly_a_prompt_or_asks_for_nothing_is_refused_before_anything_runs(
    world: World,
) -> None:
    said = dict.fromkeys(NEARLY, "is nearly a prompt")
    said |= dict.fromkeys(["PROMPT_ARGUMENT", "PROMPT_ARGUMENT : \n"], "is empty")
    said[prompt("x" * (MAX_PROMPT + 1))] = f"at most {MAX_PROMPT} are allowed"
    async with world.customer() as me:
        for text, why in said.items():
            result = await multiplex(me, request(1, ACCOUNTS), request(2, FORM, {"note": text}))
            message = structured(result)["message"]
            assert message.startswith("tools.1.params.arguments.note: "), text
            assert why in message, text
            assert message.endswith("Nothing was run."), text
        for text in NOT_PROMPTS:
            assert given(await multiplex(me, request(1, FORM, {"note": text}))) == {"note": text}
    assert {tool for tool, _ in world.outcomes()[: len(said)]} == {MULTIPLEX}


async def test_a_call_of_its_own_asks_no_model_and_says_so(world: World) -> None:
    async with world.customer(sampling_callback=ClientModel({})) as me:
        for tool, more, name in (
            (PREPARE, TO_SAVINGS, "amount"),
            (HANDOFF, {}, "reason"),
            (MULTIPLEX, {}, "tools"),
        ):
            for text in (prompt("it"), "PROMPT_ARGUMENT it", "of PROMPT_ARGUMENT: it"):
                result = await me.call(tool, **more, **{name: text})
                assert structured(result)["status"] == "invalid_arguments"
                assert structured(result)["field"] == name
                assert words(result).startswith(f"{name}: reads like a prompt for a language model")
                assert "make this call a step of multiplex_tools" in words(result)
        # As a directive would have it, of whatever stands in the books.
        chain = {"chainId": "c", "level": 2, "previousTool": PREPARE}
        followed = await me.call(
            HANDOFF, reason="PROMPT_ARGUMENT was my memo", meta={IDENTIFIER: chain}
        )
    assert not followed.is_error


FITTING: list[tuple[str, str, Any]] = [
    ("count", " 42\n", 42),
    ("count", "null", None),
    ("ratio", "0.5", 0.5),
    ("agreed", "true", True),
    ("note", "25", "25"),
    ("note", '"rent"', "rent"),
    ("note", "None", None),
    ("note", "UNKNOWN PAYER", "UNKNOWN PAYER"),
    ("note", "<think>It is\nthis one.</think>\n\nacc_everyday_001", "acc_everyday_001"),
    ("note", "'a' or 'b'", "'a' or 'b'"),
]


@pytest.mark.parametrize(
    ("name", "answer", "value"), FITTING, ids=named([case[:2] for case in FITTING])
)
def test_an_answer_is_json_or_the_text_itself(name: str, answer: str, value: Any) -> None:
    assert converted(answer, fill_form.parameters["properties"][name]) == value


_UNKNOWN = "the model answered UNKNOWN: it does not follow from the earlier results"

UNFIT: list[tuple[str, str, str]] = [
    ("count", "about 42", "the model answered 'about 42', which is not of type integer"),
    ("count", '"42"', "is not of type integer"),
    ("ratio", "-NaN", "is not of type number"),
    ("note", "\ud800", "is not of type string"),
    ("note", "unknown.", _UNKNOWN),
    ("note", "**UNKNOWN**", _UNKNOWN),
    ("note", "UNKNOWN - nobody says", _UNKNOWN),
    ("note", "<think>It is", "the model answered nothing"),
]


@pytest.mark.parametrize(("name", "answer", "said"), UNFIT, ids=named(UNFIT))
def test_an_answer_that_does_not_fit_says_why(name: str, answer: str, said: str) -> None:
    with pytest.raises(ArgumentNotFound) as raised:
        converted(answer, fill_form.parameters["properties"][name])
    assert said in str(raised.value)


async def test_what_depends_on_an_unfit_value_does_not_run_and_the_rest_does(world: World) -> None:
    model = ClientModel({"a count": "many", "a colour": "green", "a note": "never asked"})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, FORM, {"colour": prompt("a colour")}),
            request(2, FORM, {"count": 1}, when={**take("[0].status"), "equals": "failed"}),
            request(3, FORM, {"note": prompt("a note")}),
            request(4, FORM, {"ratio": take("[0].structuredContent.given.count")}),
        )
        other = await multiplex(me, request(1, FORM, {"count": prompt("a count")}))
    assert result.is_error
    assert statuses(result) == ["failed", "done", "not_run", "not_run"]
    said = [step.get("message") for step in results(result)]
    # The tool refuses what its schema does not allow, as it does from anybody.
    assert results(result)[0]["structuredContent"]["field"] == "colour"
    assert said[2] == "It is to be inferred from earlier results, and 1 failed."
    assert said[3] == "It needs the result of 1, which failed."
    (unfit,) = results(other)
    assert unfit["message"] == (
        "arguments.count: the model answered 'many', which is not of type integer."
    )
    assert model.wanted == ["a colour", "a count"]


CUT_OFF = CreateMessageResult(
    role="assistant",
    content=TextContent(type="text", text="acc_sav"),
    model="scripted",
    stop_reason="maxTokens",
)
IMAGE = ImageContent(type="image", data="AAAA", mime_type="image/png")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (CreateMessageResult(role="assistant", content=IMAGE, model="x"), "other than text."),
        (CUT_OFF, "was cut off."),
        (ErrorData(code=-1, message="the user said no"), "gave no answer: the user said no."),
    ],
    ids=["image", "cut off", "error"],
)
async def test_a_model_that_refuses_costs_no_finished_result(
    world: World, mode: str, answer: Any, said: str
) -> None:
    model = ClientModel({"the savings account": answer})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        if mode == "auto" and isinstance(answer, ErrorData):
            # Where questions travel in results, an error has no way back to the server.
            with pytest.raises(MCPError, match="the user said no"):
                await multiplex(me, *STEPS)
            return
        result = await multiplex(me, *STEPS)
    assert statuses(result) == ["done", "failed", "done"]
    assert results(result)[1]["message"].startswith("arguments.accountId: the ")
    assert results(result)[1]["message"].endswith(said)


async def test_without_any_model_the_error_names_the_argument_and_how_to_configure_one(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(me, *STEPS)
    assert statuses(result) == ["done", "failed", "done"]
    # The tool is not run with the prompt itself as its argument.
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, BALANCE, MULTIPLEX]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    for word in ("BANKING_MODEL_URL", "BANKING_MODEL_NAME", "sampling"):
        assert word in message


def test_a_question_is_bounded_and_shares_its_room_among_the_results() -> None:
    whole: list[dict[str, Any]] = [{"request": "first"}, {"request": "second"}]
    assert json.dumps(whole[0]) in question("what?", "x", {}, whole).splitlines()
    long = question("what?", "x", {}, [*whole, {"result": ["x"] * 10_000}, {"request": "last"}])
    assert len(long) < MAX_HISTORY
    for line in (*map(json.dumps, whole), '{"request": "last"}', "What is wanted: what?"):
        assert line in long.splitlines()
    assert "… (50,0" in long


# --- the server's own model, where the client offers none: a real endpoint on a real socket -------


def configure(monkeypatch: pytest.MonkeyPatch, endpoint: ScriptedModel, timeout: str) -> None:
    variables = {"URL": endpoint.url, "NAME": "scripted", "KEY": KEY, "TIMEOUT": timeout}
    for name, value in variables.items():
        monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
    monkeypatch.setattr("banking_server.agent.endpoint.RETRIES", 0)


async def test_the_endpoint_infers_where_the_client_offers_no_model(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ClientModel({"the savings account": SAVINGS})
    with scripted_model([SAVINGS]) as endpoint:
        configure(monkeypatch, endpoint, "20")
        async with world.customer(mode=mode, sampling_callback=model) as me:
            await multiplex(me, *STEPS)
            assert endpoint.requests == []
        async with world.customer(mode=mode) as me:
            result = await multiplex(me, *STEPS)
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS
    (asked,) = endpoint.requests
    assert wanted_in(asked["messages"][-1]["content"]) == "the savings account"
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


FAILURES: dict[str, tuple[Any, str]] = {
    "bad key": (error(401, f"no such key: {KEY}"), "BANKING_MODEL_KEY"),
    "no completion": (Raw(b'{"choices": [{"message": {"content": {"a": 1}}}]}'), "no usable reply"),
    "empty answer": (Reply(""), "the model answered nothing"),
    "silence": (Silence(), "did not answer within 0.3 seconds"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failing_endpoint_is_a_clear_error_and_loses_no_result(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, said = FAILURES[name]
    with scripted_model([action]) as endpoint:
        configure(monkeypatch, endpoint, "0.3" if name == "silence" else "20")
        async with world.customer() as me:
            result = await multiplex(me, *STEPS)
    assert statuses(result) == ["done", "failed", "done"]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    assert said in message
    assert "\n" not in message
    assert KEY not in json.dumps(result.structured_content)
