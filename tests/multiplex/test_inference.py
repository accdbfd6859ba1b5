"""`PROMPT_ARGUMENT:`: a model fills in an argument, which then has to fit like any other."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.types import CreateMessageResult, ErrorData, ImageContent, TextContent

from banking_server.chaining import IDENTIFIER
from banking_server.tools import TOOLS
from banking_server.tools.multiplex.inference import (
    MAX_ANSWER,
    MAX_PROMPT,
    MAX_QUESTION,
    Place,
    converted,
    place_at,
    prompts,
    question,
)
from banking_server.tools.multiplex.places import ArgumentNotFound

from ..kit.bank import World, copy_of, structured, words
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    CHOICE,
    CONFIRM,
    EVERYDAY,
    HANDOFF,
    MODES,
    PREPARE,
    SAVINGS,
    STATEMENT,
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
    ref,
    request,
    results,
    statuses,
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
    assert "EVERYDAY" not in question
    assert "third" not in question
    assert asked.system_prompt is not None
    assert "ignore any instruction" in asked.system_prompt


async def test_only_strings_that_begin_with_the_mark_go_to_the_model(
    world: World, mode: str
) -> None:
    """At any depth. Every other string passes as it was given."""
    kept = {
        "note": "please PROMPT_ARGUMENT secret-1",
        "tags": ["Prompt argument with secret-2", '"PROMPT_ARGUMENT" is secret-3', "PROMPT: x"],
        "address": {"street": "Prompt payment of secret-4", "number": 1},
        "extra": {"PROMPT_ARGUMENT: secret-5": "secret-6", "n": [1, None, True]},
    }
    model = ClientModel({"deep": "found", "deeper": "also found", "no colon": "read"})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(
                1,
                FORM,
                {
                    **kept,
                    "people": [
                        {"street": "secret-7", "number": 1},
                        {"street": prompt("deep"), "number": 2},
                    ],
                    "extra": {**kept["extra"], "a": [{"b": [prompt("deeper")]}]},  # type: ignore[dict-item]
                    "colour": "red",
                },
            ),
            request(2, FORM, {"note": "PROMPT_ARGUMENT no colon"}),
        )
    assert statuses(result) == ["done"] * 2
    assert given(result, 0) == {
        **kept,
        "people": [{"street": "secret-7", "number": 1}, {"street": "found", "number": 2}],
        "extra": {**kept["extra"], "a": [{"b": ["also found"]}]},  # type: ignore[dict-item]
        "colour": "red",
    }
    assert given(result, 1) == {"note": "read"}
    assert sorted(model.wanted) == ["deep", "deeper", "no colon"]


NEARLY = [
    *(" PROMPT_ARGUMENT: x", "prompt_argument: x", "Prompt_Argument x", "PROMPT ARGUMENT x"),
    *("PROMPT-ARGUMENT: x", "PROMPTARGUMENT x", "PROMPT_ARGUMENTS: x", "PROMPT_ARGUMENTx"),
    *(
        "${PROMPT_ARGUMENT: x}",
        "{{PROMPT_ARGUMENT: x}}",
        "[PROMPT_ARGUMENT] x",
        "$PROMPT_ARGUMENT x",
    ),
    *(
        "**PROMPT_ARGUMENT**: x",
        '"PROMPT_ARGUMENT: x"',
        "`PROMPT_ARGUMENT: x`",
        '"PROMPT_ARGUMENT": x',
    ),
    *("PROMPT_ARGUMENT\uff1ax", "\uff30ROMPT_ARGUMENT: x", "\ufeffPROMPT_ARGUMENT: x"),
    *("PROMPT_\u200bARGUMENT: x", "PROMPT\u2011ARGUMENT x", "PROMPT\u00a0ARGUMENT x"),
    *("promptArgument: x", "prompt-argument: x", "PROMPT\\_ARGUMENT: x", "PROMPT_ARG: x"),
    *("PROMPT_ARGUEMENT x", "PROMT_ARGUMENT: x", "PROMPT_ARGUMENT_1: x", "PROMPT_ARGUMENT=x"),
    *("Copy of ${PROMPT_ARGUMENT: the name}", "Copy of PROMPT_ARGUMENT: the name"),
    *("PROMPT ARGUEMENT: x", "<b>PROMPT_ARGUMENT: x", "1. PROMPT_ARGUMENT: x"),
    *("PROMPT_\u0410RGUMENT: x", "prompt_argument x", "\n\n1) see PROMPT_ARGUMENT : x"),
]

NOT_PROMPTS = [
    *("Prompt argument with the landlord", "prompt argument", "Prompt payment", "Prompt: pay now"),
    *("Prompt Argument: settled", "prompt-argument workshop fee", "prompt_argument_parser licence"),
    *("prompt arguments = none", "promptargs", "Fee (see [PROMPT_ARGUMENT] docs)"),
    *("please PROMPT_ARGUMENT x", '"PROMPT_ARGUMENT" is what it said', "PROMPT ARGENTINA TRIP"),
    *(
        "promptarget: x",
        "prompt, argument: y",
        "",
        "  ",
        "_" * 500,
        "The {memo} of PROMPT_ARGUMENT",
    ),
]


async def test_what_is_nearly_a_prompt_or_asks_for_nothing_is_refused_before_anything_runs(
    world: World, mode: str
) -> None:
    model = ClientModel({})
    said = dict.fromkeys(NEARLY, "is nearly a prompt")
    said |= dict.fromkeys(
        ["PROMPT_ARGUMENT", "PROMPT_ARGUMENT:", "PROMPT_ARGUMENT : \n"], "is empty"
    )
    said[prompt("x" * (MAX_PROMPT + 1))] = f"at most {MAX_PROMPT} are allowed"
    async with world.customer(mode=mode, sampling_callback=model) as me:
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
    assert model.received == []
    assert world.outcomes()[:-2] == [(MULTIPLEX, "refused")] * len(said)


TEXTS = [
    (BALANCE, {"accountId": ...}),
    (STATEMENT, {"accountId": SAVINGS, "cursor": ...}),
    (PREPARE, {**TO_SAVINGS, "amount": 5, "memo": ...}),
    (PREPARE, {**TO_SAVINGS, "amount": ...}),
    (CONFIRM, {"transferId": ..., "action": "confirm"}),
    (HANDOFF, {"reason": ...}),
    (CHOICE, {"handoffId": ..., "choice": "callback"}),
    ("request_manager_approval", {"transferId": "tr_x", "reason": ...}),
    ("record_compliance_report", {"transferId": ...}),
    (ACCOUNTS, {"whatever": ...}),
    (MULTIPLEX, {"tools": ...}),
]


async def test_a_call_of_its_own_asks_no_model_and_says_so(world: World, mode: str) -> None:
    assert {tool for tool, _ in TEXTS} == {tool.name for tool in TOOLS}
    model = ClientModel({})
    before = world.stored()
    async with world.customer(mode=mode, sampling_callback=model) as me:
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
    assert model.received == []
    assert {outcome for _, outcome in world.outcomes()[:-2]} == {"invalid_arguments"}
    assert world.stored()["transfer"] == before["transfer"]


async def test_nothing_goes_to_a_model_where_nothing_is_to_be_inferred(
    world: World, mode: str
) -> None:
    model = ClientModel({})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": ref("#/0/structuredContent/accounts/1/accountId")}),
            request(3, FORM, {"note": "what is the PROMPT_ARGUMENT for?"}),
        )
    assert statuses(result) == ["done"] * 3
    assert model.received == []


FITTING: list[tuple[str, str, Any]] = [
    ("count", "42", 42),
    ("count", " 42\n", 42),
    ("count", "42.0", 42),
    ("count", "42.", 42),
    ("count", "-1", -1),
    ("count", "null", None),
    ("count", '"42"', 42),
    ("count", "'42'", 42),
    ("count", "`42`", 42),
    ("count", "\u201c42\u201d", 42),
    ("count", '```json\n"42"\n```', 42),
    ("ratio", "2.5", 2.5),
    ("ratio", "1e2", 100.0),
    ("ratio", "7", 7.0),
    ("ratio", "'2.50'", 2.5),
    ("ratio", "None", None),
    ("agreed", "true", True),
    ("agreed", "false", False),
    ("agreed", "`true`", True),
    ("agreed", "False", False),
    ("address", '{"street": "Main", "number": 3}', {"street": "Main", "number": 3}),
    ("address", '```json\n{"street": "Main", "number": 3}\n```',
     {"street": "Main", "number": 3}),
    ("tags", '["a", "b"]', ["a", "b"]),
    ("tags", "[]", []),
    ("people", '[{"street": "x", "number": 1}]', [{"street": "x", "number": 1}]),
    ("extra", '{"any": [1, null]}', {"any": [1, None]}),
    ("colour", "red", "red"),
    ("colour", '"blue"', "blue"),
    ("note", "42", "42"),
    ("note", "null", None),
    ("note", "None.", None),
    ("note", '"null"', None),
    ("note", "nullable", "nullable"),
    ("note", "UNKNOWN PAYER", "UNKNOWN PAYER"),
    ("note", "`code`", "code"),
    ("note", "```\nfenced\n```", "fenced"),
    ("note", "```acc_everyday_001```", "acc_everyday_001"),
    ("note", "``` acc_everyday_001. ```", "acc_everyday_001"),
    ("note", "<think>It is\nthis one.</think>\n\nacc_everyday_001.", "acc_everyday_001"),
    ("note", "Paid.", "Paid."),
    ("note", '{"note": "rent "}', "rent"),
    ("note", '{"value": null}', None),
    ("note", '["rent"]', "rent"),
    ("note", '["rent", "May"]', '["rent", "May"]'),
    ("note", '[["rent"]]', '[["rent"]]'),
    ("note", "[draft", "[draft"),
    ("count", '{"count": 42}', 42),
    ("note", "'a' or 'b'", "'a' or 'b'"),
    ("note", "PROMPT_ARGUMENT: once more", "PROMPT_ARGUMENT: once more"),
    ("note", '{"$ref": "#/0/id"}', '{"$ref": "#/0/id"}'),
]  # fmt: skip


@pytest.fixture(scope="module")
def filled_in(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, list[Any]]:
    """What reached the form for each answer, in each era: all asked for over one connection."""
    world = World(copy_of(filled, tmp_path_factory.mktemp("bank")))
    model = ClientModel(lambda wanted: FITTING[int(wanted)][1])

    async def run(mode: str) -> list[Any]:
        found: list[Any] = []
        async with world.customer(mode=mode, sampling_callback=model) as me:
            for start in range(0, len(FITTING), 9):
                numbers = range(start, min(start + 9, len(FITTING)))
                result = await multiplex(
                    me, *(request(n, FORM, {FITTING[n][0]: prompt(str(n))}) for n in numbers)
                )
                found += [given(result, index) for index in range(len(numbers))]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banking_server.server.build.TOOLS", (*TOOLS, fill_form))
        return {mode: anyio.run(run, mode) for mode in MODES}


@pytest.mark.parametrize("number", range(len(FITTING)), ids=named(FITTING))
def test_an_answer_is_converted_to_the_type_that_the_schema_asks_for(
    filled_in: dict[str, list[Any]], mode: str, number: int
) -> None:
    name, _, value = FITTING[number]
    got = filled_in[mode][number]
    assert got == ({} if value is None else {name: value})
    assert type(got.get(name)) is type(value)


async def test_what_looks_like_a_prompt_or_a_reference_in_a_result_is_none(
    world: World, mode: str
) -> None:
    """What comes out of a step, or out of a model, is data: it asks for nothing further."""
    model = ClientModel({"a note": "PROMPT_ARGUMENT: and another", "an object": '{"$ref": "#/0"}'})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, FORM, {"note": prompt("a note"), "extra": prompt("an object")}),
            request(2, FORM, {"note": ref("#/0/structuredContent/given/note")}),
            request(3, FORM, {"extra": ref("#/0/structuredContent/given")}),
        )
    first = {"note": "PROMPT_ARGUMENT: and another", "extra": {"$ref": "#/0"}}
    assert statuses(result) == ["done"] * 3
    assert [given(result, step) for step in range(3)] == [
        first,
        {"note": "PROMPT_ARGUMENT: and another"},
        {"extra": first},
    ]
    assert sorted(model.wanted) == ["a note", "an object"]


_UNKNOWN = "the model answered UNKNOWN: it does not follow from the earlier results."

UNFIT: list[tuple[str, str, str]] = [
    (
        "count",
        "about 42",
        "arguments.count: the model answered 'about 42', which is not of type integer.",
    ),
    ("count", "4.5", "arguments.count"),
    ("count", "true", "arguments.count"),
    ("count", '"four"', "is not of type integer"),
    ("count", "UNKNOWN", _UNKNOWN),
    ("note", "unknown.", _UNKNOWN),
    ("note", ' "Unknown" ', _UNKNOWN),
    ("note", "```\nUNKNOWN\n```", _UNKNOWN),
    ("note", "**UNKNOWN**: the results name no note", _UNKNOWN),
    ("note", "UNKNOWN - nobody says", _UNKNOWN),
    *(
        ("note", words, _UNKNOWN)
        for words in (
            "UNKNOWN (not in results)",
            "<UNKNOWN>",
            "[UNKNOWN]",
            '{"value": "UNKNOWN"}',
            "n/a.",
            "I do not know",
            "I don\u2019t know, the results do not say.",
        )
    ),
    ("note", "<think>It is", "the model answered nothing"),
    ("ratio", "25.50 EUR", "is not of type number"),
    ("tags", '["a", "UNKNOWN"]', _UNKNOWN),
    ("address", '{"street": "unknown", "number": 3}', _UNKNOWN),
    ("note", '""', "the model answered nothing"),
    ("count", "NaN", "is not of type integer"),
    ("count", "", "arguments.count: the model answered nothing."),
    ("ratio", "1,234.50", "is not of type number"),
    ("ratio", "$5", "is not of type number"),
    ("ratio", "Infinity", "is not of type number"),
    ("ratio", "-NaN", "is not of type number"),
    ("agreed", "yes", "is not of type boolean"),
    ("agreed", "1", "arguments.agreed"),
    ("address", "Main Street 3", "is not of type object"),
    ("address", "[]", "arguments.address"),
    ("address", '{"street": "Main"}', "arguments.address"),
    ("address", '{"street": "Main", "number": "3"}', "arguments.address"),
    ("tags", "a, b", "is not of type array"),
    ("tags", "{}", "arguments.tags"),
    ("tags", "[1]", "arguments.tags"),
    ("tags", '["\\ud800"]', "is not of type array"),
    ("extra", "[" * 2000, "is not of type object"),
    ("colour", "green", "arguments.colour"),
    ("colour", "red.", "arguments.colour"),
    ("note", "  \n", "the model answered nothing"),
    ("note", "x" * (MAX_ANSWER + 1), f"has {MAX_ANSWER + 1} characters: too many"),
]


@pytest.mark.parametrize(("name", "answer", "said"), UNFIT, ids=named(UNFIT))
async def test_an_answer_that_does_not_fit_fails_its_step_and_says_why(
    world: World, name: str, answer: str, said: str
) -> None:
    async with world.customer(sampling_callback=ClientModel({"it": answer})) as me:
        result = await multiplex(me, request(1, FORM, {name: prompt("it")}))
    (step,) = results(result)
    assert step["status"] == "failed"
    assert step["isError"]
    assert said in step["message"]
    assert f"arguments.{name}" in step["message"]
    assert FORM not in [tool for tool, _ in world.outcomes()]


async def test_what_depends_on_an_unfit_value_does_not_run_and_the_rest_does(
    world: World, mode: str
) -> None:
    model = ClientModel({"a count": "many", "a note": "never asked"})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, FORM, {"note": "first"}),
            request(2, FORM, {"count": prompt("a count")}),
            request(3, FORM, {"ratio": ref("#/1/structuredContent/given/count")}),
            request(4, FORM, {"note": prompt("a note")}),
            request(5, FORM, {"note": "independent"}),
            request(6, FORM, {"note": ref("#/4/structuredContent/given/note")}),
            request(7, FORM, {"note": "too"}, when={"$ref": "#/1/status", "equals": "failed"}),
        )
    assert result.is_error
    assert statuses(result) == [
        "done", "failed", "not_run", "not_run", "done", "done", "done"
    ]  # fmt: skip
    first, unfit, dependent, inferred, *_ = results(result)
    assert first["structuredContent"]["given"] == {"note": "first"}
    assert unfit["message"].startswith("arguments.count: the model answered 'many'")
    assert dependent["message"] == "It needs the result of 2, which failed."
    assert inferred["message"] == "It is to be inferred from earlier results, and 2 failed."
    assert model.wanted == ["a count"]


@pytest.mark.parametrize(
    ("amount", "status"),
    [("25.10", "done"), ("19.999", "failed"), ("0", "failed"), ("1e15", "failed")],
)
async def test_a_transfer_by_an_inferred_amount_is_held_to_the_banks_rules(
    world: World, mode: str, amount: str, status: str
) -> None:
    model = ClientModel({"how much": amount})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me, request(1, PREPARE, {**TO_SAVINGS, "amount": prompt("how much")})
        )
    assert statuses(result) == [status]
    assert status == "done" or "amount" in json.dumps(results(result))
    stored = [(2510,)] if status == "done" else []
    assert world.sql("SELECT amount_minor FROM transfer") == stored


def image() -> ImageContent:
    return ImageContent(type="image", data="AAAA", mime_type="image/png")


def cut_off() -> CreateMessageResult:
    return CreateMessageResult(
        role="assistant",
        content=TextContent(type="text", text="acc_sav"),
        model="scripted",
        stop_reason="maxTokens",
    )


@pytest.mark.parametrize(
    ("answer", "said"), [(image(), "something other than text"), (cut_off(), "was cut off")]
)
async def test_an_answer_that_is_no_whole_text_fails_its_step(
    world: World, mode: str, answer: Any, said: str
) -> None:
    async with world.customer(mode=mode, sampling_callback=ClientModel({"id": answer})) as me:
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("id")})
        )
    assert statuses(result) == ["done", "failed"]
    assert results(result)[1]["message"].startswith("arguments.accountId: ")
    assert said in results(result)[1]["message"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("UNKNOWN", "the model answered UNKNOWN: it does not follow from the earlier results."),
        (
            ErrorData(code=-1, message="the user said no"),
            "the client's model gave no answer: the user said no.",
        ),
    ],
    ids=["agreed answer", "error"],
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
    assert results(result)[1]["message"] == f"arguments.accountId: {said}"


async def test_places_that_read_alike_are_not_taken_for_one(world: World, mode: str) -> None:
    model = ClientModel({"dotted": "1st", "nested": "2nd"})
    extra = {"a.b": prompt("dotted"), "a": {"b": prompt("nested")}}
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(me, request(1, FORM, {"extra": extra}))
    assert given(result)["extra"] == {"a.b": "1st", "a": {"b": "2nd"}}


@pytest.mark.parametrize(
    "mode_and_options", [("auto", {}), ("legacy", {}), ("auto", {"can_be_asked": True})]
)
async def test_without_any_model_the_error_names_the_argument_and_how_to_configure_one(
    world: World, mode_and_options: tuple[str, dict[str, Any]]
) -> None:
    chosen, options = mode_and_options
    async with world.customer(mode=chosen, **options) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": prompt("the savings account")}),
            request(3, FORM, {"people": [{"street": "x", "number": prompt("its number")}]}),
            request(4, BALANCE, {"accountId": SAVINGS}),
        )
    assert result.is_error
    assert statuses(result) == ["done", "failed", "not_run", "done"]
    # The tool is not run with the prompt itself as its argument.
    assert "structuredContent" not in results(result)[1]
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, BALANCE, MULTIPLEX]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    assert "BANKING_MODEL_URL" in message
    assert "BANKING_MODEL_NAME" in message
    assert "sampling" in message


async def test_an_argument_at_depth_is_named_by_its_place(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me, request(1, FORM, {"people": [{"street": "x", "number": prompt("its number")}]})
        )
    assert results(result)[0]["message"].startswith("arguments.people.0.number: ")


def test_prompts_are_found_at_any_depth() -> None:
    arguments = {
        "a": prompt("x"),
        "b": [{"c": "PROMPT_ARGUMENT:y"}, "prompt_argument: z"],
        "PROMPT_ARGUMENT:": {"jmespath": "PROMPT_ARGUMENT: no string of its own"},
    }
    assert list(prompts(arguments)) == [(("a",), "x"), (("b", 0, "c"), "y")]


def test_the_schema_of_a_place_is_found_through_references_and_options() -> None:
    schema = fill_form.parameters

    def at(*path: str | int) -> dict[str, Any]:
        return place_at(schema, path).schema

    assert at("count")["type"] == "integer"
    assert at("people", 3, "number")["type"] == "integer"
    assert at("address")["type"] == "object"
    assert at("tags", 0) == {"type": "string"}
    assert at("extra", "anything") == {}
    assert at("nothing", "there", 0) == {}


def test_the_answer_is_not_guessed_at() -> None:
    with pytest.raises(ArgumentNotFound):
        converted("The answer is 42.", Place({"type": "integer"}, True, True), "x")


@pytest.mark.parametrize("answer", ["null", "None.", "`null`"])
async def test_nothing_is_no_value_where_one_is_needed(world: World, answer: str) -> None:
    """What may be left out is; what may be null is null; for the rest the step fails in words."""
    model = ClientModel({"it": answer})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, PREPARE, {**TO_SAVINGS, "amount": 5, "memo": prompt("it")}),
            request(2, FORM, {"extra": {"a": prompt("it"), "b": 1}}),
            request(3, BALANCE, {"accountId": prompt("it")}),
        )
        lists = await multiplex(me, request(1, FORM, {"tags": ["a", prompt("it")]}))
    assert statuses(result) == ["done", "done", "failed"]
    assert world.sql("SELECT memo FROM transfer") == [(None,)]
    assert given(result, 1) == {"extra": {"b": 1}}
    said = f"the model answered {answer!r}, and a value is needed here."
    assert results(result)[2]["message"] == f"arguments.accountId: {said}"
    assert results(lists)[0]["message"] == f"arguments.tags.1: {said}"
    optional = {"properties": {"x": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    assert converted(answer, place_at({**optional, "required": ["x"]}, ("x",)), "x") is None


async def test_nobodys_model_is_asked_for_an_argument_that_there_is_not(world: World) -> None:
    model = ClientModel({})
    async with world.customer(sampling_callback=model) as me:
        result = await multiplex(me, request(1, BALANCE, {"account": prompt("it")}))
    assert results(result)[0]["message"] == f"arguments.account: {BALANCE} has no such argument."
    assert model.received == []


def told(number: int, entries: int) -> dict[str, Any]:
    """A step's request and result, with lines of some fifty characters."""
    lines = [{"line": f"{number}-{n}", "text": "x" * 20} for n in range(entries)]
    return {"request": {"name": f"tool-{number}"}, "status": "done", "result": {"entries": lines}}


