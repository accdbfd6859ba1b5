"""The endpoint: what it sends, how much it reads, and where its key may go."""

import pytest

from banking_server.agent import (
    Endpoint,
    ModelNotConfigured,
    ModelUnavailable,
    load_model_settings,
)
from banking_server.agent import endpoint as module
from banking_server.agent.endpoint import MAX_REPLY
from banking_server.agent.settings import FROM_ENVIRONMENT

from ..kit.model import Endless, error, scripted_model
from .support import settings

pytestmark = pytest.mark.anyio

HELLO = [{"role": "user", "content": "Hello"}]
READY = {"type": "function", "function": {"name": "ready", "parameters": {"type": "object"}}}
KEY = "sk-secret-of-mine"


async def test_what_is_sent() -> None:
    with scripted_model(["a", "b"]) as model:
        async with Endpoint(settings(model.url, key=KEY, temperature=0.5)) as endpoint:
            await endpoint.complete(HELLO, functions=[READY])
            await endpoint.complete(HELLO, on_text=lambda _: None)
    first, second = model.requests
    assert first == {
        "model": "scripted",
        "messages": HELLO,
        "tools": [READY],
        "temperature": 0.5,
    }
    assert "tools" not in second
    assert second["stream"] is True
    assert second["stream_options"] == {"include_usage": True}
    assert model.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_reply_that_never_ends_is_cut_off() -> None:
    shown: list[str] = []
    with scripted_model([Endless("x" * 1000)]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            completion = await endpoint.complete(HELLO, on_text=shown.append)
    assert "".join(shown) == completion.text
    assert completion.cut_off
    assert len(completion.text) == MAX_REPLY + 1


# --- failures -------------------------------------------------------------------------------------


async def test_a_bounded_number_of_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRIES", 2)
    refused = error(503, retry_after="0.01")
    with scripted_model([refused, refused, "At last.", *[refused] * 9]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            assert (await endpoint.complete(HELLO)).text == "At last."
            with pytest.raises(ModelUnavailable):
                await endpoint.complete(HELLO)
        assert len(model.requests) == 3 + 3


# --- settings -------------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in FROM_ENVIRONMENT:
        monkeypatch.delenv(f"BANKING_MODEL_{name.upper()}", raising=False)
    return monkeypatch


def test_settings_come_from_the_environment(environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelNotConfigured, match="set BANKING_MODEL_URL"):
        load_model_settings()
    environment.setenv("BANKING_MODEL_URL", "http://localhost:1/v1")
    with pytest.raises(ModelNotConfigured, match="set BANKING_MODEL_NAME"):
        load_model_settings()
    environment.setenv("BANKING_MODEL_NAME", "qwen")
    environment.setenv("BANKING_MODEL_KEY", KEY)
    environment.setenv("BANKING_MODEL_TIMEOUT", "3")
    loaded = load_model_settings()
    assert (loaded.url, loaded.name, loaded.timeout) == ("http://localhost:1/v1", "qwen", 3)
    assert KEY not in repr(loaded)


@pytest.mark.parametrize(
    ("url", "key", "refused"),
    [
        ("http://192.0.2.1/v1", KEY, "KEY"),
        ("http://user:pass@192.0.2.1/v1", "", "URL"),
        ("https://192.0.2.1/v1", KEY, None),
        ("http://[::1]:1/v1", KEY, None),
    ],
)
def test_no_key_goes_to_another_computer_in_the_clear(
    environment: pytest.MonkeyPatch, url: str, key: str, refused: str | None
) -> None:
    environment.setenv("BANKING_MODEL_NAME", "qwen")
    environment.setenv("BANKING_MODEL_URL", url)
    environment.setenv("BANKING_MODEL_KEY", key)
    if refused is None:
        assert load_model_settings().url == url
        return
    with pytest.raises(ModelNotConfigured, match=f"^BANKING_MODEL_{refused}: .*http") as caught:
        load_model_settings()
    assert KEY not in str(caught.value)
    assert "pass@" not in str(caught.value)
