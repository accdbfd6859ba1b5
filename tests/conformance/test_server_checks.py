"""The checks of servers as code: one function for each id, found by one search."""

import base64
import html
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from banking_server.chaining import content
from banking_server.conformance.report.judgement import Finding, Untestable
from banking_server.conformance.requirements import load_checks
from banking_server.conformance.server import bounded, checks
from banking_server.conformance.server.checks import CHECKS
from banking_server.conformance.server.checks.target import (
    arguments_valid,
    hidden_from_model,
    holds_secret,
)
from banking_server.conformance.server.evidence import ResultWithDirective
from banking_server.conformance.server.reading import SeenDirective
from banking_server.conformance.target.i_json import directive_faults

PACKAGE = Path(checks.__file__).parent


def test_the_registered_checks_are_those_of_the_specification() -> None:
    assert set(CHECKS) == {each.id for each in load_checks().values() if each.side == "server"}


@pytest.mark.parametrize("check_id", sorted(CHECKS))
def test_one_search_finds_a_check(check_id: str) -> None:
    found = [
        (path.name, number)
        for path in sorted(PACKAGE.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if f'"{check_id}"' in line
    ]
    assert len(found) == 1
    function = CHECKS[check_id].judge
    assert function.__name__ == check_id.removeprefix("tool-chaining-server-").replace("-", "_")
    assert function.__module__ == f"{checks.__name__}.{found[0][0].removesuffix('.py')}"


def test_checks_of_one_kind_of_evidence_need_the_same() -> None:
    needs: dict[type, set[str | None]] = {}
    for each in CHECKS.values():
        for kind in each.on:
            needs.setdefault(kind, set()).add(load_checks()[each.id].needs)
    assert {on.__name__: need for on, need in needs.items() if len(need) > 1} == {}


# Hidden from the model: the suite decides it by itself, and as the client half does.

HIDDEN = [
    ({"visibility": []}, True),
    ({"visibility": ["app"]}, True),
    ({"visibility": ["model"]}, False),
    ({"visibility": ["app", "model"]}, False),
    ({"visibility": [{"model": 1}, None, 7]}, True),
    ({"visibility": [{"x": [1]}, "model"]}, False),
    ({"visibility": None}, True),
    ({"visibility": "model"}, False),
    ({"visibility": True}, True),
    ({}, False),
    (None, False),
    ([], False),
    ("visibility", False),
]
METAS = [
    *(({"ui": ui}, hidden) for ui, hidden in HIDDEN),
    ({}, False),
    (None, False),
    ([], False),
    ("ui", False),
    ({"visibility": []}, False),
]


@pytest.mark.parametrize(("meta", "hidden"), METAS, ids=str)
def test_judge_and_judged_hide_the_same_tools(meta: Any, hidden: bool) -> None:
    assert hidden_from_model({"name": "x", "_meta": meta}) is hidden
    assert content.hidden_from_model(meta) is hidden


# Arguments and the input schema: the suite has a rule of its own for what cannot be checked.

SECRET = "hunter2-secret"
BOMB: dict[str, Any] = {
    "$ref": "#/$defs/0",
    "$defs": {
        **{str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 3} for n in range(30)},
        "30": {"type": "object"},
    },
}
MISFITS = [
    ({"required": ["order"]}, {}, '$ breaks the schema\'s rule required: ["order"]'),
    ({"properties": {"a": {"type": "integer"}}}, {"a": SECRET}, "$.a breaks"),
    ({"$ref": "#/$defs/absent"}, {}, "cannot be used"),
    ({"type": 7}, {}, "cannot be used"),
    ({"$schema": 7}, {}, "cannot be used"),
    ({"properties": {"a": {"pattern": "^(a+)+!$"}}}, {"a": "a" * 60}, "$.a breaks"),
    ({"properties": {"a": {"pattern": "^\\d$"}}}, {"a": "\u0663"}, "$.a breaks"),
    ({"properties": {"a": {"pattern": "^(a)?\\1b$"}}, "required": ["c"]}, {"a": "b"}, "required"),
]


def judged(schema: Any, arguments: Any) -> Finding:
    found = said_of(schema, arguments)
    assert isinstance(found, Finding)
    return found


def said_of(schema: Any, arguments: Any) -> Finding | Untestable | None:
    directive = SeenDirective({"tool": "x", "arguments": arguments})
    target = {"name": "x", "inputSchema": schema}
    result = ResultWithDirective(
        step="step",
        messages=(),
        directive=directive,
        content=(),
        declared=True,
        structured={},
        output_schema={},
        target=target,
        listed=["x"],
    )
    return arguments_valid(result)


