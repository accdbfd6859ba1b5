"""The endpoint: what is sent, how much is read, where the key may go, and what hostile ones do."""

import io
import json
import sys
from typing import Any

import pytest

from banking_server.agent import Endpoint, ModelUnavailable
from banking_server.agent import endpoint as module
from banking_server.agent.endpoint import MAX_REPLY
from banking_server.cli import main

from ..kit.hostile import MISCHIEF, SAID, STEERS, hostile_server
from ..kit.model import Action, Endless, Raw, call, error, scripted_model
from .support import scene, settings

pytestmark = pytest.mark.anyio

HELLO = [{"role": "user", "content": "Hello"}]
KEY = "sk-do-not-tell"
EVENTS = "text/event-stream"


async def test_a_reply_that_never_ends_is_cut_off() -> None:
    with scripted_model([Endless("x" * 1000)]) as model:
        async with Endpoint(settings(model.url)) as endpoint:
            completion = await endpoint.complete(HELLO, on_text=lambda _: None)
    assert completion.cut_off
    assert len(completion.text) == MAX_REPLY


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


ATTACKS: list[Action] = [
    MISCHIEF,
    error(404, MISCHIEF),
    Raw(event({"error": {"message": f"{MISCHIEF} {KEY}"}}), content_type=EVENTS),
    Raw(b"data: " + b"x" * 20_000_000, content_type=EVENTS),
    Raw(event("[" * 100_000), content_type=EVENTS),
    Raw(chunk(content=[MISCHIEF]) + chunk("stop"), content_type=EVENTS),
    Raw(chunk(content="half"), content_type=EVENTS),
    call(MISCHIEF),
    call("second", **{MISCHIEF: MISCHIEF}),
    "That is all.\nCall it? [y/N] y",
]


def test_whatever_the_models_endpoint_says_steers_no_terminal_and_ends_no_conversation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_model(ATTACKS) as model, hostile_server() as origin:
        command = ["banking-server", "chat", "--url", f"{origin}/escapes_in_names"]
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.setattr(sys, "stdin", io.StringIO("Go on.\n" * len(ATTACKS)))
        given = {"URL": model.url, "NAME": "scripted", "TOOLS": "native", "KEY": KEY}
        for name, value in given.items():
            monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
        with pytest.raises(SystemExit) as ended:
            main()
    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert not STEERS.search(shown.out + shown.err)
    assert (shown.out + shown.err).count(SAID) >= 3
    assert KEY not in shown.out + shown.err
    assert KEY not in model.told
    # After each attack the conversation goes on, to the last of them.
    assert shown.err.count("[0 calls by the model, 0 calls by directive;") == len(ATTACKS)
    assert shown.out.endswith("That is all.\nCall it? [y/N] y\n")
    assert len(shown.out + shown.err) < 2 * MAX_REPLY
