"""`banking-server chat` as people use it: in a real terminal, with real servers as subprocesses."""

import io
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from banking_server.cli import main

from ..kit.command import PATIENCE
from ..kit.cutting import cutting_server
from ..kit.model import Action, Script, ScriptedModel, Silence, call, error, scripted_model
from ..kit.terminal import Terminal
from ..server.conftest import elsewhere
from . import shop_server
from .shop_server import SECRET

__all__ = ["elsewhere"]


def settings(model: ScriptedModel | None, folder: Path) -> dict[str, str]:
    """Return the settings of a chat with this model, on a bank of the test's own."""
    chosen = {
        "TERM": "dumb",
        "INPUTRC": os.devnull,
        # So wide that no text is wrapped which a test waits for.
        "COLUMNS": "400",
        "LINES": "40",
        "XDG_STATE_HOME": str(folder / "state"),
        "BANKING_DATABASE": str(folder / "bank.db"),
    }
    if model is not None:
        chosen |= {
            "BANKING_MODEL_URL": model.url,
            "BANKING_MODEL_NAME": "scripted",
            "BANKING_MODEL_TOOLS": "prompt",
            "BANKING_MODEL_FORMAT": "none",
        }
    return chosen


def chat(model: ScriptedModel, folder: Path, command: Sequence[str], **variables: str) -> Terminal:
    """Start a conversation in a terminal."""
    return Terminal(
        [sys.executable, "-m", "banking_server", "chat", *command],
        **settings(model, folder) | variables,
    )


def piped(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    script: Script,
    *command: str,
    stdin: str = "",
) -> tuple[int | str | None, str, str, ScriptedModel]:
    """Hold a conversation in this process, without a terminal: its exit code, and what it wrote."""
    monkeypatch.setattr(sys, "argv", ["banking-server", "chat", *command])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("latin-1"))))
    with scripted_model(script) as model:
        for name, value in settings(model, folder).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err, model