@pytest.mark.parametrize(
    ("schema", "arguments", "seen"), MISFITS, ids=lambda value: str(value)[:50]
)
def test_arguments_that_nothing_vouches_for(schema: Any, arguments: Any, seen: str) -> None:
    found = judged(schema, arguments)
    assert not found.holds
    assert seen in found.seen
    assert SECRET not in found.seen


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]},
        {"properties": {"b": {"pattern": "^\\p{Lu}-"}}},
        {"properties": {"b": {"pattern": "^(?<kind>P)"}}},
        {"properties": {"b": {"pattern": "^\\u{50}"}}},
        {"properties": {"c": {"uniqueItems": True}}},
    ],
    ids=lambda schema: str(schema)[:60],
)
def test_arguments_that_meet_the_schema(schema: Any) -> None:
    many = [{"x": number} for number in range(20_000)]
    found = judged(schema, {"a": 1, "b": "P-1", "c": many})
    assert found.holds, found.seen


def test_a_schema_that_takes_too_long_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "SECONDS", 1)
    said = said_of(BOMB, {})
    assert isinstance(said, Untestable)
    assert "the input schema takes it too long, or too much memory" in said.reason
    assert judged({"required": ["a"]}, {"a": 1}).holds


# What a parser hides


@pytest.mark.parametrize(
    ("directive", "fault"),
    [
        ('{"tool": "a", "tool": "a"}', 'the name "tool" stands 2 times'),
        ('{"arguments": {"x": [{"b": 1, "b": 1}]}}', 'the name "b" stands 2 times'),
        ('{"arguments": {"x": 9007199254740993}}', "9007199254740993, which RFC 8785 writes as 9"),
        ('{"arguments": {"x": 1e400}}', "1e400, which RFC 8785 writes as nothing"),
        ('{"arguments": {"x": 0.1000000000000000055}}', "0.1000000000000000055"),
        ('{"arguments": {"x": NaN}}', "NaN"),
        (f'{{"arguments": {{"x": {"1" * 41}}}}}', "the number of 41 characters, which"),
        ('{"arguments": {"x": "\\ud83d"}}', "a lone surrogate, U+D83D"),
        ('{"arguments": {"x": "\\uffff"}}', "no character, U+FFFF"),
        ('{"tool": "a"}, "nextTool": {"tool": "b", "tool": "b"}', 'the name "tool" stands 2 times'),
    ],
)
def test_what_is_no_i_json(directive: str, fault: str) -> None:
    text = f'{{"id": 1, "result": {{"_meta": {{"nextTool": {directive}}}}}}}'
    assert fault in "; ".join(directive_faults(text))
    assert directive_faults(text.encode()) == directive_faults(text)


@pytest.mark.parametrize(
    "directive",
    [
        '{"tool": "a", "arguments": {"x": [9007199254740992, 1.50, 1e2, -0.0, 0.1, 1E-7]}}',
        '{"tool": "a", "arguments": {"x": {"x": {"x": "\\ud83d\\ude00"}}}}',
        '{"tool": "a"}, "other": {"b": 1, "b": 1e400}',
        "null",
    ],
)
def test_what_is_i_json(directive: str) -> None:
    text = f'{{"id": 1, "x": 1, "x": 1, "result": {{"_meta": {{"nextTool": {directive}}}}}}}'
    assert directive_faults(text) == ()


# Secrets, as they are and encoded

WORD = 'say "friend" \\ & enter \u00e9'


@pytest.mark.parametrize(
    "value",
    [
        WORD,
        f"the word is {WORD}!",
        {"a": [{"b": WORD}]},
        {WORD: 1},
        json.dumps({"word": WORD}),
        json.dumps({"inner": json.dumps({"word": WORD})}),
        f"https://example.com/?word={quote_plus(WORD)}",
        base64.b64encode(WORD.encode()).decode(),
        base64.b64encode(f"u:{WORD};".encode()).decode(),
        base64.b64encode(f"u{WORD};!".encode()).decode(),
        json.dumps([json.dumps([json.dumps([json.dumps([WORD])])])]),
        quote(WORD, safe="").replace("%2", "%252").replace("%C3", "%c3"),
        "".join(f"%{byte:02x}" for byte in WORD.encode()),
        WORD.encode().hex().upper(),
        "".join(f"\\u{ord(each):04X}" for each in WORD),
        html.escape(json.dumps({"word": WORD})),
        "".join(f"&#{ord(each)};" for each in WORD),
        quote(base64.b64encode(f"ann:{WORD}".encode())),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_secret_is_seen_however_it_is_written(value: Any) -> None:
    assert holds_secret({"tool": "x", "arguments": {"a": value}}, WORD)


def test_a_number_can_be_a_secret() -> None:
    assert holds_secret({"code": 123456}, "123456")
    assert not holds_secret({"code": 1234567}, "123456")


def test_a_short_secret_is_not_found_by_chance() -> None:
    assert not holds_secret({"text": "room 12"}, "12")
    assert holds_secret({"text": "12"}, "12")
