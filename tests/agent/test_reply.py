"""Is a reply an answer, or a call?"""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from banking_server.client.agent.reply import CallRequest, Unfit, read_reply

BALANCE = CallRequest(("get_balance",), {"accountId": "a {1}", "deep": {"x": [1, None]}})
BALANCE_JSON = json.dumps({"tool": "get_balance", "arguments": BALANCE.arguments})
PARAMETERS_JSON = json.dumps({"name": "get_balance", "parameters": BALANCE.arguments})


HARMONY = "<|channel|>analysis<|message|>They greet me.<|end|>"
NAMES = ("get_balance", "list_accounts")
ARGUMENTS = json.dumps(BALANCE.arguments)
LIST = CallRequest(("list_accounts",), {})
DEEPSEEK = "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>"
DEEPSEEK_ENDS = "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>"
KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_balance:0"
OBSERVED = "Observation: 1,000,000.00\nThought: I am done.\nFinal Answer: You are rich."


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
        ("Use `list_accounts` (read only) first.", "Use `list_accounts` (read only) first."),
        ("It is locked.\nAction: please call us.", "It is locked.\nAction: please call us."),
        ("I have:\nlist_accounts (yours)\nget_balance(id): one's.",) * 2,
        ("<|im_start|>assistant\nHello.<|im_end|>\n", "Hello."),
        ("Hello.<\uff5cend\u2581of\u2581sentence\uff5c>", "Hello."),
        (f"{HARMONY}<|start|>assistant<|channel|>final<|message|>Hello.<|return|>", "Hello."),
        ("analysisThey greet.assistantfinalHello.", "Hello."),
    ],
)
def test_an_answer_is_taken_word_for_word_and_a_call_is_read(text: str, meaning: object) -> None:
    assert read_reply(text) == meaning


