"""`--rules`: what follows what, by the person who uses a server that never heard of `nextTool`.

What a file of rules means is tested in `tests/chaining/test_rules.py`, and public servers in
`test_public_servers.py`.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tool_chaining.rules import Rules

from ..kit.command import run
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


@pytest.mark.parametrize(
    ("first", "options", "answers", "calls"),
    [
        # A person is asked about each step, also where the server's hints are trusted.
        ("search", [], ["accept", "accept"], [("hold", HOLD), ("notify", NOTIFY)]),
        ("search", ["--trust-hints"], ["accept", "decline"], [("hold", HOLD)]),
        ("search", ["--trust-hints"], None, []),
        ("search", ["--consent", "all"], None, [("hold", HOLD), ("notify", NOTIFY)]),
        # The file has agreed to these beforehand, and a `deny` wins.
        ("drop", [], None, [("notify", {})]),
        ("drop", ["--consent", "deny notify\nallow *"], None, []),
        # Hints of the server name a tool that the file allows, and one that it does not.
        ("sense_search", [], None, [("sense_graph", {"symbol": "main"})]),
    ],
)
def test_a_server_that_never_heard_of_chains_has_them(
    tmp_path: Path, first: str, options: list[str], answers: Any, calls: Any
) -> None:
    server = shop(tmp_path, hints={"readOnlyHint": True})
    options = [written(tmp_path, one, "consent") if "\n" in one else one for one in options]
    command = [*PROXY, "--rules", written(tmp_path, RULES), *options, "--", *server.command]
    questions = []
    with lines_of(command) as proxy:
        proxy.open({} if answers is None else {"elicitation": {}})
        came = proxy.call(2, first, SEARCH)
        while "method" in came:
            questions.append(came["params"]["message"])
            answer = {"action": answers[len(questions) - 1], "content": {}}
            proxy.send({"id": came["id"], "result": answer})
            came = proxy.said()
        _, errors = proxy.end()
    made = [(one["tool"], one["arguments"]) for one in server.noted if "tool" in one]
    assert made == [(first, SEARCH), *calls]
    # Question, log and merged result say whose wish it is.
    result = json.dumps(came["result"], ensure_ascii=False)
    assert len(questions) == len(answers or [])
    if questions:
        assert questions[0] == (
            'Your rule 1 wants to call "hold" after "search", with {"to": "H1"}. Its reason: '
            '"Hold the first hit". Do you agree?'
        )
    steps = [first, *(tool for tool, _ in calls)]
    for before, tool in pairwise(steps):
        assert f'calls "{tool}" after "{before}", by rule ' in errors
        assert f'the next step \\"{tool}\\" by a rule of the user, has already run' in result
    assert "asked for by the server" not in result
    assert "suggested" not in result
    not_asked = first == "search" and answers is None and not calls
    assert ("nobody could be asked" in result) is not_asked
    assert calls or " led to no call: " in errors


def test_output_schemas_are_left_out_while_there_are_rules(tmp_path: Path) -> None:
    schema = {"type": "object", "additionalProperties": False}
    tools = [{"name": "search", "inputSchema": {"type": "object"}, "outputSchema": schema}]
    server = shop(tmp_path, tools=[tools])
    for options, kept in (([], True), (["--rules", written(tmp_path, RULES)], False)):
        with lines_of([*PROXY, *options, "--", *server.command]) as proxy:
            proxy.open()
            proxy.send({"id": 2, "method": "tools/list", "params": {}})
            [tool] = proxy.said()["result"]["tools"]
            assert ("outputSchema" in tool) is kept


@pytest.mark.parametrize(
    "text",
    [
        block("specs/proxy/rules.md", "flights.toml", "toml"),
        *(path.read_text("utf-8") for path in sorted(RULES_SHOWN.glob("*.toml"))),
    ],
)
def test_the_rules_that_are_shown_can_be_read(tmp_path: Path, text: str) -> None:
    assert Rules.load(Path(written(tmp_path, text))).rules


def test_a_wrong_file_stops_the_start(tmp_path: Path) -> None:
    file = written(tmp_path, RULES.replace("then", "than", 1))
    said_of_it = f"{file}, line 1 (rule 1): 'than' is not known. Did you mean then?\n"
    assert refused("--rules", file, "--", "true") == said_of_it


PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
LISTED: Any = [
    {"name": "search", "inputSchema": {"type": "object"}},
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


def test_check_says_in_a_line_that_the_server_cannot_be_asked(tmp_path: Path) -> None:
    problem = refused("--rules", written(tmp_path, RULES), "--check", "--", "false")
    assert "the server ended instead of answering" in problem


def test_try_shows_the_call_that_a_result_leads_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = written(tmp_path, RULES)

    def tried(result: Any) -> str:
        path = written(tmp_path, json.dumps(result), "result.json")
        assert ended("--rules", rules, "--try", path) == 0
        return capsys.readouterr().out

    found = {"tool": "search", "structuredContent": {"hits": [{"id": "H1"}]}}
    first = 'Step 1, "search": rule 1 matches. It would call "hold" with {"to": "H1"}. '
    assert tried(found) == first + "The person would be asked.\n"
    assert tried({"tool": "search"}) == (
        'Step 1, "search": rule 1 matches, and ends the chain: '
        "rule 1: arguments.to: 'structuredContent.hits[0].id' gives nothing.\n"
    )
    said_of_all = tried({"tool": "drop"})
    assert 'rule 1 does not match: its after is "search".\n' in said_of_all
    assert "rule 3 does not match: its on is error, and the result is none.\n" in said_of_all
    assert said_of_all.endswith("no rule matches. Nothing would be called.\n")
    assert '{"tool": …' in refused("--rules", rules, "--try", written(tmp_path, "[1]", "list"))
    # What `call --json` prints has all steps.
    server = shop(tmp_path)
    called = ("call", "search", "--arguments", '{"to": "Ann"}', "--json", "--rules", rules)
    printed = run(*called, "--consent", "none", "--", *server.command).stdout
    assert tried(json.loads(printed)) == tried(found)


def test_the_terminal_follows_rules_too(tmp_path: Path) -> None:
    server = shop(tmp_path)
    rules = ("--rules", written(tmp_path, RULES), "--consent", "all")
    called = run("call", "search", "--arguments", '{"to": "Ann"}', *rules, "--", *server.command)
    assert called.returncode == 0, called.stderr
    assert server.made("notify") == [NOTIFY]
    assert "your rule 2 says so, after hold" in called.stdout
