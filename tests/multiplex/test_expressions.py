"""`jmespath` and `text`: values of earlier results, by expressions whose work is bounded."""

import json
from pathlib import Path
from typing import Any

import pytest

from banking_server.tools.multiplex.expressions import (
    MAX_EXPRESSION,
    ExpressionError,
    Work,
    evaluated,
    parsed,
)
from banking_server.tools.multiplex.references import MAX_TEXT, Expression, Text

from ..kit.bank import World, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, LOCKED, PREPARE, SAVINGS
from ..tools.cases import named
from .support import MULTIPLEX, ClientModel, multiplex, request, results, statuses, take

pytestmark = pytest.mark.anyio

RESULTS: list[Any] = [
    {"status": "done", "structuredContent": {"accounts": [{"id": "a", "n": 1.5}, {"id": "b"}]}},
    {"status": "skipped", "isError": False},
    {"status": "done", "structuredContent": {"amount": 2, "none": None}},
]
ACCOUNT = "[0].structuredContent.accounts"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"{ACCOUNT}[1].id", "b"),
        ("[-1].structuredContent.amount", 2),
        ("[1].structuredContent.id || [2].structuredContent.amount", 2),
        ("@", RESULTS),
        ("sum([`0.1`, `0.2`]) == `0.3`", True),
        ("sum([`9007199254740993`, `1`])", 9007199254740994),
        ("avg([`0.1`, `0.2`, `0.6`])", 0.3),
        ("avg(`[]`)", None),
        ("to_number('25.50')", 25.5),
        ("to_number('1_000') || to_number('nan') || to_number(' 1')", None),
        ("to_number(`7`)", 7),
        ("to_number(`true`)", None),
    ],
)
def test_an_expression_gives_a_value(expression: str, value: Any) -> None:
    assert Expression(expression).problem(3) is None
    assert Expression(expression).look(RESULTS, Work()) == (value, value is not None)


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        ("[-1].status", {2}),
        ("@ | [0].status", set()),
        ("[0].a == [2].b && !([1].c)", {0, 1, 2}),
        ("{a: sum([0].x), b: [1]}", {0, 1}),
        ("[0].a || [1].b", set()),
        ("[0].a || [0].b", {0}),
        ("[0:2].status", set()),
    ],
)
def test_the_results_that_an_expression_cannot_do_without(
    expression: str, needed: set[int]
) -> None:
    assert Expression(expression).problem(3) is None
    assert Expression(expression).needed(3) == needed


BAD: list[tuple[str, str]] = [
    ("", "is no JMESPath expression: it is empty"),
    ("[0].", "it ends too early"),
    ("PROMPT_ARGUMENT: the id", "see its character"),
    ("steal([0])", 'there is no function "steal"'),
    ("length([0], [0])", "length() takes 1"),
    ("(" * 400, "is no JMESPath expression"),
    ("!" * 400 + "[0]", "it is nested too deeply"),
    ("[0]" + ".a" * 300, f"it has 603 characters, and at most {MAX_EXPRESSION} are allowed"),
    ("[0].a || [9].b", "must look at earlier results, like [0].structuredContent"),
    ("[-4].status", "must look at earlier results"),
]


@pytest.mark.parametrize(("expression", "said"), BAD, ids=named(BAD))
def test_what_cannot_work_is_refused_in_one_sentence(expression: str, said: str) -> None:
    problem = Expression(expression).problem(3)
    assert problem is not None
    assert said in problem
    assert "\n" not in problem


async def test_a_mistake_is_refused_before_anything_runs(world: World) -> None:
    wrong = [
        ({"arguments": {"accountId": take("[1].status")}}, "must look at earlier results"),
        ({"when": {**take("[0]]"), "exists": True}}, "see its character 4"),
        ({"arguments": {"accountId": {"text": "no place"}}}, "has no place like"),
        ({"arguments": {"x": [{"y": {"jmespath": 5}}]}}, 'arguments.x.0.y: a reference is {"jme'),
        ({"arguments": {"x": {"jmespath": "[0]", "text": "{[0]}"}}}, "arguments.x: a reference is"),
        ({"arguments": {"x": {"text": None}}}, "arguments.x: a reference is"),
        ({"arguments": {"x": [take("[0].x")] * 101}}, "at most 100 references"),
        ({"arguments": {"x": [take("[0]" + ".a" * 90)] * 60}}, "of 10000 characters in all"),
        ({"arguments": {"x": [[0] * 600, [0] * 600]}}, "at most 1000 values are read"),
    ]
    async with world.customer() as me:
        for given, said in wrong:
            step = request(2, BALANCE, **given)  # type: ignore[arg-type]
            result = await multiplex(me, request(1, ACCOUNTS), step)
            assert result.is_error
            assert said in words(result)
            assert words(result).startswith("tools")
            assert words(result).endswith("Nothing was run.")
        first = await multiplex(me, request(1, BALANCE, {"accountId": take("length(@)")}))
    assert "must look at earlier results" in words(first)
    assert {tool for tool, _ in world.outcomes()} == {MULTIPLEX}


async def test_an_expression_that_gives_nothing_fails_its_step_by_name(world: World) -> None:
    nothing = {
        "[0].nothing": "gives nothing.",
        "sum([0].structuredContent.accounts)": "gives nothing: sum() takes array-number only.",
        "sum([`1e999`])": "gives nothing: it gives no JSON value.",
        "[0].content[::0]": "gives nothing: it cannot be worked out.",
    }
    async with world.customer() as me:
        result = await multiplex(
            me,
            request("list", ACCOUNTS),
            *(request(it, BALANCE, {"accountId": take(it)}) for it in nothing),
            request("a list", PREPARE, {"memo": {"text": "{[0].structuredContent.accounts}-dup"}}),
            request("when", ACCOUNTS, when={**take("sum([0].status)"), "exists": False}),
            request("other", BALANCE, {"accountId": SAVINGS}),
        )
    assert statuses(result) == ["done", *["failed"] * 6, "done"]
    said = [step["message"] for step in results(result)[1:-1]]
    for (expression, why), message in zip(nothing.items(), said, strict=False):
        assert message == f"arguments.accountId: {expression!r} {why}"
    assert said[-2].endswith("gives a list, which is no part of a text.")
    assert said[-1] == "when: 'sum([0].status)' gives nothing: sum() takes array-number only."


