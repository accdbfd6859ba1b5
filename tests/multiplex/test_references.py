"""`jmespath`, `text` and `when`: values of earlier results, by a part of JMESPath."""

import json
from pathlib import Path
from typing import Any

import pytest

from banking_server.tools.multiplex.references import check, earlier_results, expressions, value_of
from tool_chaining.expressions import MAX_EXPRESSION, NoValue

from ..kit.bank import World, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, LOCKED, PREPARE, SAVINGS
from .support import (
    MULTIPLEX,
    ClientModel,
    multiplex,
    noted,
    prompt,
    request,
    results,
    statuses,
    take,
)

pytestmark = pytest.mark.anyio

RESULTS: list[Any] = [
    {"status": "done", "structuredContent": {"accounts": [{"id": "a", "n": 1.5}, {"id": "b"}]}},
    {"status": "skipped", "isError": False},
    {"status": "done", "structuredContent": {"amount": 2, "names": ["x", "y"], "none": None}},
]
ACCOUNT = "[0].structuredContent.accounts"

VALUES = [
    (f"{ACCOUNT}[1].id", "b"),
    (f"{ACCOUNT}[?n > `1`].id | [0]", "a"),
    (f"length({ACCOUNT}[*].id)", 2),
    ("[-1].structuredContent.amount", 2),
    ("[1].structuredContent.id || [2].structuredContent.amount", 2),
    ("[0].status == 'done' && !([1].isError)", True),
    ("contains([2].structuredContent.names, 'x')", True),
    ("join(', ', [2].structuredContent.names)", "x, y"),
    ("max([2].structuredContent.names)", "y"),
    ("min(`[3, 2]`)", 2),
    ("sum(`[0.1, 0.2]`)", 0.3),
    ("to_string([2].structuredContent.names)", '["x","y"]'),
    ("@", RESULTS),
]


TEXTS = [
    ("{[0].status}: {sum(`[0.1, 0.2]`)}, {[1].isError}", "done: 0.3, false"),
    ("{{{[0].status}}} {{}}", "{done} {}"),
    ("{sum(`[1.5, 1.5]`)} {[2].structuredContent.amount}", "3 2"),
]

REFERENCES = [("jmespath", *case) for case in VALUES] + [("text", *case) for case in TEXTS]


@pytest.mark.parametrize(("kind", "written", "value"), REFERENCES)
def test_a_reference_gives_a_value(kind: str, written: str, value: Any) -> None:
    for expression in expressions({kind: written}):
        check(expression)
    assert value_of({kind: written}, earlier_results(RESULTS)) == value


WRONG: list[tuple[Any, str]] = [
    (take(""), "cannot be used: it is empty"),
    (take("[0]]"), "it is wrong at character 4"),
    (take("PROMPT_ARGUMENT: the id"), "it is wrong at character"),
    (take("(" * 400), "cannot be used: "),
    (take("[0]" + ".a" * 300), f"it has 603 characters, and at most {MAX_EXPRESSION} are allowed"),
    (take("steal([0])"), "there is no function 'steal' here, only contains, join,"),
    (take("sort_by([0].a, &b)"), "there is no function 'sort_by'"),
    (take("length([0], [0])"), "length() takes 1"),
    (take("[@, @][] | [0]"), "multi select list is not supported, only paths"),
    (take("{a: [0]}"), "multi select dict is not supported"),
    (take("[0:1].status"), "slice is not supported"),
    (take("join([0].status, [0].names)"), "the separator of join() is a text in quotation marks"),
    ({"text": ""}, "a text has expressions like"),
    ({"text": "{{[0].status}}"}, "a text has expressions like"),
    ({"text": "{[0].status"}, "other braces must be written twice"),
    ({"text": "{'" * 250_000}, "other braces must be written twice"),
    ({"text": "{[0].status}" * 1_001}, "all expressions have at most 10000 characters"),
]


