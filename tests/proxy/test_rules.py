"""`--rules`: what follows what, by the person who uses a server that never heard of `nextTool`.

What a file of rules means is tested in `tests/chaining/test_rules.py`, and public servers in
`test_public_servers.py`.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from tool_chaining.operator import finish_writing
from tool_chaining.rules import Rules

from ..kit.command import Cli
from ..kit.pages import ROOT, block
from ..kit.stdio import lines_of
from .scripted import FAILED, Shop, said
from .test_command import ended, refused
from .wire import JSON, PROXY

RULES_SHOWN = ROOT / "specs" / "examples" / "rules"

RULES = """\
[[rule]]
after = "search"
then = "hold"
title = "Hold the first hit"
arguments = { to = { jmespath = "structuredContent.hits[0].id" } }

[[rule]]
after = "hold"
then = "notify"
arguments = { to = { jmespath = "steps[0].arguments.to" }, ref = { jmespath = "json.ref" } }

[[rule]]
after = "drop"
on = "error"
then = "notify"
ask = false

[[rule]]
after = "sense_*"
then = { jmespath = "structuredContent.next_steps[0].tool", allow = ["sense_*"] }
ask = false
arguments = { jmespath = "structuredContent.next_steps[0].args" }
"""


def hint(tool: str, **args: Any) -> JSON:
    """A result with a hint in the form of luuuc/sense."""
    steps = [{"tool": tool, "args": args, "reason": "See who calls it."}]
    return said("Found.", structuredContent={"next_steps": steps})


ANSWERS = {
    "search": [said("Found.", structuredContent={"hits": [{"id": "H1"}]})],
    "hold": [said('{"ref": "R7"}')],
    "notify": [said("Told.")],
    "drop": [FAILED],
    "sense_search": [hint("sense_graph", symbol="main")],
    "sense_graph": [hint("drop", symbol="main")],
}
SEARCH: JSON = {"to": "Ann"}
HOLD = {"to": "H1"}
NOTIFY = {"to": "Ann", "ref": "R7"}


def shop(folder: Path, **script: Any) -> Shop:
    return Shop(folder, answers=ANSWERS, advertises=False, **script)


def written(folder: Path, text: str, name: str = "rules.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "choice", "trusts", "answers", "calls"),
    [
        # A person is asked about each step, also where the server's hints are trusted.
        ("search", None, False, ["accept", "accept"], [("hold", HOLD), ("notify", NOTIFY)]),
        ("search", None, True, ["accept", "decline"], [("hold", HOLD)]),
        ("search", None, True, None, []),
        ("search", "all", False, None, [("hold", HOLD), ("notify", NOTIFY)]),
        # The file has agreed to these beforehand, and a `deny` wins.
        ("drop", None, False, None, [("notify", {})]),
        ("drop", "deny notify\nallow *", False, None, []),
        # Hints of the server name a tool that the file allows, and one that it does not.
        ("sense_search", None, False, None, [("sense_graph", {"symbol": "main"})]),
    ],
)
async def test_rules_add_steps_to_a_server_without_directives(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    first: str,
    choice: str | None,
    trusts: bool,
    answers: Any,
    calls: Any,
) -> None:
    server = shop(tmp_path, hints={"readOnlyHint": True})
    if choice and "\n" in choice:
        choice = written(tmp_path, choice, "consent")
    rules = Rules.load(Path(written(tmp_path, RULES)))
    options = server.options(choice, trust_hints=trusts, rules=rules)
    questions: list[str] = []

    async def on_question(_: Any, question: Any) -> ElicitResult:
        questions.append(question.message)
        return ElicitResult(action=answers[len(questions) - 1])

    asked = None if answers is None else on_question
    async with server.host("stdio", options, asked) as host:
        result = (await host.call_tool(first, SEARCH)).model_dump_json()
    made = [(one["tool"], one["arguments"]) for one in server.noted if "tool" in one]
    assert made == [(first, SEARCH), *calls]
    # Question, log and merged result say whose wish it is.
    assert len(questions) == len(answers or [])
    if questions:
        assert questions[0] == (
            'Your rule 1 wants to call "hold" after "search", with {"to": "H1"}. Its reason: '
            '"Hold the first hit". Do you agree?'
        )
    finish_writing()
    errors = capfd.readouterr().err
    steps = [first, *(tool for tool, _ in calls)]
    for before, tool in pairwise(steps):
        assert f'calls "{tool}" after "{before}", by rule ' in errors
        assert f'the next step \\"{tool}\\" by a rule of the user, has already run' in result
    assert "asked for by the server" not in result
    assert "suggested" not in result
    not_asked = first == "search" and answers is None and not calls
    assert ("nobody could be asked" in result) is not_asked


def test_the_command_follows_a_file_of_rules_and_lists_no_output_schemas(tmp_path: Path) -> None:
    schema = {"type": "object"}
    tools = [{"name": name, "inputSchema": schema, "outputSchema": schema} for name in ANSWERS]
    server = shop(tmp_path, tools=[tools])
    command = [*PROXY, "--rules", written(tmp_path, RULES), "--consent", "all", "--"]
    with lines_of([*command, *server.command]) as proxy:
        proxy.open({})
        assert len(proxy.call(2, "search", SEARCH)["result"]["content"]) == 4
        proxy.send({"id": 3, "method": "tools/list", "params": {}})
        assert not any("outputSchema" in tool for tool in proxy.said()["result"]["tools"])
    assert server.made("notify") == [NOTIFY]


@pytest.mark.parametrize(
    "text",
    [
        block("specs/proxy/rules.md", "flights.toml", "toml"),
        *(path.read_text("utf-8") for path in sorted(RULES_SHOWN.glob("*.toml"))),
    ],
)
def test_the_rules_on_the_page_load(tmp_path: Path, text: str) -> None:
    assert Rules.load(Path(written(tmp_path, text))).rules


PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
LISTED: Any = [
    {
        "name": "search",
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "payer": {"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]},
            },
            "$defs": {"Person": PERSON},
        },
        "outputSchema": {
            "type": "object",
            "properties": {"hits": {"type": "array", "items": {"properties": {"id": {}}}}},
        },
    },
    {
        "name": "hold",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "days": {"type": "integer"},
                "for": {"type": "array", "items": PERSON},
            },
            "required": ["id"],
            "additionalProperties": False,
        },
    },
]
THEN_HOLD = "[[rule]]\nafter = 'search'\nthen = 'hold'\narguments = "
GOOD = THEN_HOLD + "{ id = { jmespath = 'json.id' } }\n"
AGAIN = "[[rule]]\nafter = 'hold'\nwhen = 'json.more'\nthen = 'search'\nask = false\n"


@pytest.mark.parametrize(
    ("rules", "line", "code"),
    [
        (GOOD, "", 0),
        (
            GOOD.replace("search", "serch"),
            'Error: rule 1: after: the server lists no tool "serch". Did you mean "search"?',
            1,
        ),
        (
            GOOD.replace("'hold'", "'held'"),
            'Error: rule 1: then: the server lists no tool "held". Did you mean "hold"?',
            1,
        ),
        (GOOD.replace("'hold'", "'ho*'"), 'then: the server lists no tool "ho*"', 1),
        (
            THEN_HOLD + "{ id = 'A', day = 1 }",
            "Error: rule 1: arguments.day: hold does not know it. Did you mean days?",
            1,
        ),
        (
            THEN_HOLD + "{ id = 'A', for = [{ name = 'Ann', nam = { jmespath = 'json.n' } }] }",
            "Error: rule 1: arguments.for.nam: hold does not know it. Did you mean name?",
            1,
        ),
        (
            THEN_HOLD + "{ id = 'A', for = [{}] }",
            "Error: rule 1: arguments.for.name is missing: hold needs it.",
            1,
        ),
        (
            THEN_HOLD + "{ days = 1 }",
            "Error: rule 1: arguments.id is missing: hold needs it.",
            1,
        ),
        (
            THEN_HOLD + "{ id = 'A', x = 1 }",
            "Error: rule 1: arguments.x: hold does not know it.",
            1,
        ),
        (THEN_HOLD + "{ id = 'A', days = 'two' }", "days", 1),
        (
            GOOD + GOOD.replace("'search'", "'se*'"),
            "Error: rule 2 can never match: rule 1 always matches before it.",
            1,
        ),
        (
            GOOD.replace("json.id", "arguments.mesage"),
            "Error: rule 1: 'arguments.mesage' does not fit search: there is no mesage here; ",
            1,
        ),
        (
            GOOD.replace("json.id", "structuredContent.hits[0].idd"),
            "does not fit search: there is no idd here; did you mean id?",
            1,
        ),
        (GOOD.replace("json.id", "structuredContent.hits[*].id | [0]"), "", 0),
        (GOOD.replace("json.id", 'arguments."mesage"'), "did you mean message?", 1),
        (GOOD.replace("json.id", "structuredContent | hit"), "did you mean hits?", 1),
        (
            GOOD.replace("'hold'", "'hold'\non = 'error'").replace("json", "structuredContent"),
            "",
            0,
        ),
        (GOOD.replace("json.id", "arguments.payer.name"), "", 0),
        (
            THEN_HOLD + "{ id = 'A', days = { match = '[0-9]+', in = 'content[0].text' } }",
            "Error: rule 1: arguments.days: hold wants integer, and match gives a text.",
            1,
        ),
        (GOOD.replace("json.id", "arguments.payer.nam"), "did you mean name?", 1),
        (
            GOOD.replace("then", "when = 'json.risk > `5`'\nthen", 1) + GOOD,
            "Warning: rule 2 has no condition, so it follows where the condition of rule 1 is not "
            "met, also for a missing value.",
            0,
        ),
        (GOOD.replace("then", "when = '!(json.risk <= `5`)'\nthen", 1) + GOOD, "", 0),
        (GOOD + AGAIN, "Warning: a cycle, which ends only at a chain's limit: search -> ", 0),
    ],
)
def test_check_compares_the_rules_with_the_list_and_calls_no_tool(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rules: str,
    line: str,
    code: int,
) -> None:
    revision = "2025-11-25" if code else "2026-07-28"
    server = shop(tmp_path, tools=[LISTED], revision=revision)
    assert ended("--rules", written(tmp_path, rules), "--check", "--", *server.command) == code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (1 if line else 0), lines
    assert line in "".join(lines)
    assert ".." not in "".join(lines)
    assert not any("tool" in one for one in server.noted)


def test_try_shows_the_call_that_a_result_leads_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cli: Cli
) -> None:
    rules = written(tmp_path, RULES)

    def tried(result: Any) -> str:
        path = written(tmp_path, json.dumps(result), "result.json")
        assert ended("--rules", rules, "--try", path) == 0
        return capsys.readouterr().out

    found = {"tool": "search", "structuredContent": {"hits": [{"id": "H1"}]}}
    first = 'Step 1, "search": rule 1 matches. It would call "hold" with {"to": "H1"}. '
    others = [
        f'Step 1, "search": rule {n} is not tried, since rule 1 matches.' for n in range(2, 5)
    ]
    assert tried(found).splitlines() == [f"{first}The person would be asked.", *others]
    assert tried({"tool": "search"}).splitlines() == [
        'Step 1, "search": rule 1 matches, and ends the chain: '
        "arguments.to: 'structuredContent.hits[0].id' has no value.",
        *others,
    ]
    said_of_all = tried({"tool": "drop"})
    assert 'rule 1 does not match: its after is "search".\n' in said_of_all
    assert "rule 3 does not match: its on is error, and the result is no error.\n" in said_of_all
    assert said_of_all.endswith("no rule matches. Nothing would be called.\n")
    assert '{"tool": …' in refused("--rules", rules, "--try", written(tmp_path, "[1]", "list"))
    # What `call --json` prints has all steps.
    server = shop(tmp_path)
    called = ("call", "search", "--arguments", '{"to": "Ann"}', "--json", "--rules", rules)
    printed = cli(*called, "--consent", "none", "--", *server.command).out
    assert tried(json.loads(printed)) == tried(found)


def test_banking_server_call_follows_rules(tmp_path: Path, cli: Cli) -> None:
    server = shop(tmp_path)
    rules = ("--rules", written(tmp_path, RULES), "--consent", "all")
    called = cli("call", "search", "--arguments", '{"to": "Ann"}', *rules, "--", *server.command)
    assert called.code == 0, called.err
    assert server.made("notify") == [NOTIFY]
    assert "your rule 2 says so, after hold" in called.out
