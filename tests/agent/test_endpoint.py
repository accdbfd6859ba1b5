"""The endpoint: what is sent, how much is read, where the key may go, and its faults."""

import json
from typing import Any

import pytest

from banking_server.agent import Endpoint, ModelUnavailable
from banking_server.agent import endpoint as module

from ..kit.model import Raw, error, scripted_model
from .support import scene, settings

pytestmark = pytest.mark.anyio

HELLO = [{"role": "user", "content": "Hello"}]
KEY = "sk-do-not-tell"
EVENTS = "text/event-stream"


async def test_a_bounded_number_of_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRIES", 2)
    refused = error(503, retry_after="0.01")
    with scripted_model([refused, refused, "At last.", *[refused] * 9]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            assert (await endpoint.complete(HELLO)).text == "At last."
            with pytest.raises(ModelUnavailable):
                await endpoint.complete(HELLO)
        assert len(model.requests) == 3 + 3


async def test_a_redirect_takes_neither_key_nor_conversation_elsewhere() -> None:
    with scripted_model(["never"]) as other:
        away = Raw(b"", status=307, headers={"location": f"{other.url}/chat/completions"})
        async with scene([away, away], key=KEY, temperature=0.5) as at:
            assert "HTTP 307" in (await at.agent.ask("My secret.")).detail
        assert other.requests == []
    assert at.model.headers[0]["authorization"] == f"Bearer {KEY}"
    assert at.model.requests[0]["temperature"] == 0.5


def event(value: Any) -> str:
    return f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n"


def chunk(reason: str | None = None, **delta: Any) -> str:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


@pytest.mark.parametrize(
    "fault",
    [
        error(404, KEY),
        Raw(event({"error": {"message": KEY}}), content_type=EVENTS),
        Raw(b"data: " + b"x" * 20_000_000, content_type=EVENTS),
        Raw(event("[" * 100_000), content_type=EVENTS),
        Raw(chunk(content=["no text"]) + chunk("stop"), content_type=EVENTS),
        Raw(chunk(content="half"), content_type=EVENTS),
    ],
    ids=range(6),
)
async def test_a_fault_is_told_in_one_line_without_the_key_and_ends_no_conversation(
    fault: Raw,
) -> None:
    async with scene([fault, "Still here."], key=KEY, stream=True) as s:
        run, again = await s.agent.ask("Hello"), await s.agent.ask("Hello?")
    assert run.answer is None
    assert run.detail.startswith("The model endpoint at 127.0.0.1:")
    assert "\n" not in run.detail
    assert KEY not in run.detail
    assert again.answer == "Still here."
    assert KEY not in s.model.told