async def test_an_invalid_expression_is_refused_by_its_place_before_anything_runs(
    world: World,
) -> None:
    async with world.customer() as me:
        for wrong, said in WRONG:
            result = await multiplex(
                me, request(1, ACCOUNTS), request(2, BALANCE, {"accountId": wrong})
            )
            assert result.is_error
            assert said in words(result), wrong
            assert words(result).startswith(("tools.1.params.arguments.accountId: ", "tools: all "))
            assert words(result).endswith("Nothing was run.")
        when = {**take("[0]]"), "exists": True}
        result = await multiplex(me, request(1, ACCOUNTS), request(2, ACCOUNTS, when=when))
        assert words(result).startswith(
            "tools.1.when.jmespath: '[0]]' cannot be used: it is wrong at"
        )
    assert {tool for tool, _ in world.outcomes()} == {MULTIPLEX}


async def test_an_expression_that_gives_nothing_fails_its_step_by_name(world: World) -> None:
    wrong = "cannot be evaluated: its functions and operators do not fit these values."
    numbers = "cannot be evaluated: sum() takes array-number only."
    nothing = {
        "[0].nothing": "has no value.",
        "sum([0].structuredContent.accounts)": numbers,
        "sum(`[1e999]`)": wrong,
        "contains('a', `1`)": wrong,
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
    assert said[-2].endswith("gives a list or an object, no text.")
    assert said[-1] == "when: 'sum([0].status)' cannot be evaluated: sum() takes array-number only."


async def test_the_expressions_of_a_call_share_what_they_may_cost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost is their length plus 10, times the size of the results, whatever they say."""
    most = "banking_server.tools.multiplex.references.MAX_WORK"
    monkeypatch.setattr(most, 11 * len(json.dumps(RESULTS)))
    looked_at = earlier_results(RESULTS)
    assert looked_at.evaluate("@") == RESULTS
    with pytest.raises(NoValue, match="take too much work"):
        looked_at.evaluate("@")
    monkeypatch.setattr(most, 50_000)
    when = {**take("[0].status"), "exists": True}
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(0, BALANCE, {"accountId": EVERYDAY}),
            *(request(number, ACCOUNTS, when=when) for number in range(1, 9)),
            request(9, BALANCE, {"accountId": SAVINGS}),
        )
    ran = statuses(result)
    assert (ran[1], ran[-2], ran[-1]) == ("done", "failed", "done")
    assert "the expressions of this call take too much work" in results(result)[-2]["message"]


FACTS = "[0].structuredContent"

CONDITIONS: list[tuple[dict[str, Any], bool]] = [
    ({**take(f"{FACTS}.amount"), "equals": 1}, True),
    ({**take(f"{FACTS}.amount"), "equals": "1"}, False),
    ({**take(f"{FACTS}.amount"), "equals": True}, False),
    ({**take(f"{FACTS}.amount"), "notEquals": 1.0}, False),
    ({**take("[0].status"), "equals": "done"}, True),
    ({**take("length([0].content) > `0`"), "equals": True}, True),
    ({**take("[0].nothing"), "exists": False}, True),
    # Null is nothing in this language, and this is how one asks for it.
    ({**take("[0].nothing"), "equals": None}, True),
    ({**take("[0].nothing"), "notEquals": "x"}, False),
]


async def test_conditions_compare_json_values(world: World) -> None:
    """A step that is skipped asks no model: here there is none."""
    steps = [
        request(number, ACCOUNTS, when=when) if holds else noted(number, prompt("?"), when=when)
        for number, (when, holds) in enumerate(CONDITIONS)
    ]
    async with world.customer() as me:
        result = await multiplex(me, noted("first", "rent"), *steps)
    assert statuses(result)[1:] == ["done" if holds else "skipped" for _, holds in CONDITIONS]
    assert {step.get("message") for step in results(result) if step["status"] == "skipped"} == {
        "Its condition is not met."
    }
    assert not result.is_error


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
