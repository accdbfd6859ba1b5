"""The endpoint: how often it is asked, where the key may go, and its faults."""

import pytest

from ..kit.model import Raw, error, scripted_model
from .support import scene

pytestmark = pytest.mark.anyio

KEY = "sk-do-not-tell"
HALF = 'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'
FAULTS = [
    error(404, KEY),
    Raw(f'data: {{"error": {{"message": "{KEY}"}}}}\n\n'),
    Raw("data: " + "x" * 20_000_000),
    Raw("data: " + "[" * 100_000 + "\n\n"),
    Raw(HALF.replace('"half"', '["no text"]')),
    Raw(HALF),
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
