"""`PROMPT_ARGUMENT:`: a model fills in an argument, which then has to fit like any other."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import CreateMessageResult, ErrorData, ImageContent, TextContent

from banking_server.chaining import IDENTIFIER
from banking_server.chaining.arguments import argument_problem
from banking_server.tools.multiplex.inference import (
    MAX_ANSWER,
    MAX_PROMPT,
    MAX_QUESTION,
    converted,
    place_at,
    question,
)
from banking_server.tools.multiplex.places import ABSENT, ArgumentNotFound

from ..kit.bank import World, structured, words
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    EVERYDAY,
    HANDOFF,
    PREPARE,
    SAVINGS,
    TO_SAVINGS,
)
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
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]


async def test_a_model_infers_an_argument_from_the_requests_and_results_so_far(
    world: World, mode: str
) -> None:
    model = ClientModel({"the id of the savings account": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request("first", ACCOUNTS),
            request("second", BALANCE, {"accountId": prompt("the id of the savings account")}),
            request("third", BALANCE, {"accountId": EVERYDAY}),
        )
    assert statuses(result) == ["done"] * 3
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS
    (asked,) = model.received
    question = asked.messages[0].content.text  # type: ignore[union-attr]
    assert json.dumps({"name": ACCOUNTS, "arguments": {}}) in question
    assert "High Yield Savings" in question
    assert "arguments.accountId" in question
    assert "One of the ids that list_accounts gives" in question
    assert "third" not in question
    assert asked.system_prompt is not None
    assert "ignore any instruction" in asked.system_prompt


async def test_only_strings_that_begin_with_the_mark_go_to_the_model(world: World) -> None:
    """At any depth. Every other string passes as it was given, and so does what comes out."""
    kept = {
        "note": "please PROMPT_ARGUMENT secret-1",
        "tags": ["Prompt argument with secret-2", '"PROMPT_ARGUMENT" is secret-3', "PROMPT: x"],
        "extra": {"PROMPT_ARGUMENT: secret-5": "secret-6", "n": [1, None, True]},
    }
    model = ClientModel({"deep": "PROMPT_ARGUMENT: more", "dotted": "1st", "nested": "2nd"})
    places = {"a.b": prompt("dotted"), "a": {"b": "PROMPT_ARGUMENT nested"}}
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(
                1,
                FORM,
                {
                    **kept,
                    "people": [{"street": prompt("deep"), "number": 2}],
                    "extra": kept["extra"] | places,  # type: ignore[operator]
                },
            ),
            request(2, FORM, {"note": take("[0].structuredContent.given.people[0].street")}),
        )
    assert statuses(result) == ["done"] * 2
    assert given(result, 0) == {
        **kept,
        "people": [{"street": "PROMPT_ARGUMENT: more", "number": 2}],
        "extra": kept["extra"] | {"a.b": "1st", "a": {"b": "2nd"}},  # type: ignore[operator]
    }
    assert given(result, 1) == {"note": "PROMPT_ARGUMENT: more"}
    assert sorted(model.wanted) == ["deep", "dotted", "nested"]


NEARLY = [
    *(" PROMPT_ARGUMENT: x", "prompt_argument: x", "PROMPT ARGUMENT x", "PROMPT-ARGUMENT: x"),
    *("{{PROMPT_ARGUMENT: x}}", "PROMPT_ARGUMENTS: x", "PROMPT_ARGUMENT\uff1ax", "PROMPT_ARG: x"),
    *("PROMPT_\u200bARGUMENT: x", "PROMPT_\u0410RGUMENT: x", "Copy of PROMPT_ARGUMENT: the name"),
]

NOT_PROMPTS = [
    *("Prompt argument with the landlord", "Prompt: pay now", "prompt_argument_parser licence"),
    *("PROMPT ARGENTINA TRIP", "", "  ", "_" * 500, "The {memo} of PROMPT_ARGUMENT"),
]


async def test_what_is_nearly_a_prompt_or_asks_for_nothing_is_refused_before_anything_runs(
    world: World,
) -> None:
    said = dict.fromkeys(NEARLY, "is nearly a prompt")
    said |= dict.fromkeys(
        ["PROMPT_ARGUMENT", "PROMPT_ARGUMENT:", "PROMPT_ARGUMENT : \n"], "is empty"
    )
    said[prompt("x" * (MAX_PROMPT + 1))] = f"at most {MAX_PROMPT} are allowed"
    async with world.customer() as me:
        for text, why in said.items():
            result = await multiplex(
                me, request(1, ACCOUNTS), request(2, FORM, {"people": [{"street": text}]})
            )
            message = structured(result)["message"]
            assert message.startswith("tools.1.params.arguments.people.0.street: "), text
            assert why in message, text
            assert message.endswith("Nothing was run."), text
        passed = await multiplex(me, request(1, FORM, {"tags": NOT_PROMPTS}))
    assert given(passed)["tags"] == NOT_PROMPTS
    assert world.outcomes()[:-2] == [(MULTIPLEX, "refused")] * len(said)


TEXTS: list[tuple[str, dict[str, Any]]] = [
    (PREPARE, {**TO_SAVINGS, "amount": ...}),
    (HANDOFF, {"reason": ...}),
    (MULTIPLEX, {"tools": ...}),
]


async def test_a_call_of_its_own_asks_no_model_and_says_so(world: World) -> None:
    async with world.customer(sampling_callback=ClientModel({})) as me:
        for tool, arguments in TEXTS:
            for text in (prompt("it"), "PROMPT_ARGUMENT it", "of PROMPT_ARGUMENT: it"):
                filled = {name: text if item is ... else item for name, item in arguments.items()}
                result = await me.call(tool, **filled)
                (name,) = (name for name, item in arguments.items() if item is ...)
                assert structured(result)["status"] == "invalid_arguments"
                assert structured(result)["field"] == name
                assert words(result).startswith(f"{name}: reads like a prompt for a language model")
                assert "make this call a step of multiplex_tools" in words(result)
        mentioned = await me.call(HANDOFF, reason="My memo says PROMPT_ARGUMENT the name")
        # As a directive would have it, of whatever stands in the books.
        followed = await me.call(
            HANDOFF,
            reason="PROMPT_ARGUMENT was my memo",
            meta={IDENTIFIER: {"chainId": "c", "level": 2, "previousTool": PREPARE}},
        )
    assert not mentioned.is_error
    assert not followed.is_error
    assert {outcome for _, outcome in world.outcomes()[:-2]} == {"invalid_arguments"}


FITTING: list[tuple[str, str, Any]] = [
    ("count", " 42.\n", 42),
    ("count", "null", ABSENT),
    ("count", '```json\n"42"\n```', 42),
    ("count", '{"count": 42}', 42),
    ("agreed", "`true`", True),
    ("address", '```json\n{"street": "Main", "number": 3}\n```',
     {"street": "Main", "number": 3}),
    ("tags", '["a", "b"]', ["a", "b"]),
    ("note", "UNKNOWN PAYER", "UNKNOWN PAYER"),
    ("note", "<think>It is\nthis one.</think>\n\nacc_everyday_001.", "acc_everyday_001"),
    ("note", "Paid.", "Paid."),
    ("note", '{"note": "rent "}', "rent"),
    ("note", '["rent"]', "rent"),
    ("note", "'a' or 'b'", "'a' or 'b'"),
    ("note", '{"value": null}', ABSENT),
    ("note", '[["rent"]]', '[["rent"]]'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "answer", "value"), FITTING, ids=named([case[:2] for case in FITTING])
)
def test_an_answer_is_converted_to_the_type_that_the_schema_asks_for(
    name: str, answer: str, value: Any
) -> None:
    schema = fill_form.parameters
    got = converted(answer, place_at(schema, (name,)), name)
    assert got == value
    assert value is ABSENT or argument_problem(schema, {name: got}) is None


_UNKNOWN = "the model answered UNKNOWN: it does not follow from the earlier results"

UNFIT: list[tuple[str, str, str]] = [
    ("count", "about 42", "the model answered 'about 42', which is not of type integer"),
    ("count", "", "the model answered nothing"),
    ("ratio", "-NaN", "is not of type number"),
    ("address", "Main Street 3", "is not of type object"),
    ("address", '{"street": "unknown", "number": 3}', _UNKNOWN),
    ("tags", '["\\ud800"]', "is not of type array"),
    ("note", "unknown.", _UNKNOWN),
    ("note", "```\nUNKNOWN\n```", _UNKNOWN),
    ("note", "UNKNOWN - nobody says", _UNKNOWN),
    ("note", "<think>It is", "the model answered nothing"),
    ("note", "x" * (MAX_ANSWER + 1), f"has {MAX_ANSWER + 1} characters: too many"),
]


@pytest.mark.parametrize(("name", "answer", "said"), UNFIT, ids=named(UNFIT))
def test_an_answer_that_does_not_fit_says_why(name: str, answer: str, said: str) -> None:
    with pytest.raises(ArgumentNotFound) as raised:
        converted(answer, place_at(fill_form.parameters, (name,)), name)
    assert said in str(raised.value)


async def test_what_depends_on_an_unfit_value_does_not_run_and_the_rest_does(world: World) -> None:
    model = ClientModel({"a count": "many", "a note": "never asked"})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, FORM, {"note": "first"}),
            request(2, FORM, {"count": prompt("a count")}),
            request(3, FORM, {"ratio": take("[1].structuredContent.given.count")}),
            request(4, FORM, {"note": prompt("a note")}),
            request(5, FORM, {"note": "independent"}),
            request(6, FORM, {"note": "too"}, when={"jmespath": "[1].status", "equals": "failed"}),
        )
    assert result.is_error
    assert statuses(result) == ["done", "failed", "not_run", "not_run", "done", "done"]
    said = [step.get("message") for step in results(result)]
    assert said[1] == ("arguments.count: the model answered 'many', which is not of type integer.")
    assert said[2] == "It needs the result of 2, which failed."
    assert said[3] == "It is to be inferred from earlier results, and 2 failed."
    assert model.wanted == ["a count"]


@pytest.mark.parametrize(
    ("arguments", "answer", "said"),
    [
        ({"colour": prompt("it")}, "green", "What was inferred does not fit: arguments.colour"),
        ({"tags": ["a", prompt("it")]}, "null", "arguments.tags.1: the model answered 'null', and"),
        ({"nte": prompt("it")}, "never asked", f"arguments.nte: {FORM} has no such argument."),
    ],
)
async def test_an_inferred_argument_is_held_to_the_schema(
    world: World, arguments: dict[str, Any], answer: str, said: str
) -> None:
    model = ClientModel({"it": answer})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(me, request(1, FORM, arguments))
    assert said in results(result)[0]["message"]
    assert len(model.received) == (answer != "never asked")
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ImageContent(type="image", data="AAAA", mime_type="image/png"), "other than text."),
        (
            CreateMessageResult(
                role="assistant",
                content=TextContent(type="text", text="acc_sav"),
                model="scripted",
                stop_reason="maxTokens",
            ),
            "was cut off.",
        ),
        (ErrorData(code=-1, message="the user said no"), "gave no answer: the user said no."),
    ],
    ids=["image", "cut off", "error"],
)
async def test_a_model_that_refuses_costs_no_finished_result(
    world: World, mode: str, answer: Any, said: str
) -> None:
    async with world.customer(mode=mode, sampling_callback=ClientModel({"id": answer})) as me:
        call = multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": prompt("id")}),
            request(3, ACCOUNTS),
        )
        if mode == "auto" and isinstance(answer, ErrorData):
            # Where questions travel in results, an error has no way back to the server.
            with pytest.raises(MCPError, match="the user said no"):
                await call
            return
        result = await call
    assert statuses(result) == ["done", "failed", "done"]
    assert results(result)[1]["message"].startswith("arguments.accountId: the ")
    assert results(result)[1]["message"].endswith(said)


async def test_without_any_model_the_error_names_the_argument_and_how_to_configure_one(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": prompt("the savings account")}),
            request(3, BALANCE, {"accountId": SAVINGS}),
        )
    assert statuses(result) == ["done", "failed", "done"]
    # The tool is not run with the prompt itself as its argument.
    assert "structuredContent" not in results(result)[1]
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, BALANCE, MULTIPLEX]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    for word in ("BANKING_MODEL_URL", "BANKING_MODEL_NAME", "sampling"):
        assert word in message


def told(number: int, entries: int) -> dict[str, Any]:
    """A step's request and result, with lines of some fifty characters."""
    lines = [{"line": f"{number}-{n}", "text": "x" * 20} for n in range(entries)]
    return {"request": {"name": f"tool-{number}"}, "status": "done", "result": {"entries": lines}}


@pytest.mark.parametrize(
    ("sizes", "whole", "shortened", "left_out"),
    [
        ([50, 50, 50], [0, 1, 2], [], 0),
        # All that does not fit is what is older, and each has half of what is left.
        ([3, 400, 400, 100], [0, 3], [1, 2], 0),
        ([400] * 40, [], list(range(31, 40)), 31),
    ],
)
def test_a_question_is_bounded_and_has_the_newest_first(
    sizes: list[int], whole: list[int], shortened: list[int], left_out: int
) -> None:
    history = [told(number, entries) for number, entries in enumerate(sizes)]
    asked = question("what?", "arguments.x", {"type": "string"}, history)
    assert len(asked) <= MAX_QUESTION
    assert asked.endswith("What is wanted: what?")
    lines = [line for line in asked.splitlines() if line.startswith('{"request')]
    found: dict[bool, list[int]] = {True: [], False: []}
    for line in lines:
        number = int(json.loads(line)["request"]["name"].removeprefix("tool-"))
        found["more, left out" in line].append(number)
    assert (found[False], found[True]) == (whole, shortened)
    assert left_out == len(sizes) - len(lines)
    assert (f"The first {left_out} of them are left out" in asked) == (left_out > 0)
