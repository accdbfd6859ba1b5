"""`jmespath` and `text`: values of earlier results, by expressions whose work is bounded."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, target
from hypothesis import given as generated
from hypothesis import strategies as st
from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter, Visitor

from banking_server.tools.multiplex import expressions
from banking_server.tools.multiplex.expressions import (
    MAX_EXPRESSION,
    MAX_WORK,
    ExpressionError,
    Work,
    evaluated,
    parsed,
)
from banking_server.tools.multiplex.references import MAX_TEXT, Expression, Text

from ..kit.bank import World, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, LOCKED, PREPARE, SAVINGS, STATEMENT
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
        (f"{ACCOUNT}[?n > `1`].id | [0]", "a"),
        (f"{ACCOUNT}[].id", ["a", "b"]),
        (f"{ACCOUNT}[::-1].id | [0]", "b"),
        (f"max_by({ACCOUNT}[?n], &n).id", "a"),
        (f"length({ACCOUNT})", 2),
        ("[-1].structuredContent.amount", 2),
        ("[1].structuredContent.id || [2].structuredContent.amount", 2),
        ("[1].{skipped: status, error: isError}", {"skipped": "skipped", "error": False}),
        (f"join(', ', {ACCOUNT}[].id)", "a, b"),
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
        ("[0].a[?b == `2`].c[1]", {0}),
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
    ("[0].a b", "see its character 7"),
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


class Counted:
    """What the package does for us, counted where it does it."""

    def __init__(self) -> None:
        self.units = 0
        """Visits of nodes, and members of lists and objects that are looked at."""
        self.characters = 0
        """Characters of texts, and bits of numbers."""

    def look_at(self, *values: Any) -> None:
        """Count all that values are made of, but stop far above what is allowed."""
        level = list(values)
        while level and self.units < 10 * MAX_WORK:
            self.units += len(level)
            self.characters += sum(len(one) for one in level if isinstance(one, str))
            self.characters += sum(one.bit_length() for one in level if isinstance(one, int))
            lists = [one for one in level if isinstance(one, list)]
            objects = [list(one.values()) for one in level if isinstance(one, dict)]
            level = [item for one in (*lists, *objects) for item in one]

    def check(self) -> None:
        assert self.units <= MAX_WORK / 10, self.units
        assert self.characters <= 2 * MAX_WORK, self.characters


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    count = Counted()
    visit, call, is_json = Visitor.visit, Functions.call_function, expressions.is_json

    def visiting(self: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
        count.units += 1
        return visit(self, node, *args, **kwargs)

    def calling(self: Any, name: str, given: list[Any]) -> Any:
        count.look_at(*given)
        made = call(self, name, given)
        count.look_at(made if isinstance(made, str) else [])
        return made

    def making(make: Any) -> Any:
        def made(self: Any, node: Any, value: Any) -> Any:
            found = make(self, node, value)
            count.units += len(found or ())
            return found

        return made

    def checking(value: Any) -> bool:
        count.look_at(value)
        return is_json(value)

    def comparing(compare: Any) -> Any:
        def compared(left: Any, right: Any) -> Any:
            count.look_at(left, right)
            return compare(left, right)

        return compared

    monkeypatch.setattr(Visitor, "visit", visiting)
    monkeypatch.setattr(Functions, "call_function", calling)
    for name in ("visit_flatten", "visit_slice"):
        monkeypatch.setattr(TreeInterpreter, name, making(getattr(TreeInterpreter, name)))
    monkeypatch.setattr(expressions, "is_json", checking)
    for name, compare in list(TreeInterpreter.COMPARATOR_FUNC.items()):
        monkeypatch.setitem(TreeInterpreter.COMPARATOR_FUNC, name, comparing(compare))
    return count


DOUBLED = "`[1e308,1e-308]`" + "|[@,@][]" * 11

LONGER = "|join('',[@,@])"

GREEDY = [
    f"{DOUBLED}|[{','.join(['avg(@)'] * 50)}]",
    f"{DOUBLED}|[{','.join(['@==@'] * 70)}]",
    f"{DOUBLED}|[{','.join(['@[]'] * 90)}]",
    " | ".join(["[@,@][]"] * 50),
    " | ".join(["[@,@]"] * 60),
    " | ".join(["[@,@]"] * 55) + " | to_string(@)",
    "to_string([0]) | " + " | ".join(["join('',[@,@])"] * 27),
    "to_string([0]) | " + " | ".join(["join(@,[@,@])"] * 25),
    f"{DOUBLED}|[{','.join(['@[::-1]'] * 45)}] | [0]",
    f'to_string([0]){LONGER * 7}|join(@,`["",""]`{"|[@,@][]" * 10})',
    f"'{'9' * 250}'{LONGER * 4}|to_number(@)|[@,@]{'|[@,@][]' * 11}|to_string(@)",
    " | ".join(["[@,@]"] * 30) + " == " + " | ".join(["[@,@]"] * 30),
]


@pytest.mark.parametrize("expression", GREEDY, ids=named(GREEDY))
def test_an_expression_cannot_keep_the_server_busy(counted: Counted, expression: str) -> None:
    assert len(expression) <= MAX_EXPRESSION
    with pytest.raises(ExpressionError, match="take too much work"):
        evaluated(parsed(expression), RESULTS, Work())
    counted.check()


async def test_all_expressions_of_a_call_share_what_they_may_cost(
    world: World, counted: Counted
) -> None:
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
    counted.check()


ATOMS = [
    *("@", "[0]", "[-1]", "[*]", "[]", "[?a]", "[::2]", "[::0]", "*", "a", "`1`", "'x'", "&a"),
    *("`[]`", "&@", "[@,@]", "[@,@][]", "{a:@,b:@}", "`[1e308,0.1]`", '`["a","b"]`'),
]
TERMS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(lambda a, b, sign: f"{a}{sign}{b}", inner, inner, st.sampled_from("|.<,")),
        st.builds(lambda a, b: f"{a} == {b} || !{a}", inner, inner),
        st.builds(lambda a, times: f"[{','.join([a] * times)}]", inner, st.integers(1, 40)),
        st.builds(
            lambda name, some: f"{name}({', '.join(some)})",
            st.sampled_from(sorted(Functions.FUNCTION_TABLE)),
            st.lists(inner, max_size=3),
        ),
    ),
    max_leaves=8,
)
DOUBLINGS = ["[@,@][]", "[@,@]", "[*].[@,@][]", "join('',[@,@])", "[@,reverse(@)][]", "{a:@,b:@}"]
SEEDS = ["[0]", "`[1e308,1e-308]`", "`[1,2]`", '`["a","b"]`', "to_string(@)", "[*]", "`[[],{}]`"]


def test_whatever_is_written_gives_json_or_is_refused_and_costs_no_more(counted: Counted) -> None:
    """A search for what costs most: lists and texts that are doubled, and all that is done then."""

    @generated(
        st.sampled_from(SEEDS), st.sampled_from(DOUBLINGS), st.integers(0, 24), st.lists(TERMS)
    )
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def property_(seed: str, doubling: str, times: int, then: list[str]) -> None:
        counted.units = counted.characters = 0
        try:
            tree = parsed("|".join([seed, *[doubling] * times, *then]))
            json.dumps(evaluated(tree, RESULTS, Work()), allow_nan=False)
        except ExpressionError:
            pass
        counted.check()
        target(float(counted.units), label="units")

    property_()


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "needed"),
    [
        ("{[0].structuredContent.accounts[0].id}-dup", "a-dup", {0}),
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
    ("[0].status}", "has a brace too many"),
    ("{[0].{a: status}.a}", "without an object like {a: b} in it"),
    ("{}", "is no JMESPath expression: it is empty"),
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


async def test_the_seeds_three_steps_without_a_model(world: World) -> None:
    """List; read the one about everyday spending; make a duplicate named `${originalName}-dup`."""
    found = "[0].structuredContent.accounts[?accountName == 'Everyday Checking']"
    async with world.customer() as me:
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
    assert structured(result)["message"].count("\n") >= 2
    assert world.sql("SELECT to_account_id, amount_minor, memo FROM transfer") == [
        (EVERYDAY, 30, "Everyday Checking-dup")
    ]


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
