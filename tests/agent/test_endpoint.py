"""The endpoint: how often it is asked, where the key may go, and its faults."""

import json
from typing import Any

import pytest

from ..kit.model import Raw, call, error, scripted_model
from .support import scene

pytestmark = pytest.mark.anyio

KEY = "sk-do-not-tell"
FAULTS = [
    error(404, KEY),
    Raw(f'{{"error": {{"message": "{KEY}"}}}}'),
    Raw("x" * 20_000_000),
    Raw("[" * 100_000),
    Raw('{"choices": [{"message": {"content": "half'),
]


async def test_a_request_is_repeated_twice_at_most() -> None:
    refused = error(503, retry_after="0.01")
    async with scene([refused, refused, "At last.", *[refused] * 9]) as s:
        assert (await s.agent.ask("Hello")).answer == "At last."
        assert (await s.agent.ask("Hello?")).answer is None
    assert len(s.model.requests) == 3 + 3


async def test_a_fault_and_a_redirect_are_told_in_one_line_and_the_key_goes_nowhere_else() -> None:
    with scripted_model(["never"]) as other:
        away = Raw("", status=307, headers={"location": f"{other.url}/chat/completions"})
        faults = [away, *FAULTS]
        async with scene([*faults, "Still here."], key=KEY, temperature=0.5) as s:
            runs = [await s.agent.ask("Hello") for _ in faults]
            assert (await s.agent.ask("Hello?")).answer == "Still here."
        assert other.requests == []
    for run in runs:
        assert run.answer is None
        assert run.detail.startswith("The model endpoint at 127.0.0.1:")
        assert "\n" not in run.detail
        assert KEY not in run.detail
    assert KEY not in s.model.told
    assert s.model.headers[0]["authorization"] == f"Bearer {KEY}"
    assert s.model.requests[0]["temperature"] == 0.5


def plain(value: Any, status: int = 200) -> Raw:
    return Raw(json.dumps(value), status)


def message(**more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **more}}]}


PRICE = {"function": {"name": "price", "arguments": {"door": "oak"}}}


HELLO, PRICED = ("Hello.", []), ("80.", [("price", {"door": "oak"})])


@pytest.mark.parametrize(
    ("tools", "reply", "comes_of_it"),
    [
        ("prompt", plain(message(content="Hello.")), HELLO),
        (
            "prompt",
            plain({**message(content="Hello."), "usage": {"completion_tokens": None}, "error": {}}),
            HELLO,
        ),
        (
            "prompt",
            plain(message(content=[{"type": "thinking", "thinking": []}, "Hel", {"text": "lo."}])),
            HELLO,
        ),
        ("prompt", Raw(json.dumps(message(content="Hello.", tool_calls=None), indent=2)), HELLO),
        ("native", plain(message(content=None, tool_calls=[PRICE])), PRICED),
        ("native", plain({**message(tool_calls=[{**PRICE, "index": None}]), "usage": {}}), PRICED),
        ("prompt", plain(message(content=call("price", door="oak"))), PRICED),
        ("prompt", plain(message(tool_calls=[PRICE])), PRICED),
    ],
)
async def test_a_reply_with_a_text_or_a_call_is_a_reply_whatever_is_beside_it(
    tools: str, reply: Raw, comes_of_it: tuple[str, Any]
) -> None:
    async with scene([reply, "80."], tools=tools) as s:
        answer = (await s.agent.ask("What is oak?")).answer
    assert (answer, s.calls) == comes_of_it


POOR = {"error": {"message": "Insufficient\x1b[31m\ncredits", "code": 402}}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (plain(POOR), ": Insufficient\\x1b[31m credits. BANKING"),
        (plain({"error": "model 'x' not found"}, 404), ": HTTP 404: model 'x' not found."),
        (plain({"detail": "Not Found"}, 404), ": HTTP 404: Not Found."),
        (plain({"detail": [{"loc": ["body"], "msg": "no model"}]}, 403), ": HTTP 403: no model."),
        (plain({"message": "Unauthorized"}, 401), ": HTTP 401: Unauthorized."),
        (Raw("<h1>Forbidden</h1>", 403), ": HTTP 403: <h1>Forbidden</h1>."),
        (plain(["no"], 403), ": HTTP 403: no."),
        (plain({"error": {}}, 403), ": HTTP 403: Error code: 403."),
        (plain({"detail": "no such model"}), ": no such model."),
        (plain({"choices": []}), ": it is not a chat completion."),
        (plain([1]), ": it is not a chat completion."),
        (Raw("<h1>Sign in</h1>"), ": it is not a chat completion."),
    ],
)
async def test_the_endpoints_own_reason_is_told(reply: Raw, told: str) -> None:
    async with scene([reply]) as s:
        run = await s.agent.ask("Hi")
    assert run.answer is None
    assert told in run.detail
    assert "\n" not in run.detail