# --- bounded work ---------------------------------------------------------------------------------


DOUBLED = "`[1e308,1e-308]`" + "|[@,@][]" * 11

LONGER = "|join('',[@,@])"

GREEDY = [
    f"{DOUBLED}|[{','.join(['avg(@)'] * 50)}]",
    f"{DOUBLED}|[{','.join(['@==@'] * 70)}]",
    " | ".join(["[@,@][]"] * 50),
    " | ".join(["[@,@]"] * 55) + " | to_string(@)",
    "to_string([0]) | " + " | ".join(["join('',[@,@])"] * 27),
    f"{DOUBLED}|[{','.join(['@[::-1]'] * 45)}] | [0]",
    f'to_string([0]){LONGER * 7}|join(@,`["",""]`{"|[@,@][]" * 10})',
    f"'{'9' * 250}'{LONGER * 4}|to_number(@)|[@,@]{'|[@,@][]' * 11}|to_string(@)",
    " | ".join(["[@,@]"] * 30) + " == " + " | ".join(["[@,@]"] * 30),
]


@pytest.mark.parametrize("expression", GREEDY, ids=named(GREEDY))
def test_an_expression_cannot_keep_the_server_busy(expression: str) -> None:
    assert len(expression) <= MAX_EXPRESSION
    with pytest.raises(ExpressionError, match="take too much work"):
        evaluated(parsed(expression), RESULTS, Work())


async def test_all_expressions_of_a_call_share_what_they_may_cost(world: World) -> None:
    """In conditions, arguments and texts: what one of them took is not there for the next."""
    greedy = f"{DOUBLED}|[{','.join(['avg(@)'] * 2)}]|[0]"
    text = {"text": "".join([f"{{{greedy}}}"] * 4)}
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(0, BALANCE, {"accountId": EVERYDAY}),
            request(1, BALANCE, {"accountId": take("[0].structuredContent.accountId")}),
            *(request(n, ACCOUNTS, when={**take(f"[0]&&{greedy}"), "exists": True})
              for n in range(2, 8)),
            request(8, PREPARE, {"amount": 1, "memo": text}),
            request(9, ACCOUNTS),
        )  # fmt: skip
        again = await multiplex(
            me, request(0, ACCOUNTS), request(1, ACCOUNTS, when={**take("[0]"), "exists": True})
        )
    assert statuses(result)[:3] == ["done"] * 3
    assert statuses(result)[4:] == [*["failed"] * 5, "done"]
    assert results(result)[-2]["message"].endswith(
        "gives nothing: with it, the expressions of this call take too much work. Let them look "
        "at fewer values, or make several calls."
    )
    assert statuses(again) == ["done", "done"]


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "needed"),
    [
        ("{[0].status}: {sum([`0.1`, `0.2`])}, {[1].isError}", "done: 0.3, false", {0, 1}),
        ("{{{[0].status}}} {{}}", "{done} {}", {0}),
        ('{join(`"}{"`, [0].structuredContent.accounts[].id)}', "a}{b", {0}),
        ("{'{'}{[1].status}", "{skipped", {1}),
        ("{'PROMPT'}_ARGUMENT: {[0].status}", "PROMPT_ARGUMENT: done", {0}),
    ],
)
def test_a_text_has_values_in_it(text: str, value: str, needed: set[int]) -> None:
    assert Text(text).problem(3) is None
    assert Text(text).value(RESULTS, Work()) == value
    assert Text(text).needed(3) == needed


UNCLOSED = "{'\\'"

BAD_TEXTS: list[tuple[str, str]] = [
    ("", "has no place like"),
    ("{{[0].status}}", "has no place like"),
    ("{[0].status", "has a brace too many"),
    ("{[0].{a: status}.a}", "without an object like {a: b} in it"),
    ("{[1].status}", "must look at earlier results"),
    ("{PROMPT_ARGUMENT: the name} {[0].status}", "cannot be a prompt"),
    ("PROMPT_ARGUMENT: the id of {[0].status}", "cannot be a prompt"),
    (UNCLOSED * 250_000, f"has more than {MAX_TEXT} characters"),
    ((UNCLOSED * MAX_TEXT)[:MAX_TEXT], "has a brace too many"),
]


@pytest.mark.parametrize(("text", "said"), BAD_TEXTS, ids=named(BAD_TEXTS))
def test_a_text_that_cannot_work_is_refused(text: str, said: str) -> None:
    assert said in (Text(text).problem(1) or "")
    # It is read once from left to right: a search from each brace would take days.
    assert Text(UNCLOSED * 250_000).needed(1) == set()


PAGE = Path(__file__).parents[2] / "banking_server" / "tools" / "multiplex" / "README.md"


async def test_the_example_of_the_page_runs(world: World, mode: str) -> None:
    after = PAGE.read_text(encoding="utf-8").split("<!-- plan.json -->\n```json\n")[1]
    example = json.loads(after.split("```")[0])
    model = ClientModel({"the id of the savings account": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(me, *example["tools"])
    assert statuses(result) == ["done", "done"]
    ((source, target),) = world.sql("SELECT from_account_id, to_account_id FROM transfer")
    assert (source, target) == (SAVINGS, LOCKED)
