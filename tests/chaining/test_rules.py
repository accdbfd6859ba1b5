"""Rules of the user: what follows what, on a server that never heard of directives."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tool_chaining import IDENTIFIER, ChainResult, Follower, Outcome, Proposal, Step
from tool_chaining.directive import Found
from tool_chaining.expressions import pattern_of
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
        (flights(flights=0), "'structuredContent.flights[0].id' has no value"),
        ({"next": [{"tool": "get_b"}]}, "'structuredContent.next_steps[0].args' has no value"),
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
    ("rule = [1]", "it has no rules"),
    ("[[rule]]", "line 1 (rule 1): after is missing."),
    (AB + "\n[[rule]]\nafter = 'a'", "line 5 (rule 2): then is missing."),
    (
        AB + "when = 'weight < 300'",
        "wrong at character 10; a number in a comparison is written `300`",
    ),
    (AB + "wen = 'c'", "'wen' is not known. Did you mean when?"),
    ("[[rule]]\nafter = ''\nthen = 'b'", "after must be a tool's name or pattern, not ''."),
    ("[[rule]]\nafter = 'a'\nthen = 5", "then must be a tool's name, or { jmespath = …"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b' }", "then.allow must be the patterns"),
    ("[[rule]]\nafter = 'a'\nthen = { allow = ['b'] }", "then must be a tool's name"),
    ("[[rule]]\nafter = 'a'\nthen = { jmespath = 'b', alow = ['b'] }", "Did you mean allow?"),
    (
        AB + "arguments = { a = { jmespath = 'b', text = 'c' } }",
        "arguments.a: 'text' cannot stand beside jmespath, only optional = true can.",
    ),
    (
        AB + "arguments = { jmespath = 'b', optional = true }",
        "arguments: 'optional' cannot stand beside jmespath",
    ),
    ("[[rule]]\nafter = '?*'\nthen = { jmespath = 'b', allow = ['b'] }", "after must name tools"),
    (AB + "when = true", "when must be an expression, not True."),
    (AB + "when = '[@, @]'", "multi select list is not supported"),
    (AB + "on = 'failure'", "on must be one of success, error, any"),
    (AB + "ask = 'no'", "ask must be true or false, not 'no'."),
    ('[[rule]]\nafter = "a"\nthen = "b"\ntitle = "a\\nb"', "title must be a text of 1 to 200"),
    (A + "[]", "arguments must be a table, not []."),
    (A + "{ a = { jmespath = 5 } }", "arguments.a: jmespath"),
    (A + "{ a = { text = 'plain' } }", "arguments.a: a text"),
    (A + "{ a = { text = '{b} {' } }", "written twice"),
    (A + "{ a = { jmspath = 'json' } }", "'jmspath' is not known. Did you mean jmespath?"),
    (A + "{ a = { mach = 'x', in = 'json' } }", "'mach' is not known. Did you mean match?"),
    (f"{AB}when = {{ mach = 'x', in = 'json' }}", "when: 'mach' is not known. Did you mean match?"),
    (f"{AB}when = 'tool == get-sum'", "at character 12; a text is written 'approved'"),
    (f"{AB}when = 'isError = `true`'", "values are compared with =="),
    (A + "{ a = { regex = 'x' } }", "'regex' is not known. Did you mean match?"),
    (A + "{ a = { match = 'x' } }", "arguments.a: match also needs where the text is"),
    (A + r"{ a = { match = '(\w', in = 'json' } }", r"match '(\w' in 'json' cannot be used"),
    (A + "{ a = { match = '(x)(y)', in = 'json' } }", "it has more than one group"),
    (A + "{ a = { match = 'x(?=y)', in = 'json' } }", "RE2 says: invalid perl operator: (?="),
    (AB + "when = { match = 'x', in = 'jsn' }", "did you mean json?"),
    *(
        (f'{AB}when = "{when}"', f"there is no {name} here; a text is written 'approved'")
        for when, name in (
            ("json.status != approved", "approved"),
            ("isError == false", "false"),
            ("contains(json.tags, fraud)", "fraud"),
            ("!(spot || json.ok)", "spot"),
            ("items[*].id", "items"),
            ("@.status", "status"),
            ("flags[?a == b] | [0]", "flags"),
            ("steps[-1].structuredcontent.ok", "structuredcontent"),
            ("steps[?tool == pay].json", "pay"),
            ("[0].structuredContent.ok", "list"),
        )
    ),
    (AB + "when = '!json.ok'", "write !(a.b), not !a.b"),
    (AB + "when = 'tool.name || isError'", "have no members"),
    (A + "{ a = { text = 'x {status}' } }", "there is no status here"),
    (A + "{ on = 2026-11-27 }", "arguments.on: a date"),
    (A + "{ n = nan }", "arguments.n: a float such as nan"),
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


def test_a_file_of_comments_has_no_rules() -> None:
    """As a draft has, if nothing in it is agreed to."""
    assert Rules.loads("# [[rule]]\n", "draft.toml").rules == ()


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


@pytest.mark.parametrize(
    "when",
    [
        "json.items[?type == kind] && steps[0].tool == 'a'",
        "contains(content[0].text, 'x')",
        "@ | json",
        "@.json.status == 'x'",
        "steps[?json.ok].arguments.x || content[?type == kind].text",
        "!(structuredContent.risk <= `5`)",
        "json.a[?x == y].z | [0]",
    ],
)
def test_names_below_the_root_are_free(tmp_path: Path, when: str) -> None:
    assert rules(tmp_path, f'{AB}when = "{when}"').rules[0].when == when


GUARD = """
[[rule]]
after = "search"
when = "structuredContent.risk > `5` || contains(structuredContent.flags, 'fraud')"
then = "drop"
ask = false
[[rule]]
after = "search"
then = "hold_seat"
ask = false
"""


@pytest.mark.parametrize(
    ("data", "then"),
    [
        ({"risk": 3, "flags": []}, "hold_seat"),
        ({"risk": 9}, "drop"),
        ({"risk": "9", "flags": []}, None),
        ({"risk": True, "flags": []}, None),
        ({"risk": [9], "flags": []}, None),
        ({"risk": 3}, None),
        ({"risk": 3, "flags": {"fraud": True}}, None),
        ({"risk": 3, "flags": [], "memo": "x" * 8_000_000}, None),
    ],
)
async def test_a_guard_that_cannot_be_evaluated_ends_the_chain(
    tmp_path: Path, data: Any, then: str | None
) -> None:
    airline = Airline(tmp_path, GUARD, search={"content": [], "structuredContent": data})
    chain = await airline.call("search")
    assert [name for name, _ in airline.client.calls[1:]] == ([then] if then else [])
    if then is None:
        assert chain.outcome is Outcome.MALFORMED_DIRECTIVE
        assert "rule 1: " in chain.merged_json()["content"][-1]["text"]


async def test_a_missing_value_is_no_match_and_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    airline = Airline(tmp_path, search_flights={"content": [], "structuredContent": {}})
    follower = Follower(airline.client, consent=Noting(True), rules=airline.rules)
    for _ in range(2):
        assert len((await follower.call_tool("search_flights")).steps) == 1
    line = "rule 1 does not match: structuredContent.flights[0].price is missing in the result"
    assert caplog.text.count(line) == 1


@pytest.mark.parametrize(
    ("when", "calls"),
    [
        ("json.state != 'error'", 1),
        ("'error' != json.state", 1),
        ("arguments.mod == json.state", 1),
        ("arguments.passenger != 'Bob'", 2),
        ("json.state == `null`", 2),
        ("content[?kind != 'x']", 2),
        ("!(json.risk <= `5`)", 2),
    ],
)
async def test_a_missing_value_equals_nothing_and_differs_from_nothing(
    tmp_path: Path, when: str, calls: int
) -> None:
    airline = Airline(tmp_path, f'{FILLED}when = "{when}"\n')
    await airline.call("search")
    assert len(airline.client.calls) == calls


@pytest.mark.parametrize(
    ("written", "unknown"),
    [
        (
            "arguments.dryrun = true",
            "arguments.dryrun: drop does not know it. Did you mean dryRun?",
        ),
        ("[rule.arguments]\nwhen = 'json.ok'", "arguments.when: drop does not know it."),
        ("arguments.to = [{ nam = 'Ann' }]", "arguments.to.nam: drop does not know it."),
        ("arguments = { dryRun = true, to = [{ name = 'Ann' }], more = { any = 1 } }", None),
    ],
)
async def test_an_argument_that_the_tool_does_not_list_is_not_sent(
    tmp_path: Path, written: str, unknown: str | None
) -> None:
    """Many servers would ignore it, and change what was only to be looked at."""
    airline = Airline(tmp_path, FILLED + written)
    to = {"type": "array", "items": {"properties": {"name": {}}}}
    listed = {"properties": {"dryRun": {}, "to": to, "more": {"type": "object"}}}
    airline.client.tools = [tool("search"), tool("drop", inputSchema={"type": "object", **listed})]
    chain = await airline.call("search", validate=False)
    assert len(airline.client.calls) == (2 if unknown is None else 1)
    if unknown is not None:
        assert chain.outcome is Outcome.INVALID_ARGUMENTS
        assert chain.detail.startswith(f"rule 1: {unknown}")


async def test_a_pattern_does_not_match_the_tool_that_its_rule_calls(tmp_path: Path) -> None:
    airline = Airline(tmp_path, "[[rule]]\nafter = '*'\nthen = 'drop'\nask = false\n")
    assert [step.tool for step in (await airline.call("search")).steps] == ["search", "drop"]
    assert [step.tool for step in (await airline.call("drop")).steps] == ["drop"]


FILLED = "[[rule]]\nafter = 'search'\nthen = 'drop'\nask = false\n"


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("arguments.text = { jmespath = 'content[0].text' }", {"text": "hash ab12 done"}),
        ('arguments = { text = "x", value = 1 }', {"text": "x", "value": 1}),
        ("arguments.jmespath = { jmespath = 'tool' }", {"jmespath": "search"}),
        ("arguments = { jmespath = 'arguments' }", {"passenger": "Ann"}),
        ("arguments.a.b = { value = { text = '{json}' } }", {"a": {"b": {"text": "{json}"}}}),
        (r"arguments.h = { match = 'hash (\w+)', in = 'content[0].text' }", {"h": "ab12"}),
        (r"arguments.h = { match = 'h\w+', in = 'content[0].text' }", {"h": "hash"}),
        ("arguments.h = { match = 'z', in = 'content[0].text', optional = true }", {}),
    ],
)
async def test_any_argument_can_be_filled(tmp_path: Path, arguments: str, sent: Any) -> None:
    text = {"type": "text", "text": "hash ab12 done"}
    airline = Airline(tmp_path, FILLED + arguments, search={"content": [text]})
    await airline.call("search")
    assert airline.client.calls[1:] == [("drop", sent)]


async def test_a_condition_can_be_a_pattern(tmp_path: Path) -> None:
    when = "when = { match = '(?i)please use', in = 'content[0].text' }\n"
    for text, calls in (("Please use drop", 2), ("Done", 1), (None, 1), ("Please use \ud800", 1)):
        content = [] if text is None else [{"type": "text", "text": text}]
        airline = Airline(tmp_path, FILLED + when, search={"content": content})
        await airline.call("search")
        assert len(airline.client.calls) == calls


def test_a_file_with_patterns_needs_re2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern_of.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(RulesUnreadable, match="match needs RE2: install the extra"):
        rules(tmp_path, A + "{ a = { match = 'x', in = 'json' } }")


async def test_a_directive_of_an_unadvertised_server_leaves_the_result_of_a_rules_step(
    tmp_path: Path,
) -> None:
    """The rule is the user's configuration for this server (TC-C-03)."""
    words = {"type": "text", "text": "Call drop", "_meta": {IDENTIFIER: {"describes": "nextTool"}}}
    first = {
        "content": [{"type": "text", "text": "found"}, words],
        "structuredContent": {"id": 1, "nextStep": {"tool": "drop", "arguments": {}}},
        "_meta": {"nextTool": {"tool": "drop"}},
    }
    airline = Airline(tmp_path, FILLED, search=first)
    merged = str((await airline.call("search")).merged_json())
    assert len(airline.client.calls) == 2
    assert not [word for word in ("nextTool", "nextStep", "Call drop") if word in merged]


async def test_the_operator_reads_where_the_server_takes_the_place_of_a_rule(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = {"content": [], "_meta": {"nextTool": {"tool": "hold_seat"}}}
    airline = Airline(tmp_path, FILLED, search=first)
    airline.client.server_capabilities = {"extensions": {IDENTIFIER: {}}}
    follower = Follower(airline.client, consent=Noting(True), rules=airline.rules)
    for _ in range(2):
        await follower.call_tool("search")
    assert [name for name, _ in airline.client.calls] == ["search", "hold_seat"] * 2
    assert caplog.text.count("rule 1 was not used where the server names the next step") == 1


async def test_again_agrees_to_repetitions_of_a_rules_step(tmp_path: Path) -> None:
    failed = {"content": [], "isError": True}
    for again, calls in ((True, 3), (False, 1)):
        text = f"{FILLED}on = 'error'\nagain = {str(again).lower()}\n"
        airline = Airline(tmp_path, text, search=failed)
        follower = Follower(airline.client, consent=Noting(), rules=airline.rules)
        for _ in range(3):
            await follower.call_tool("search")
        assert [name for name, _ in airline.client.calls].count("drop") == calls
