"""Is a reply an answer, or a call?"""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from banking_server.agent.reply import CallRequest, Unfit, certain_text, read_reply

BALANCE = CallRequest(("get_balance",), {"accountId": "a {1}", "deep": {"x": [1, None]}})
BALANCE_JSON = json.dumps({"tool": "get_balance", "arguments": BALANCE.arguments})
PARAMETERS_JSON = json.dumps({"name": "get_balance", "parameters": BALANCE.arguments})


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (" Your balance is 5.00.\n", "Your balance is 5.00."),
        ('{"name": "Alice", "age": 3}', '{"name": "Alice", "age": 3}'),
        (BALANCE_JSON, BALANCE),
        (f"```json\n{BALANCE_JSON}\n```", BALANCE),
        (BALANCE_JSON.replace('"tool"', '"name"'), BALANCE),
        (PARAMETERS_JSON, BALANCE),
        (f"<think>I buy it.</think>{BALANCE_JSON}", BALANCE),
    ],
)
def test_an_answer_is_taken_word_for_word_and_a_call_is_read(text: str, meaning: object) -> None:
    assert read_reply(text) == meaning


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"You could send {BALANCE_JSON}\n\nThe balance is 500.", "goes on after"),
        (f"You could send {PARAMETERS_JSON}\n\nThe balance is 500.", "goes on after"),
        (f'```json\n{BALANCE_JSON}\n```\n```json\n{{"tool": "b"}}\n```', "goes on after"),
        ('{"tool": "a", "arguments": {}', "not valid"),
        ('{"tool": "a", "arguments": {"x": NaN}}', "not valid"),
        ('{"tool": "a", "arguments": {"x": "\\ud800"}}', "not valid"),
        ('{"tool": "a", "arguments": ' + '{"x":' * 5000, "not valid"),
        ('{"tool": 5}', "must be the name of a tool"),
        ('{"tool": "a", "arguments": "{}"}', "must be a JSON object"),
        (f"<think>{BALANCE_JSON}", "was empty"),
    ],
)
def test_what_is_doubtful_or_no_call_is_never_repaired(text: str, problem: str) -> None:
    with pytest.raises(Unfit, match=problem):
        read_reply(text)


@settings(deadline=None)
@given(st.text())
@example('x{"a":' * 20_000)
@example("{" * 100_000)
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(certain_text(text), str)
    with suppress(Unfit):
        assert isinstance(read_reply(text), str | CallRequest)


def test_of_an_unfinished_reply_no_more_is_shown_than_is_certain() -> None:
    assert certain_text("Hello <thi") == "Hello"
