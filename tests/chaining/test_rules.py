"""Rules of the user: what follows what, on a server that never heard of directives."""

import json
from pathlib import Path
from typing import Any

import pytest

from tool_chaining import ChainResult, Follower, Outcome, Proposal, Step
from tool_chaining.directive import Found
from tool_chaining.rules import MAX_WORK, Rules, RulesUnreadable

from .support import FakeClient, Noting, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

FLIGHTS = """
[[rule]]
after = "search_flights"
when = "structuredContent.flights[0].price < `300`"
then = "hold_seat"
title = "Hold the first seat found"
[rule.arguments]
flight = { jmespath = "structuredContent.flights[0].id" }
passenger = { jmespath = "arguments.passenger" }
note = { text = "Held for {arguments.passenger}" }
seat = { jmespath = "structuredContent.flights[0].seat", optional = true }
extras = [{ value = { jmespath = "not read" } }, { deep = { text = "{json.meal}" } }]

[[rule]]
after = "hold_seat"
on = "error"
then = "notify_agent"
ask = false
arguments = { about = { jmespath = "steps[0].arguments.passenger" } }

[[rule]]
after = "get_*"
then = { jmespath = "structuredContent.next_steps[0].tool", allow = ["get_*", "search"] }
arguments = { jmespath = "structuredContent.next_steps[0].args" }
"""


def rules(tmp_path: Path, text: str = FLIGHTS) -> Rules:
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return Rules.load(path)


def flights(price: Any = 200, **more: Any) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": '{"meal": "fish"}'}],
        "structuredContent": {"flights": [{"id": "F1", "price": price}]},
        **more,
    }


class Airline:
    """A server without the extension, in somebody's client."""

    def __init__(self, tmp_path: Path, text: str = FLIGHTS, **results: Any) -> None:
        self.results = {"search_flights": flights(), **results}
        names = ("search_flights", "hold_seat", "notify_agent", "get_a", "get_b", "search", "drop")
        hints = {"destructiveHint": False, "openWorldHint": False}
        self.client = FakeClient([tool(name, annotations=hints) for name in names], self.answer)
        self.client.server_capabilities = {"tools": {}}
        self.rules = rules(tmp_path, text)

    def answer(self, name: str, _: Any) -> Any:
        return self.results.get(name, {"content": [{"type": "text", "text": name}]})

    async def call(self, name: str, **options: Any) -> ChainResult:
        options.setdefault("consent", Noting(True))
        follower = Follower(self.client, rules=self.rules, **options)
        return await follower.call_tool(name, {"passenger": "Ann"})


async def test_a_rule_takes_the_part_of_a_directive(tmp_path: Path) -> None:
    airline, person = Airline(tmp_path), Noting(True)
    chain = await airline.call("search_flights", consent=person)

    held = {
        "flight": "F1",
        "passenger": "Ann",
        "note": "Held for Ann",
        "extras": [{"jmespath": "not read"}, {"deep": "fish"}],
    }
    assert airline.client.calls == [("search_flights", {"passenger": "Ann"}), ("hold_seat", held)]
    assert chain.outcome is Outcome.COMPLETED
    [(_, proposal)] = person.asked
    assert (proposal.title, proposal.previous_tool) == (
        "Hold the first seat found",
        "search_flights",
    )
    assert proposal.rule is airline.rules.rules[0]
    said = str(chain.merged_json()["content"][-1]["text"])
    assert 'the next step "hold_seat" by a rule of the user, has already run' in said
    assert "server" not in said


@pytest.mark.parametrize(
    ("first", "results", "then"),
    [
        ("search_flights", {"search_flights": flights(300)}, None),
        ("search_flights", {"search_flights": flights(isError=True)}, None),
        ("hold_seat", {}, None),
        ("hold_seat", {"hold_seat": {"content": [], "isError": True}}, "notify_agent"),
        ("drop", {}, None),
    ],
)
async def test_the_first_rule_whose_condition_is_met_counts(
    tmp_path: Path, first: str, results: Any, then: str | None
) -> None:
    airline = Airline(tmp_path, **results)
    chain = await airline.call(first)
    assert [name for name, _ in airline.client.calls[1:]] == ([then] if then else [])
    assert chain.outcome is Outcome.COMPLETED
    assert then or chain.merged_json() == airline.answer(first, None)


