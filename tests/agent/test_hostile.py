"""`banking-server chat` as the victim: of the endpoint of its model, and of a server's tools."""

import io
import json
import sys
import zlib
from typing import Any

import pytest

from banking_server.agent import RunOutcome
from banking_server.agent.endpoint import MAX_CALLS, MAX_REPLY
from banking_server.cli import main

from ..kit.hostile import MISCHIEF, SAID, STEERS, hostile_server
from ..kit.model import Action, Raw, Reply, call, error, scripted_model
from .support import scene

pytestmark = pytest.mark.anyio

KEY = "sk-do-not-tell"
EVENTS = "text/event-stream"


def event(value: Any) -> str:
    return f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n"


def chunk(**delta: Any) -> str:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def gzip_bomb() -> Raw:
    gzip = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    blanks = gzip.compress(b" " * 2**20) + gzip.flush(zlib.Z_FULL_FLUSH)
    more = gzip.compress(b" " * 2**20) + gzip.flush(zlib.Z_FULL_FLUSH)
    return Raw(blanks + more * 600, headers={"content-encoding": "gzip"})


ATTACKS: list[Action] = [
    MISCHIEF,
    error(500, MISCHIEF),
    Raw(event({"error": {"message": f"{MISCHIEF} {KEY}"}}), content_type=EVENTS),
    Raw(b"data: " + b"x" * 20_000_000, content_type=EVENTS),
    gzip_bomb(),
    Raw(event("[" * 100_000), content_type=EVENTS),
    Raw(chunk(content=[MISCHIEF]) + END, content_type=EVENTS),
    call(MISCHIEF),
    call("second", **{MISCHIEF: MISCHIEF}),
    "That is all.\nCall it? [y/N] y",
]


def test_whatever_the_models_endpoint_says_steers_no_terminal_and_ends_no_conversation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_model(ATTACKS) as model, hostile_server() as origin:
        monkeypatch.setattr(
            sys, "argv", ["banking-server", "chat", "--url", f"{origin}/escapes_in_names"]
        )
        monkeypatch.setattr(sys, "stdin", io.StringIO("Go on.\n" * len(ATTACKS)))
        for name, value in {
            "URL": model.url,
            "NAME": "scripted",
            "TOOLS": "native",
            "KEY": KEY,
        }.items():
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
    assert all(message["role"] != "system" for message in model.requests[-1]["messages"][1:])


async def test_a_redirect_takes_neither_key_nor_conversation_elsewhere() -> None:
    with scripted_model(["never"]) as other:
        away = Raw(b"", status=307, headers={"location": f"{other.url}/chat/completions"})
        async with scene([away], key=KEY) as at:
            run = await at.agent.ask("My secret.")
            assert run.outcome is RunOutcome.MODEL_UNAVAILABLE
            assert "HTTP 307" in run.detail
        assert other.requests == []


async def test_a_reply_with_thousands_of_calls_is_cut_off() -> None:
    many = Reply(calls=[("price", {"door": str(number)}) for number in range(5_000)], ids=False)
    async with scene([many, "Enough."], bounds={"corrections": 3}) as at:
        run = await at.agent.ask("Prices!")
        assert run.answer == "Enough."
        assert at.called == ["price"] * MAX_CALLS
        assert len(at.model.requests[1]["messages"]) == 3 + MAX_CALLS
