"""The endpoint: what it sends, what it reads, and one clear line for everything else."""

import json
from typing import Any

import pytest

from banking_server.agent import (
    Endpoint,
    ModelNotConfigured,
    ModelUnavailable,
    load_model_settings,
)
from banking_server.agent import endpoint as module
from banking_server.agent.endpoint import MAX_REPLY, READY
from banking_server.agent.settings import FROM_ENVIRONMENT

from ..kit.model import Action, Endless, Raw, Silence, error, scripted_model
from .support import settings

pytestmark = pytest.mark.anyio

HELLO = [{"role": "user", "content": "Hello"}]
STREAMED = pytest.mark.parametrize("streamed", [False, True])
KEY = "sk-secret-of-mine"


async def complete(action: Action, streamed: bool = False, **more: Any) -> Any:
    functions = more.pop("functions", ())
    shown: list[str] = []
    with scripted_model([action]) as model:
        async with Endpoint(settings(model.url, **more)) as endpoint:
            completion = await endpoint.complete(
                HELLO, functions=functions, on_text=shown.append if streamed else None
            )
    assert "".join(shown) == (completion.text if streamed else "")
    return completion


async def failure(action: Action, streamed: bool = False, **more: Any) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        await complete(action, streamed, **more)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) <= 401
    assert message.startswith("The model endpoint at 127.0.0.1:")
    return message


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
    completion = await complete(Endless("x" * 1000), streamed=True)
    assert completion.cut_off
    assert len(completion.text) == MAX_REPLY + 1


# --- failures -------------------------------------------------------------------------------------


@STREAMED
async def test_a_key_that_is_refused(streamed: bool) -> None:
    message = await failure(error(401, f"wrong key {KEY}"), streamed, key=KEY)
    assert "BANKING_MODEL_KEY" in message
    assert KEY not in message


async def test_a_bounded_number_of_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRIES", 2)
    refused = error(503, retry_after="0.01")
    with scripted_model([refused, refused, "At last.", *[refused] * 9]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            assert (await endpoint.complete(HELLO)).text == "At last."
            with pytest.raises(ModelUnavailable):
                await endpoint.complete(HELLO)
        assert len(model.requests) == 3 + 3


@STREAMED
async def test_silence_ends_with_the_time_out(streamed: bool) -> None:
    assert "within 0.3 seconds" in await failure(Silence(), streamed, timeout=0.3)


GOOD_CHUNK = json.dumps({"choices": [{"delta": {"content": "So it"}, "finish_reason": None}]})


NO_COMPLETIONS: list[bytes | str] = [
    "",
    '{"choices": [{"message": {"content": "Yo',
    '{"choices": [{"message": {"content": {"a": 1}}}]}',
    '{"choices": [{"message": {"content": null, "tool_calls": [null]}}]}',
    '{"error": {"message": "out of memory"}}',
    b"\xff\xfe\x00",
]
NO_STREAMS = [
    "",
    f"data: {GOOD_CHUNK}\n\ndata: [DONE]\n\n",
    'data: {"error": {"message": "out of memory"}}\n\n',
    "data: \xff\n\n",
    "<html>It works!</html>",
]


@STREAMED
async def test_an_answer_that_is_no_completion(streamed: bool) -> None:
    if streamed:
        raws = [Raw(one.encode("latin-1"), content_type="text/event-stream") for one in NO_STREAMS]
    else:
        kinds = ("application/json", "text/html")
        raws = [Raw(body, content_type=kind) for body in NO_COMPLETIONS for kind in kinds]
    on_text = (lambda _: None) if streamed else None
    with scripted_model([*raws, "Well."]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            for raw in raws:
                with pytest.raises(ModelUnavailable) as caught:
                    await endpoint.complete(HELLO, on_text=on_text)
                assert "\n" not in str(caught.value), raw
            assert (await endpoint.complete(HELLO, on_text=on_text)).text == "Well."


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
    ("name", "value"),
    [
        ("URL", "localhost:11434"),
        ("KEY", "schlüssel"),
        ("TOOLS", "maybe"),
    ],
)
def test_a_bad_setting_is_one_line(environment: pytest.MonkeyPatch, name: str, value: str) -> None:
    environment.setenv("BANKING_MODEL_URL", "http://localhost:1/v1")
    environment.setenv("BANKING_MODEL_NAME", "qwen")
    environment.setenv(f"BANKING_MODEL_{name}", value)
    with pytest.raises(ModelNotConfigured) as caught:
        load_model_settings()
    message = str(caught.value)
    assert message.startswith(f"BANKING_MODEL_{name}: ")
    assert "\n" not in message
    if name == "KEY":
        assert value not in message


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
