"""What some checks of servers say of inputs that no wrong server of the tests has."""

from typing import Any

import pytest

from tool_chaining import content
from tool_chaining_conformance.server.checks.target import hidden_from_model
from tool_chaining_conformance.server.checks.words import repeats_step_in_its_place
from tool_chaining_conformance.server.evidence import ResultWithDirective
from tool_chaining_conformance.server.reading import SeenDirective
from tool_chaining_conformance.target.i_json import directive_faults

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


@pytest.mark.parametrize(("ui", "hidden"), HIDDEN, ids=str)
def test_judge_and_judged_hide_the_same_tools(ui: Any, hidden: bool) -> None:
    for meta, is_hidden in (({"ui": ui}, hidden), (ui, False)):
        assert hidden_from_model({"name": "x", "_meta": meta}) is is_hidden
        assert content.hidden_from_model(meta) is is_hidden


# What one result shows


def result(arguments: Any, schema: Any = None, has: Any = None) -> ResultWithDirective:
    """Return a result with a directive to `review`, whose input schema is given.

    It has a text, or structured content.
    """
    return ResultWithDirective(
        step="review",
        messages=(),
        directive=SeenDirective({"tool": "review", "arguments": arguments}),
        content=({"type": "text", "text": has},) if isinstance(has, str) else (),
        declared=True,
        structured=has if isinstance(has, dict) else {},
        target={"name": "review", "inputSchema": schema or {"type": "object"}},
        listed=("review",),
    )


NESTED = '{"a": '


@pytest.mark.parametrize(
    ("arguments", "has", "fine"),
    [
        ({}, {"phase": "review", "errors": {}}, True),
        ({}, {"next": {"tool": "review", "arguments": {}}}, False),
        ({"order": "7"}, {"phase": "review", "of": {"order": "7"}}, False),
        ({"order": "7"}, {"phase": "review", "of": {"order": "8"}}, True),
        ({"order": "7"}, 'Next, call review: {"arguments": {"order": "7"}}', False),
        ({"order": "7"}, 'Next, call review: {"arguments": {"order": "8"}}', True),
        ({"order": "7"}, '{"log": "review is next", "of": {"order": "7"}}', True),
        ({"order": "7"}, f"review: {NESTED * 900}7{'}' * 900}", True),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_repeats_a_directive(arguments: Any, has: Any, fine: bool) -> None:
    judged = repeats_step_in_its_place(result(arguments, has=has))
    assert judged is not None
    assert judged.holds is fine


# What a parser hides


@pytest.mark.parametrize(
    ("directive", "fault"),
    [
        ('{"tool": "a", "tool": "a"}', 'the name "tool" occurs 2 times'),
        ('{"arguments": {"x": [{"b": 1, "b": 1}]}}', 'the name "b" occurs 2 times'),
        ('{"arguments": {"x": 9007199254740993}}', "9007199254740993, which RFC 8785 writes as 9"),
        ('{"arguments": {"x": 1e400}}', "1e400, which RFC 8785 cannot write"),
        ('{"arguments": {"x": 0.1000000000000000055}}', "0.1000000000000000055"),
        ('{"arguments": {"x": NaN}}', "NaN"),
        ('{"arguments": {"x": -Infinity}}', "the number -Infinity, which RFC 8785 cannot write"),
        ('{"arguments": {"x": 1e-99999999999999999999}}', "which RFC 8785 writes as 0.0"),
        (f'{{"arguments": {{"x": {"1" * 41}}}}}', "the number of 41 characters, which"),
        ('{"arguments": {"x": "\\ud83d"}}', "half of a surrogate pair, U+D83D"),
        ('{"arguments": {"x": "\\uffff"}}', "a noncharacter, U+FFFF"),
        ('{"tool": "a"}, "nextTool": {"tool": "b", "tool": "b"}', 'the name "tool" occurs 2 times'),
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