@pytest.mark.parametrize(
    ("step", "then", "noted"),
    [
        ({"tool": "get_b", "args": {}}, "get_b", ""),
        ({"tool": "search", "args": {"q": 1}}, "search", ""),
        ({"tool": "drop", "args": {}}, None, 'rule 3 does not match: "drop" is not in its allow'),
        ({"tool": ["get_b"], "args": {}}, None, "is not in its allow"),
        ({"args": {}}, None, ""),
    ],
)
async def test_a_result_chooses_no_tool_that_the_file_does_not_allow(
    tmp_path: Path, step: Any, then: str | None, noted: str, caplog: pytest.LogCaptureFixture
) -> None:
    airline = Airline(tmp_path, get_a={"content": [], "structuredContent": {"next_steps": [step]}})
    await airline.call("get_a")
    assert [name for name, _ in airline.client.calls[1:]] == ([then] if then else [])
    assert noted in caplog.text


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (flights(flights=0), "'structuredContent.flights[0].id' gives nothing"),
        ({"next": [{"tool": "get_b"}]}, "'structuredContent.next_steps[0].args' gives nothing"),
        ({"next": [{"tool": "get_b", "args": [1]}]}, "next_steps[0].args' gives no object"),
        (
            {"next": [{"tool": "get_b", "args": {"b": "\ud800"}}]},
            "arguments.b: a text with half of",
        ),
    ],
)
async def test_nothing_is_called_with_half_of_its_arguments(
    tmp_path: Path, result: Any, problem: str
) -> None:
    first = "search_flights"
    if "next" in result:
        first, result = (
            "get_a",
            {"content": [], "structuredContent": {"next_steps": result["next"]}},
        )
    else:
        result["structuredContent"] = {"flights": [{"price": 1}]}
    airline = Airline(tmp_path, **{first: result})
    chain = await airline.call(first)
    assert len(airline.client.calls) == 1
    assert chain.outcome is Outcome.INVALID_ARGUMENTS
    assert problem in chain.detail
    assert problem in chain.merged_json()["content"][-1]["text"]
    assert chain.detail.startswith("rule ")


async def test_a_host_forbids_what_a_rule_would_not_ask(tmp_path: Path) -> None:
    class NoNotices(Noting):
        def forbids(self, proposal: Proposal) -> bool:  # type: ignore[override]
            return proposal.tool.name == "notify_agent"

    airline = Airline(tmp_path, hold_seat={"content": [], "isError": True})
    chain = await airline.call("search_flights", consent=NoNotices(True))
    assert (chain.outcome, len(airline.client.calls)) == (Outcome.DECLINED, 2)


async def test_a_rule_settles_no_doubt(tmp_path: Path) -> None:
    unasked = FLIGHTS.replace('title = "', 'ask = false\ntitle = "')
    airline = Airline(tmp_path, unasked, hold_seat={"content": [], "isError": True})
    follower = Follower(airline.client, rules=airline.rules)
    for calls in (3, 4):
        await follower.call_tool("search_flights", {"passenger": "Ann"})
        assert len(airline.client.calls) == calls, "the seat may be held already"


@pytest.mark.parametrize("directive", [5, {"tool": "search"}], ids=str)
async def test_the_directive_of_a_server_that_is_not_followed_is_none(
    tmp_path: Path, directive: Any
) -> None:
    airline = Airline(tmp_path, search_flights=flights(_meta={"nextTool": directive}))
    chain = await airline.call("search_flights")
    assert [name for name, _ in airline.client.calls] == ["search_flights", "hold_seat"]
    assert chain.outcome is Outcome.COMPLETED


async def test_rules_share_a_limit_of_work(tmp_path: Path) -> None:
    page = [{"id": n, "name": "x" * 90} for n in range(10_000)]
    text = FLIGHTS.replace(
        "structuredContent.flights[0].price", "structuredContent.page" + "[?id]" * 90
    )
    airline = Airline(tmp_path, text, search_flights=flights(structuredContent={"page": page}))
    assert 450 * len(json.dumps(page)) > MAX_WORK
    chain = await airline.call("search_flights")
    assert chain.outcome is Outcome.MALFORMED_DIRECTIVE
    assert len(airline.client.calls) == 1
    assert chain.detail.startswith("rule 1: ")
    assert "takes too much work" in chain.detail
    # A plain path in a megabyte is no problem.
    airline = Airline(
        tmp_path,
        search_flights=flights(
            structuredContent={"page": page, "flights": [{"id": "F", "price": 1}]}
        ),
    )
    assert len((await airline.call("search_flights")).steps) == 2