class Shop:
    """The shop's server as a subprocess, and the calls that reached it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "calls"
        self._file.touch()
        self.command = ["--", sys.executable, shop_server.__file__, str(self._file)]

    def calls(self) -> list[list[object]]:
        return [json.loads(line) for line in self._file.read_text("utf-8").splitlines()]

    def wait_for_call(self, tool: str) -> None:
        end = time.monotonic() + PATIENCE
        while [tool] not in [one[:1] for one in self.calls()]:
            assert time.monotonic() < end, f"{tool} was never called"
            time.sleep(0.02)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    started: list[Terminal] = []
    yield started
    for terminal in started:
        terminal.close()


def test_a_conversation_in_the_terminal(
    tmp_path: Path, shop: Shop, terminals: list[Terminal]
) -> None:
    """One conversation: consent, a question, Ctrl-C everywhere, the history, and the end.

    What is waited for is said meanwhile, and what the model says is rendered.
    """
    history = tmp_path / "state" / "banking-server" / "chat-history"
    history.parent.mkdir(parents=True)
    history.write_text("Of yesterday.\n")
    script: Script = [
        "**Today.**\n\n- [x](http://a.example)",
        error(429, retry_after="77"),
        call("buy", door="oak"),
        "You bought oak.",
        call("survey"),
        "You like doors.",
        call("code"),
        call("hang"),
        call("checkout", by="pay"),
        call("pay", amount=80),
        "It may have been paid.",
        call("buy", door="elm"),
        "I am still here.",
        Silence(),
        "Me too.",
        "Me three.",
    ]
    with scripted_model(script) as model:
        terminal = chat(
            model, tmp_path, shop.command, TERM="xterm-256color", BANKING_MODEL_RETRIES="1"
        )
        terminals.append(terminal)
        terminal.wait_for("Model: scripted, with 21 tools.")

        terminal.wait_for("you> ")
        terminal.press("\x1b[A\n")
        terminal.wait_for("Of yesterday.")
        terminal.wait_for("   \x1b[1mToday.\x1b[0m\n")
        terminal.wait_for("\u2022 \x1b[0m\x1b[94mx\x1b[0m (\x1b[4;34mhttp://a.example\x1b[0m)\n")
        terminal.wait_for("[0 calls by the model")

        terminal.wait_for("you> ")
        terminal.press("Are you busy?\n")
        terminal.wait_for("Thinking: no answer, retrying in 7")
        terminal.press("\x03")
        terminal.wait_for("This was stopped. No tool call was completed.")

        terminal.wait_for("you> ")
        terminal.press("Buy an oak door.\n")
        terminal.wait_for('with     {"door": "oak"}')
        terminal.wait_for("Call it? [y/N] ")
        assert shop.calls() == []
        terminal.press("y\n")
        terminal.wait_for("bought oak")
        terminal.wait_for("You bought oak.\n")
        terminal.wait_for("[1 call by the model")

        terminal.wait_for("you> ")
        terminal.press("Ask me.\n")
        terminal.wait_for("Do you like doors?")
        terminal.wait_for("y/n")
        terminal.press("y\n")
        terminal.wait_for("You like doors.\n")
        assert shop.calls()[-1] == ["survey", {"answer": "accept"}]

        terminal.wait_for("you> ")
        terminal.press("Give me a code, then hang.\n")
        terminal.wait_for(SECRET)
        shop.wait_for_call("hang")
        terminal.wait_for("Waiting for hang: 2 of 3, Hanging\\x1b[2J it up")
        terminal.press("\x03")
        terminal.wait_for("Done so far: code (by the model). The call of hang was under way")

        # A directive's call is shown and asked for as the model's is, and can be stopped too.
        terminal.wait_for("you> ")
        terminal.press("Check out.\n")
        terminal.wait_for("2. pay")
        terminal.wait_for('with     {"amount": 80}')
        terminal.wait_for("because  checkout said so: _meta.nextTool = ")
        terminal.wait_for("Call it? [y/N] ")
        terminal.press("y\n")
        shop.wait_for_call("pay")
        terminal.press("\x03")
        terminal.wait_for("The call of pay was under way: whether it took effect is not known.")
        terminal.wait_for("you> ")
        terminal.press("Was it paid?\n")
        terminal.wait_for("it is not made twice")
        terminal.wait_for("It may have been paid.\n")

        terminal.wait_for("you> ")
        terminal.press("Then buy an elm door.\n")
        terminal.wait_for("Call it? [y/N] ")
        terminal.press("\x03")
        terminal.wait_for("No tool call was completed.")

        terminal.wait_for("you> ")
        terminal.press("half a line")
        terminal.wait_for("half a line")
        terminal.interrupt_until("(Ctrl-D or /quit ends the conversation.)")
        terminal.wait_for("you> ")
        terminal.press("Still there?\n")
        terminal.wait_for("I am still here.\n")

        terminal.wait_for("you> ")
        terminal.press("Think for ever.\n")
        assert model.silent.wait(PATIENCE)
        terminal.press("\x03")
        terminal.wait_for("No tool call was completed.")

        terminal.wait_for("you> ")
        terminal.press("And you?\n")
        terminal.wait_for("Me too.\n")
        terminal.wait_for("you> ")
        terminal.press("\x1b[A\n")
        terminal.wait_for("Me three.\n")

        terminal.wait_for("you> ")
        terminal.press(f"/save {tmp_path}/chat.md\n")
        terminal.wait_for(f"Saved to {tmp_path}/chat.md, as Markdown: 12 requests.")
        terminal.wait_for("you> ")
        terminal.press("\x04")
        assert terminal.finish() == 0
    assert "\n> You bought oak.\n" in (tmp_path / "chat.md").read_text("utf-8")
    kept = history.read_text("utf-8").splitlines()
    assert kept[:3] == ["Of yesterday.", "Are you busy?", "Buy an oak door."]
    assert not {"y", "half a line"} & set(kept), "answers to questions are no requests"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert [message["content"] for message in model.requests[-1]["messages"][-3:]] == [
        "And you?",
        "Me too.",
        "And you?",
    ]
    assert "half a line" not in model.told
    assert SECRET not in model.told
    assert [tool for tool, _ in shop.calls()] == [
        *("buy", "survey", "code", "hang"),
        *("checkout", "pay"),
    ]
    assert "80 EUR" in model.told
    assert "That call was started, and whether it took effect is not known" in model.told
    assert "Traceback" not in terminal.screen


def test_the_banks_own_server_and_its_directive(tmp_path: Path, terminals: list[Terminal]) -> None:
    """The bank's own server: one call by the model, and the directive does the rest."""
    script = [
        call(
            "prepare_money_transfer",
            fromAccountId="acc_checking_001",
            toAccountId="acc_savings_001",
            amount=100,
        ),
        "An agent will call you.",
    ]
    with scripted_model(script) as model:
        terminal = chat(model, tmp_path, ["--customer", "CUST001"])
        terminals.append(terminal)
        terminal.wait_for("you> ")
        terminal.press("Move 100 from checking to savings.\n")
        terminal.wait_for("prepare_money_transfer")
        # Of the accounts' resource, which was read at the beginning.
        terminal.wait_for("from account: Primary Checking (acc_checking_001)")
        terminal.wait_for("to account: High Yield Savings (acc_savings_001)")
        terminal.wait_for('"prepare_money_transfer" may change something. Call it? [y/N] ')
        terminal.press("y\n")
        terminal.wait_for("request_agent_handoff")
        terminal.wait_for("_meta.nextTool = ")
        terminal.wait_for("Call it? [y/N] ")
        terminal.press("y\n")
        terminal.wait_for("How would you like to be connected?")
        terminal.wait_for("1-2")
        terminal.press("2\n")
        terminal.wait_for("An agent will call you.\n")
        terminal.wait_for("[1 call by the model, 1 call by directive; 2 replies")
        terminal.wait_for("you> ")
        terminal.press("/quit\n")
        assert terminal.finish() == 0
    assert "I'm sorry" in terminal.screen
    assert "I'm sorry" not in model.told
    assert len(model.requests) == 2
    assert "A customer service agent will call you back." in model.last_message()