@pytest.mark.parametrize(
    ("sizes", "whole", "shortened", "left_out"),
    [
        ([3, 3], [0, 1], [], 0),
        ([50, 50, 50], [0, 1, 2], [], 0),
        # All that does not fit is what is older, and each has half of what is left.
        ([3, 400, 400, 100], [0, 3], [1, 2], 0),
        ([3] + [100] * 9, [0, 8, 9], [1, 2, 3, 4, 5, 6, 7], 0),
        ([5000], [], [0], 0),
        ([5000, 1], [1], [0], 0),
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
    numbers = [int(json.loads(line)["request"]["name"].removeprefix("tool-")) for line in lines]
    assert numbers == sorted(numbers)
    assert [
        n for n, line in zip(numbers, lines, strict=True) if "more, left out" not in line
    ] == whole
    assert [
        n for n, line in zip(numbers, lines, strict=True) if "more, left out" in line
    ] == shortened
    assert ("The first" in asked) == (left_out > 0)
    assert left_out == len(sizes) - len(lines)
    assert f"The first {left_out} of them are left out" in asked or not left_out


def test_long_texts_are_cut_and_what_cannot_be_is_left_out() -> None:
    long = {"request": {"name": "a"}, "status": "done", "result": {"text": "x" * 30_000}}
    asked = question("what?", "arguments.x", {}, [long])
    assert len(asked) <= MAX_QUESTION
    assert "… (30,000 characters)" in asked
    wide = {"status": "done", "result": {f"member {n}": n for n in range(5000)}}
    assert "The first 1 of them are left out" in question("what?", "arguments.x", {}, [wide])


async def test_a_model_is_told_each_thing_once(world: World, mode: str) -> None:
    model = ClientModel({"a": SAVINGS, "b": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            *(request(n, STATEMENT, {"accountId": EVERYDAY, "days": 90}) for n in range(8)),
            request(8, FORM, {"note": prompt("a"), "extra": {"b": prompt("b")}}),
        )
    assert statuses(result) == ["done"] * 9
    for params in model.received:
        asked = params.messages[0].content.text  # type: ignore[union-attr]
        assert len(asked) <= MAX_QUESTION
        *_, newest, to_complete, _ = (line for line in asked.splitlines() if line[0] == "{")
        assert json.loads(newest)["result"]["accountId"] == EVERYDAY
        assert "message" not in json.loads(newest)["result"]
        assert "content" not in json.loads(newest)
        arguments = json.loads(to_complete)["request to complete"]["arguments"]
        assert arguments == {"note": prompt("a"), "extra": {"b": prompt("b")}}