AB = "[[rule]]\nafter = 'a'\nthen = 'b'\n"
A = f"{AB}arguments = "
WRONG = [
    ("", "it has no rules; each begins with [[rule]]."),
    ("[[rule]]\nafter = 5 5", "(at line 2, column 11)"),
    ("[[rules]]\nafter = 'a'", "'rules' is not known. Did you mean rule?"),
    ("rule = 1", "it has no rules"),
    ("rule = [1]", "it has no rules"),
    ("[[rule]]", "line 1 (rule 1): after is missing."),
    (
        AB + "\n[[rule]]\nafter = 'a'",
        "line 5 (rule 2): then is missing.",
    ),
    (
        AB + "when = 'weight < 300'",
        "wrong at character 10; a number in a comparison is written `300`",
    ),
    (AB + "wen = 'c'", "'wen' is not known. Did you mean when?"),
    ("[[rule]]\nafter = ''\nthen = 'b'", "after must be a tool's name or pattern, not ''."),
    ("[[rule]]\nafter = 5\nthen = 'b'", "after must be a tool's name or pattern, not 5."),
    ("[[rule]]\nafter = 'a'\nthen = 5", "then must be a tool's name, or { jmespath = …"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b' }", "then.allow must be the patterns"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b', allow = [] }", "then.allow must be"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b', allow = [5] }", "then.allow must be"),
    ("[[rule]]\nafter = 'a'\nthen = { allow = ['b'] }", "then must be a tool's name"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b', alow = ['b'] }", "Did you mean allow?"),
    (
        AB + "arguments = { a = { jmespath = 'b', text = 'c' } }",
        "arguments.a: beside jmespath stands nothing but optional = true, not 'text'.",
    ),
    (
        AB + "arguments = { jmespath = 'b', optional = true }",
        "arguments: beside jmespath stands nothing, not 'optional'",
    ),
    ("[[rule]]\nafter = '?*'\nthen = { jmespath = 'b', allow = ['b'] }", "after must name tools"),
    (AB + "when = true", "when must be an expression in quotes"),
    (AB + "when = '[@, @]'", "multi select list is not supported"),
    (AB + "on = 'failure'", "on must be one of success, error, any"),
    (AB + "ask = 'no'", "ask must be true or false, not 'no'."),
    ('[[rule]]\nafter = "a"\nthen = "b"\ntitle = "a\\nb"', "title must be a text of 1 to 200"),
    (A + "[]", "arguments must be a table, not []."),
    (
        A + "{ a = { jmespath = 5 } }",
        "arguments.a: jmespath",
    ),
    (
        A + "{ a = { text = 'plain' } }",
        "arguments.a: a text",
    ),
    (A + "{ a = { text = '{b} {' } }", "written twice"),
    (
        A + "{ a = { jmespath = 'b', more = 1 } }",
        "value =",
    ),
    (
        A + "{ a = { b = [{ jmespath = 'c(' }] } }",
        "'c(' cannot be used: it is wrong at",
    ),
    (A + "{ on = 2026-11-27 }", "arguments.on: a date"),
    (
        A + "{ n = nan }",
        "arguments.n: a float such as nan",
    ),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_a_wrong_file_stops_the_start_with_one_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(RulesUnreadable) as raised:
        rules(tmp_path, text)
    assert problem in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "rules.toml")), "it names the file"
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(RulesUnreadable, match=r"nowhere\.toml': no such file"):
        Rules.load(str(tmp_path / "nowhere.toml"))
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(RulesUnreadable, match="not UTF-8"):
        Rules.load(tmp_path / "odd.toml")


def test_rules_see_no_more_than_the_calls_of_the_chain(tmp_path: Path) -> None:
    text = "[[rule]]\nafter = 'a'\nthen = 'b'\narguments = { seen = { jmespath = 'steps[0]' } }"
    step = Step(1, "a", {"x": 1}, {"content": [], "_meta": {"secret": 1}, "isError": None})
    found = rules(tmp_path, text).next([step], pytest.fail)
    assert found is not None
    assert isinstance(found.reading, Found)
    assert found.reading.directive.arguments["seen"] == {
        **{"tool": "a", "arguments": {"x": 1}, "isError": False, "content": []},
        **{"structuredContent": None, "json": None},
    }
