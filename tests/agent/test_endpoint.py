"""The endpoint: how often it is asked, where the key may go, and its faults."""

import pytest

from ..kit.model import Raw, error, scripted_model
from .support import scene

pytestmark = pytest.mark.anyio

KEY = "sk-do-not-tell"
HALF = 'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'
FAULTS = [
    error(404, KEY),
    *[
        Raw(body, content_type="text/event-stream")
        for body in (
            f'data: {{"error": {{"message": "{KEY}"}}}}\n\n',
            "data: " + "x" * 20_000_000,
            "data: " + "[" * 100_000 + "\n\n",
            HALF.replace('"half"', '["no text"]'),
            HALF,
        )
    ],
]


async def test_a_request_is_repeated_twice_at_most() -> None:
    refused = error(503, retry_after="0.01")
    async with scene([refused, refused, "At last.", *[refused] * 9]) as s:
        assert (await s.agent.ask("Hello")).answer == "At last."
        assert (await s.agent.ask("Hello?")).answer is None
    assert len(s.model.requests) == 3 + 3


async def test_a_redirect_takes_neither_key_nor_conversation_elsewhere() -> None:
    with scripted_model(["never"]) as other:
        away = Raw(b"", status=307, headers={"location": f"{other.url}/chat/completions"})
        async with scene([away, away], key=KEY, temperature=0.5) as at:
            assert "HTTP 307" in (await at.agent.ask("My secret.")).detail
        assert other.requests == []
    assert at.model.headers[0]["authorization"] == f"Bearer {KEY}"
    assert at.model.requests[0]["temperature"] == 0.5


async def test_a_fault_is_told_in_one_line_without_the_key_and_ends_no_conversation() -> None:
    async with scene([*FAULTS, "Still here."], key=KEY) as s:
        runs = [await s.agent.ask("Hello") for _ in FAULTS]
        assert (await s.agent.ask("Hello?")).answer == "Still here."
    for run in runs:
        assert run.answer is None
        assert run.detail.startswith("The model endpoint at 127.0.0.1:")
        assert "\n" not in run.detail
        assert KEY not in run.detail
    assert KEY not in s.model.told