def test_without_a_terminal_nothing_is_asked_and_a_program_gets_the_answers_alone(
    tmp_path: Path,
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "chat.md"
    script = [
        *(call("price", door="oak"), call("buy", door="oak"), "**Nobody** agreed.\n\n1. So."),
        "Et \u00e9.",
    ]
    stdin = f"Buy an oak door.\n\xff?\n/tools\n/save {file}\n/quit\nnever read\n"
    code, out, err, model = piped(monkeypatch, capsys, tmp_path, script, *shop.command, stdin=stdin)
    assert (code, out) == (0, "**Nobody** agreed.\n\n1. So.\nEt \u00e9.\n")
    assert "(Not called: buy." in err
    assert "[1 call by the model, 0 calls by directive; 3 replies" in err
    assert "   buy: Buy a door. (you are asked first)\n" in err
    for noise in ("you>", "\x1b", "Model:", "Thinking"):
        assert noise not in out + err
    assert model.last_message() == "\ufffd?"
    assert file.read_text("utf-8").count("## Request") == 2
    assert not (tmp_path / "state").exists()
    assert [tool for tool, _ in shop.calls()] == ["price"]


def test_a_connection_that_breaks_ends_a_call_and_not_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [call("begin"), "Nobody knows.", call("go_on"), "Still here."]
    with cutting_server() as (url, called):
        code, out, _, model = piped(
            monkeypatch, capsys, tmp_path, script, "--url", url, stdin="Begin.\nGo on.\n"
        )
    assert (code, out) == (0, "Nobody knows.\nStill here.\n")
    assert called == ["begin", "cut", "go_on"]
    assert "That call was started, and whether it took effect is not known" in model.told


@pytest.mark.parametrize(
    ("prompt", "stdin", "reply", "code", "out"),
    [
        ("Hello?", "never read", "Hi.", 0, "Hi.\n"),
        ("-", " Hello?\nAnd:\nthis. \n", "Hi.", 0, "Hi.\n"),
        ("Hello?", "", error(500), 1, ""),
        (" ", "", "never", 2, ""),
        ("-", "", "never", 2, ""),
        ("-", "\xff", "never", 2, ""),
    ],
)
def test_one_request(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    elsewhere: str,
    prompt: str,
    stdin: str,
    reply: Action,
    code: int,
    out: str,
) -> None:
    monkeypatch.setenv("BANKING_MODEL_RETRIES", "0")
    ended, shown, err, model = piped(
        *(monkeypatch, capsys, tmp_path, [reply]),
        *("--prompt", prompt, "--url", elsewhere),
        stdin=stdin,
    )
    assert (ended, shown) == (code, out)
    if code == 2:
        assert err.startswith("banking-server: ")
        assert err.count("\n") == 1
        assert model.requests == []
    else:
        asked = stdin.strip() if prompt == "-" else prompt
        assert model.requests[0]["messages"][-1]["content"] == asked


def test_one_request_that_is_stopped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    elsewhere: str,
) -> None:
    def interrupt(_request: object) -> Silence:
        os.kill(os.getpid(), signal.SIGINT)
        return Silence()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, out, err, _ = piped(
            *(monkeypatch, capsys, tmp_path, interrupt), *("--prompt", "Hi", "--url", elsewhere)
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out) == (130, "")
    assert err.startswith("This was stopped. No tool call was completed.\n[0 calls by the model")


@pytest.mark.parametrize(
    ("configured", "command", "told"),
    [
        (False, [], "No model is configured: set BANKING_MODEL_URL."),
        (True, ["--", "no-such-command"], "Cannot talk to no-such-command: there is no such"),
        (True, ["--url", "http://127.0.0.1:1/mcp"], "Cannot talk to http://127.0.0.1:1/mcp"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    configured: bool,
    command: list[str],
    told: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["banking-server", "chat", *command])
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with scripted_model([]) as model:
        variables = settings(model if configured else None, tmp_path)
        for name in ("URL", "NAME"):
            monkeypatch.delenv(f"BANKING_MODEL_{name}", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert told in errors
