"""`jmespath`: a value is taken from earlier results, by an expression of bounded effort."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import settings
from hypothesis import strategies as st

from banking_server.tools.multiplex.expressions import (
    MAX_EXPRESSION,
    ExpressionError,
    evaluated,
    parsed,
)
from banking_server.tools.multiplex.references import MAX_TEXT, Expression, Text

from ..kit.bank import World, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, LOCKED, PREPARE, SAVINGS, STATEMENT, TO_SAVINGS
from ..tools.cases import named
from .support import FORM, MULTIPLEX, ClientModel, given, multiplex, request, results, statuses

pytestmark = pytest.mark.anyio

RESULTS: list[Any] = [
    {"status": "done", "structuredContent": {"accounts": [{"id": "a", "n": 1.5}, {"id": "b"}]}},
    {"status": "skipped", "isError": False},
    {"status": "done", "structuredContent": {"amount": 2, "none": None}},
]
ACCOUNT = "[0].structuredContent.accounts"


def take(expression: str) -> dict[str, str]:
    return {"jmespath": expression}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[0].status", "done"),
        (f"{ACCOUNT}[1].id", "b"),
        (f"{ACCOUNT}[?n > `1`].id | [0]", "a"),
        (f"{ACCOUNT}[].id", ["a", "b"]),
        (f"length({ACCOUNT})", 2),
        (f"sum([{ACCOUNT}[0].n, [2].structuredContent.amount])", 3.5),
        ("[-1].structuredContent.amount", 2),
        ("[1].structuredContent.id || [2].structuredContent.amount", 2),
        ("[?status == 'skipped'] | [0].isError", False),
        ("[1].{skipped: status, error: isError}", {"skipped": "skipped", "error": False}),
        (f"join(', ', {ACCOUNT}[].id)", "a, b"),
        ("@", RESULTS),
        ("sum([`0.1`, `0.2`])", 0.3),
        ("sum([`0.1`, `0.2`]) == `0.3`", True),
        ("sum([`9007199254740993`, `1`])", 9007199254740994),
        ("sum(`[]`)", 0),
        ("sum([`1e308`, `0.01`, `-1e308`])", 0.01),
        ("avg([`0.1`, `0.2`, `0.6`])", 0.3),
        ("avg(`[]`)", None),
        ("to_number('25.50')", 25.5),
        ("to_number('-3')", -3),
        ("to_number('1_000') || to_number('nan') || to_number(' 1')", None),
        ("to_number(`7`)", 7),
        ("to_number(`true`)", None),
    ],
)
def test_an_expression_gives_a_value(expression: str, value: Any) -> None:
    assert Expression(expression).problem(3) is None
    assert Expression(expression).look(RESULTS) == (value, value is not None)


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        ("[1].status", {1}),
        ("[-1].status", {2}),
        ("@ | [0].status", set()),
        ("[0].a == [2].b && !([1].c)", {0, 1, 2}),
        ("sum([[0].a, [2].b])", {0, 2}),
        ("{a: [0].x, b: [1]}", {0, 1}),
        ("[0].a || [1].b", set()),
        ("[0].a || [0].b", {0}),
        ("[0].a[1].b[2]", {0}),
        ("[0].a[?b == `2`].c[1]", {0}),
        ("[*].status", set()),
        ("[0:2].status", set()),
    ],
)
def test_the_results_that_an_expression_cannot_do_without(
    expression: str, needed: set[int]
) -> None:
    assert Expression(expression).problem(3) is None
    assert Expression(expression).needed(3) == needed


BAD: list[tuple[str, str]] = [
    ("", "is no JMESPath expression: it is empty. Nothing was run."),
    (" ", "it ends too early"),
    ("[0", "it ends too early"),
    ("[0].", "it ends too early"),
    ("[0]]", "see its character 4"),
    ("[0].a b", "see its character 7"),
    ("[0].'a", "see its character 5"),
    ("PROMPT_ARGUMENT: the id", "see its character"),
    ("#/0/structuredContent", "see its character 1"),
    ("steal([0])", 'there is no function "steal"'),
    ("length([0], [0])", "length() takes 1"),
    ("sum()", "is no JMESPath expression"),
    ("(" * 400, "is no JMESPath expression"),
    ("!" * 400 + "[0]", "it is nested too deeply"),
    ("[0]" + ".a" * 300, f"it has 603 characters, and at most {MAX_EXPRESSION} are allowed"),
    ("[1].status", "must look at earlier results, like [0].structuredContent"),
    ("[-2].status", "must look at earlier results"),
    ("[0].a || [9].b", "must look at earlier results"),
]


@pytest.mark.parametrize(("expression", "said"), BAD, ids=named(BAD))
@pytest.mark.parametrize("place", ["argument", "condition"])
async def test_what_cannot_work_is_refused_in_one_sentence_before_anything_runs(
    world: World, expression: str, said: str, place: str
) -> None:
    arguments = {"accountId": take(expression) if place == "argument" else EVERYDAY}
    when = {**take(expression), "exists": True} if place == "condition" else None
    async with world.customer() as me:
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, BALANCE, arguments, when=when)
        )
    assert result.is_error
    assert said in words(result)
    assert words(result).startswith("tools.1: ")
    assert "\n" not in words(result)
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


async def test_the_first_step_has_nothing_to_look_at(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(me, request(1, BALANCE, {"accountId": take("length(@)")}))
    assert "must look at earlier results" in words(result)
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("[0].structuredContent.accounts[99].accountId", "gives nothing."),
        ("[0].nothing", "gives nothing."),
        ("[*].structuredContent.nothing | [0]", "gives nothing."),
        ("sum([0].structuredContent.accounts)", "gives nothing: sum() takes array-number only."),
        ("to_number('nan')", "gives nothing."),
        ("sum([`1e999`])", "gives nothing: it gives no JSON value."),
        ("ceil(`1e999`)", "gives nothing: it cannot be worked out."),
        ("[0].content[::0]", "gives nothing: it cannot be worked out."),
    ],
)
async def test_an_expression_that_gives_nothing_fails_its_step_by_name(
    world: World, mode: str, expression: str, said: str
) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": take(expression)}),
            request(3, BALANCE, {"accountId": SAVINGS}),
        )
    assert statuses(result) == ["done", "failed", "done"]
    message = results(result)[1]["message"]
    assert message.startswith(f"arguments.accountId: {expression!r} ")
    assert message.endswith(said)
    assert [tool for tool, _ in world.outcomes()][:2] == [ACCOUNTS, BALANCE]


GREEDY = [
    " | ".join(["[@,@][]"] * 50),
    " | ".join(["[@,@]"] * 60),
    " | ".join(["[@,@]"] * 55) + " | to_string(@)",
    "to_string([0]) | " + " | ".join(["join('',[@,@])"] * 27),
    "to_string([0]) | " + " | ".join(["join(@,[@,@])"] * 25),
    "[" + ",".join(["@"] * 190) + "][] | " + "[" + ",".join(["@"] * 40) + "][] | [@,@,@,@][]",
    " | ".join(["[@,@]"] * 30) + " == " + " | ".join(["[@,@]"] * 30),
]


@pytest.mark.parametrize("expression", GREEDY, ids=named(GREEDY))
def test_an_expression_cannot_keep_the_server_busy(expression: str) -> None:
    assert len(expression) <= MAX_EXPRESSION
    with pytest.raises(ExpressionError, match="too much work"):
        evaluated(parsed(expression), RESULTS)


ATOMS = ["@", "[0]", "[-1]", "[*]", "[]", "[?a]", "[::0]", "*", "a", "`1`", "'x'", "&a", "`[]`"]
FUNCTIONS = [
    *("abs", "avg", "ceil", "contains", "ends_with", "floor", "join", "keys", "length", "map"),
    *("max", "max_by", "merge", "min_by", "not_null", "reverse", "sort", "sort_by", "sum"),
    *("starts_with", "to_array", "to_number", "to_string", "type", "values"),
]
TERMS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(lambda a, b, sign: f"{a}{sign}{b}", inner, inner, st.sampled_from("|.<,")),
        st.builds(lambda a, b: f"{a} == {b} || !{a}", inner, inner),
        st.builds(lambda a: f"[{a}]", inner),
        st.builds(lambda a: f"{{x: {a}}}", inner),
        st.builds(
            lambda name, some: f"{name}({', '.join(some)})",
            st.sampled_from(FUNCTIONS),
            st.lists(inner, max_size=3),
        ),
    ),
    max_leaves=12,
)


@generated(TERMS)
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_gives_json_or_is_refused(expression: str) -> None:
    with suppress(ExpressionError):
        json.dumps(evaluated(parsed(expression), RESULTS), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "value", "needed"),
    [
        ("{[0].structuredContent.accounts[0].id}-dup", "a-dup", {0}),
        ("{[0].status}: {sum([`0.1`, `0.2`])}, {[1].isError}", "done: 0.3, false", {0, 1}),
        ("{[2].structuredContent.amount}", "2", {2}),
        ("{{{[0].status}}} {{}}", "{done} {}", {0}),
        ('{join(`"}{"`, [0].structuredContent.accounts[].id)}', "a}{b", {0}),
        ("{'{'}{[1].status}", "{skipped", {1}),
        ("{[-1].status}\nPROMPT_ARGUMENT x", "done\nPROMPT_ARGUMENT x", {2}),
        ("{'PROMPT'}_ARGUMENT: {[0].status}", "PROMPT_ARGUMENT: done", {0}),
    ],
)
def test_a_text_has_values_in_it(text: str, value: str, needed: set[int]) -> None:
    assert Text(text).problem(3) is None
    assert Text(text).value(RESULTS) == value
    assert Text(text).needed(3) == needed


UNCLOSED = "{'\\'"

BAD_TEXTS: list[tuple[str, str]] = [
    ("no place", "has no place like"),
    ("{{[0].status}}", "has no place like"),
    ("", "has no place like"),
    ("{[0].status", "has a brace too many"),
    ("[0].status}", "has a brace too many"),
    ("{[0].{a: status}.a}", "without an object like {a: b} in it"),
    ("{'}", "has a brace too many"),
    ("{}", "is no JMESPath expression: it is empty"),
    ("{[0]..status}", "is no JMESPath expression"),
    ("{[1].status}", "must look at earlier results"),
    ("{PROMPT_ARGUMENT: the name} {[0].status}", "cannot be a prompt"),
    ("PROMPT_ARGUMENT: the id of {[0].status}", "cannot be a prompt"),
    ("{[0].status}" + "x" * MAX_TEXT, f"has more than {MAX_TEXT} characters"),
    ("{[0].status}" * 101, "at most 100 references"),
    # A search for its pieces would take hours: each one ends at the very end.
    (UNCLOSED * 250_000, f"has more than {MAX_TEXT} characters"),
]


def test_a_text_is_read_once_from_left_to_right() -> None:
    """A search that began again at each brace would take days for this one."""
    assert Text(UNCLOSED * 250_000).needed(1) == set()


async def test_a_text_that_cannot_work_is_refused_before_anything_runs(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as me:
        for text, said in BAD_TEXTS:
            result = await multiplex(
                me, request(1, ACCOUNTS), request(2, PREPARE, {"memo": {"text": text}})
            )
            assert said in words(result), text
            assert words(result).endswith("Nothing was run."), text
        many = [{"text": (UNCLOSED * MAX_TEXT)[:MAX_TEXT]}] * 1_500
        result = await multiplex(me, request(1, ACCOUNTS), request(2, PREPARE, {"memo": many}))
        assert "has a brace too many" in words(result)
        failing = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, PREPARE, {"memo": {"text": "{[0].structuredContent.accounts}-dup"}}),
            request(3, PREPARE, {"memo": {"text": "{[0].nothing}-dup"}}),
        )
    _, a_list, nothing = results(failing)
    assert a_list["message"].endswith("accounts' gives a list, which is no part of a text.")
    assert nothing["message"] == "arguments.memo: '[0].nothing' gives nothing."
    assert [tool for tool, _ in world.outcomes()] == [
        *[MULTIPLEX] * len(BAD_TEXTS),
        MULTIPLEX,
        ACCOUNTS,
        MULTIPLEX,
    ]


async def test_the_seeds_three_steps_without_a_model(world: World, mode: str) -> None:
    """List; read the one about everyday spending; make a duplicate named `${originalName}-dup`."""
    found = "[0].structuredContent.accounts[?accountName == 'Everyday Checking']"
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, STATEMENT, {"accountId": take(f"{found}.accountId | [0]"), "days": 90}),
            request(
                3,
                PREPARE,
                {
                    "fromAccountId": SAVINGS,
                    "toAccountId": take("[1].structuredContent.accountId"),
                    "amount": take("sum([`0.1`, `0.2`])"),
                    "memo": {"text": f"{{{found} | [0].accountName}}-dup"},
                },
                when={**take("sum([`0.1`, `0.2`])"), "equals": 0.3},
            ),
        )
    assert statuses(result) == ["done"] * 3
    assert world.sql("SELECT to_account_id, amount_minor, memo FROM transfer") == [
        (EVERYDAY, 30, "Everyday Checking-dup")
    ]


MISTYPED: list[Any] = [
    {"jmespath": 5},
    {"jmespath": None},
    {"jmespath": ["[0].status"]},
    {"jmespath": "[0].status", "default": "x"},
    {"jmespath": "[0].status", "$ref": "#/0/status"},
    {"jmespath": "[0].status", "text": "{[0].status}"},
    {"text": 5},
]


@pytest.mark.parametrize("wrong", MISTYPED, ids=named(MISTYPED))
async def test_a_mistyped_reference_is_refused_before_anything_runs(
    world: World, wrong: Any
) -> None:
    async with world.customer() as me:
        for arguments, place in (
            ({"accountId": wrong}, "arguments.accountId"),
            ({"x": [{"y": wrong}, take("[0].status")]}, "arguments.x.0.y"),
        ):
            result = await multiplex(me, request(1, ACCOUNTS), request(2, BALANCE, arguments))
            assert result.is_error
            said = structured(result)["message"]
            assert said.startswith(f'tools.1.params.{place}: a reference is {{"jmespath": "…"}}')
            assert said.endswith("Nothing was run.")
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX] * 2


@pytest.mark.usefixtures("with_form")
async def test_expressions_stand_at_any_depth_and_keep_their_type(world: World, mode: str) -> None:
    first = {"count": 7, "ratio": 2.5, "agreed": False, "tags": ["red", "blue"]}
    at = "[0].structuredContent.given"
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, FORM, first),
            request(
                2,
                FORM,
                {
                    "count": take(f"length({at}.tags)"),
                    "ratio": take(f"sum([{at}.count, {at}.ratio])"),
                    "agreed": take(f"{at}.agreed"),
                    "tags": [take(f"{at}.tags[-1]"), "green"],
                    "extra": {"a": [[take(f"{at}.{{n: count}}")]]},
                    "note": take(f"join(' and ', {at}.tags)"),
                },
            ),
        )
    assert statuses(result) == ["done", "done"]
    assert given(result) == {
        "count": 2,
        "ratio": 9.5,
        "agreed": False,
        "tags": ["blue", "green"],
        "extra": {"a": [[{"n": 7}]]},
        "note": "red and blue",
    }


CONDITIONS: list[tuple[str, dict[str, Any], bool]] = [
    ("[0].status", {"equals": "done"}, True),
    ("[0].status", {"notEquals": "done"}, False),
    ("length([0].structuredContent.accounts) > `2`", {"equals": True}, True),
    ("[0].structuredContent.accounts[?isLocked].accountId | [0]", {"equals": LOCKED}, True),
    ("[0].structuredContent.accounts[0].isLocked", {"exists": True}, True),
    ("[0].nothing", {"exists": False}, True),
    ("[0].nothing", {"exists": True}, False),
    # Null is nothing in this language, and this is how one asks for it.
    ("[0].nothing", {"equals": None}, True),
    ("[0].nothing", {"notEquals": None}, False),
    ("[0].nothing", {"notEquals": "x"}, False),
    ("[0].status", {"notEquals": None}, True),
]


@pytest.mark.usefixtures("with_form")
async def test_a_step_runs_on_a_condition(world: World, mode: str) -> None:
    found = []
    async with world.customer(mode=mode) as me:
        for start in range(0, len(CONDITIONS), 9):
            some = CONDITIONS[start : start + 9]
            result = await multiplex(
                me,
                request("list", ACCOUNTS),
                *(
                    request(number, FORM, when={**take(expression), **comparison})
                    for number, (expression, comparison, _) in enumerate(some)
                ),
            )
            found += statuses(result)[1:]
    assert found == ["done" if holds else "skipped" for _, _, holds in CONDITIONS]


async def test_a_condition_that_nobody_can_tell_fails_its_step(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, ACCOUNTS, when={**take("sum([0].status)"), "exists": False}),
        )
    assert statuses(result) == ["done", "failed"]
    assert results(result)[1]["message"] == (
        "when: 'sum([0].status)' gives nothing: sum() takes array-number only."
    )


async def test_what_depends_on_a_failure_does_not_run_unless_it_has_another(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request("bad", BALANCE, {"accountId": "nonsense"}),
            request("good", ACCOUNTS),
            request("needs it", BALANCE, {"accountId": take("[0].structuredContent.accountId")}),
            request(
                "needs one",
                BALANCE,
                {
                    "accountId": take(
                        "[0].structuredContent.accountId"
                        " || [1].structuredContent.accounts[?accountName == 'High Yield Savings']"
                        ".accountId | [0]"
                    )
                },
            ),
        )
    assert statuses(result) == ["failed", "done", "not_run", "done"]


async def test_a_transfer_is_prepared_and_cancelled_by_expressions(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(
                2,
                PREPARE,
                {
                    **TO_SAVINGS,
                    "toAccountId": take(
                        "[0].structuredContent.accounts"
                        "[?accountName == 'High Yield Savings'].accountId | [0]"
                    ),
                    "amount": 12.34,
                },
            ),
            request(
                3,
                "confirm_or_cancel_money_transfer",
                {"transferId": take("[1].structuredContent.transferId"), "action": "cancel"},
                when={**take("[1].structuredContent.toAccountId"), "equals": SAVINGS},
            ),
        )
    assert statuses(result) == ["done"] * 3
    assert structured(result)["message"].count("\n") >= 2
    assert "is cancelled" in structured(result)["message"]
    assert world.sql("SELECT status FROM transfer") == [("voided",)]


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