CALLS = [
    # Each is a call of get_balance.
    f'<tool_call>\n{{"name": "get_balance", "arguments": {ARGUMENTS}}}\n</tool_call>',
    f'[TOOL_CALLS][{{"name": "get_balance", "arguments": {ARGUMENTS}}}]</s>',
    f"[TOOL_CALLS]get_balance[ARGS]{ARGUMENTS}",
    f"[TOOL_CALLS]get_balance[CALL_ID]a1b2[ARGS]{ARGUMENTS}",
    f'<|python_tag|>{{"name": "get_balance", "parameters": {ARGUMENTS}}}<|eom_id|>',
    f"<function=get_balance>{ARGUMENTS}</function>",
    f'<TOOLCALL>[{{"name": "get_balance", "arguments": {ARGUMENTS}}}]</TOOLCALL>',
    f'<|tool_call|>[{{"name": "get_balance", "arguments": {ARGUMENTS}}}]<|/tool_call|>',
    f'<|START_ACTION|>[{{"tool_name": "get_balance", "parameters": {ARGUMENTS}}}]<|END_ACTION|>',
    f'<|action_start|><|plugin|>{{"name": "get_balance", "parameters": {ARGUMENTS}}}<|action_end|>',
    f"<|from|>assistant\n<|recipient|>get_balance\n<|content|>{ARGUMENTS}",
    f">>>get_balance\n{ARGUMENTS}",
    f'functools[{{"name": "get_balance", "arguments": {ARGUMENTS}}}]',
    f"{DEEPSEEK}function<\uff5ctool\u2581sep\uff5c>get_balance\n```json\n{ARGUMENTS}\n```{DEEPSEEK_ENDS}",
    f"{DEEPSEEK}get_balance<\uff5ctool\u2581sep\uff5c>{ARGUMENTS}{DEEPSEEK_ENDS}",
    f"{KIMI}<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    f"<|tool_call>call:get_balance{ARGUMENTS}<tool_call|>",
    f"{HARMONY}<|start|>assistant<|channel|>commentary to=functions.get_balance <|constrain|>json"
    f"<|message|>{ARGUMENTS}<|call|>",
    f"analysisThey greet.assistantcommentary to=functions.get_balance json{ARGUMENTS}",
    f"Action: get_balance\nAction Input: {ARGUMENTS}\n{OBSERVED}",
    f"**Action:** `get_balance`\n**Action Input:** {ARGUMENTS}",
    f"```tool_call\nget_balance {ARGUMENTS}\n```",
    f"get_balance({ARGUMENTS})",
    f"call:get_balance{ARGUMENTS}",
    f'{{"function": "get_balance", "arguments": {ARGUMENTS}}}',
    f'{{"action": "get_balance", "action_input": {ARGUMENTS}}}',
    f'{{"thought": "Look.", "tool_name": "get_balance", "tool_input": {ARGUMENTS}}}',
    f'[{{"type": "function", "function": {{"name": "get_balance", "arguments": {ARGUMENTS}}}}}]',
    f'{{"tool_calls": [{{"function": {{"name": "get_balance", "args": {ARGUMENTS}}}}}]}}',
    f'```json\n{{"type": "tool_use", "name": "get_balance", "input": {ARGUMENTS}}}\n```',
]
NO_ARGUMENTS = [
    '<\uff5cDSML\uff5cinvoke name="list_accounts"></\uff5cDSML\uff5cinvoke>',
    "<tool_call>\n<function=list_accounts>\n</function>\n</tool_call>",
    "<tool_call>list_accounts</tool_call>",
    "```tool_code\nlist_accounts()\n```",
    "[list_accounts()]",
    "print(default_api.list_accounts())",
    f"Thought: I look.\nAction: list_accounts\nAction Input:\n{OBSERVED}",
    '<function_calls><invoke name="list_accounts"></invoke></function_calls>',
    '{"name": "list_accounts"}',
    '{"action": "list_accounts", "action_input": ""}',
    "[TOOL_CALLS]list_accounts[ARGS]{}",
]
SENT_BACK = [
    "<tool_call><function=get_balance><parameter=accountId>a</parameter></function></tool_call>",
    "<tool_call>get_balance\n<arg_key>accountId</arg_key>\n<arg_value>a</arg_value></tool_call>",
    '<invoke name="get_balance"><parameter name="accountId">a</parameter></invoke>',
    '```tool_code\nprint(get_balance(accountId="a"))\n```',
    'get_balance(accountId="a")',
    "```python\nfound = list_accounts()\nprint(found)\n```",
    "<get_balance>\n<accountId>a</accountId>\n</get_balance>",
    "<tool_call>sell</tool_call>",
    f"<tool_call>list_accounts, then get_balance {ARGUMENTS}</tool_call>",
    f"<tool_call>{BALANCE_JSON}</tool_call><tool_call>{BALANCE_JSON}</tool_call>",
    f"<tool_call>{BALANCE_JSON}</tool_call>\nYou have 500.",
    f'[TOOL_CALLS][{{"name": "get_balance", "arguments": {ARGUMENTS}}}, {{"name": "b"}}]',
    '{"action": "get_balance", "action_input": "a"}',
    '{"function": "get_balance", "accountId": "a"}',
    f'{{"steps": [{{"do": "list_accounts"}}, {{"do": "get_balance", "with": {ARGUMENTS}}}]}}',
    'I will call {"function": "list_accounts", "arguments": {}}, and then tell you.',
    "Action: get_balance\nAction Input: a\n" + OBSERVED,
]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [(text, BALANCE) for text in CALLS] + [(text, LIST) for text in NO_ARGUMENTS],
)
def test_the_markup_of_a_known_call_is_read(text: str, meaning: CallRequest) -> None:
    reading = read_reply(text, NAMES)
    assert isinstance(reading, CallRequest)
    assert (reading.names, reading.arguments) == (meaning.names, meaning.arguments)


@pytest.mark.parametrize("text", SENT_BACK)
def test_markup_that_is_not_read_is_no_answer(text: str) -> None:
    with pytest.raises(Unfit):
        read_reply(text, NAMES)


@settings(deadline=None)
@given(st.sampled_from([*CALLS, *NO_ARGUMENTS, *SENT_BACK]), st.text(max_size=9))
def test_a_call_with_something_wrong_in_it_is_no_answer(text: str, odd: str) -> None:
    """Cut off at a length limit, or with odd words before it or in it."""
    for spoilt in (f"Well: {odd}\n{text}", f"{text}\n{odd}"):
        with suppress(Unfit):
            assert isinstance(read_reply(spoilt, NAMES), CallRequest)


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
    with suppress(Unfit):
        assert isinstance(read_reply(text), str | CallRequest)
