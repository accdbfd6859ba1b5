"""Is a reply an answer, or a call?"""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from banking_server.agent.reply import (
    CallRequest,
    ForUser,
    Unreadable,
    certain_text,
    read_reply,
)

BALANCE = CallRequest(("get_balance",), {"accountId": "a {1}", "deep": {"x": [1, None]}})
BALANCE_JSON = json.dumps({"tool": "get_balance", "arguments": BALANCE.arguments})


@pytest.mark.parametrize(
    "text",
    [
        "Your balance is 5.00.",
        "```python\nprint({'a': 1})\n```",
        '{"name": "Alice", "age": 3}',
    ],
)
def test_an_answer_is_taken_word_for_word(text: str) -> None:
    assert read_reply(f"  {text}\n") == ForUser(text)


@pytest.mark.parametrize(
    "text",
    [
        BALANCE_JSON,
        f"```json\n{BALANCE_JSON}\n```",
        BALANCE_JSON.replace('"tool"', '"name"'),
    ],
)
def test_a_call_is_read_bare_or_fenced(text: str) -> None:
    assert read_reply(text) == BALANCE


@pytest.mark.parametrize(
    "after",
    [
        "\n\nThe balance is 500.",
        '\n```\n```json\n{"tool": "b"}\n```',
    ],
)
@pytest.mark.parametrize("before", ["", "You could send ", "```json\n"])
def test_words_after_a_call_make_it_doubtful(before: str, after: str) -> None:
    reading = read_reply(before + BALANCE_JSON + after)
    assert isinstance(reading, Unreadable)
    assert "goes on after" in reading.problem


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "a", "arguments": {}',
        '{"tool": "a", "arguments": {"x": 1, "x": 5000}}',
        '{"tool": "a", "arguments": {"x": NaN}}',
        f'{{"tool": "a", "arguments": {{"x": 1{"0" * 400}}}}}',
        '{"tool": "a", "arguments": {"x": "\\ud800"}}',
        '{"tool": "a", "arguments": ' + '{"x":' * 5000,
        "{",
    ],
)
def test_what_looks_like_a_call_is_never_repaired(text: str) -> None:
    reading = read_reply(text)
    assert isinstance(reading, Unreadable)
    assert "not valid" in reading.problem


@pytest.mark.parametrize(
    "value",
    [
        {"tool": 5},
        {"tool": "a", "arguments": "{}"},
        {"mcp": {"tool": "a", "method": "b", "params": []}},
    ],
)
def test_a_call_of_the_wrong_shape_is_refused(value: object) -> None:
    assert isinstance(read_reply(json.dumps(value)), Unreadable)


@settings(deadline=None)
@given(st.text())
@example('x{"a":' * 20_000)
@example("{" * 100_000)
def test_any_text_can_be_read(text: str) -> None:
    reading = read_reply(text)
    assert isinstance(reading, ForUser | CallRequest | Unreadable)
    assert text.lstrip().startswith(certain_text(text))


def test_a_call_is_not_made_of_a_thought() -> None:
    assert isinstance(read_reply(f"<think>{BALANCE_JSON}"), Unreadable)
    made = read_reply(f"<think>I buy it.</think>{BALANCE_JSON}")
    assert made == BALANCE
    assert certain_text("Hello <thi") == "Hello"
