"""`banking-server chat` as people use it: in a real terminal, with real servers as subprocesses."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from banking_server.cli import main

from ..kit.command import PATIENCE, environment
from ..kit.cutting import cutting_server
from ..kit.model import Script, ScriptedModel, Silence, call, scripted_model
from ..kit.terminal import Terminal
from . import shop_server
from .shop_server import SECRET


def settings(model: ScriptedModel | None, folder: Path) -> dict[str, str]:
    """Return the settings of a chat with this model, on a bank of the test's own."""
    chosen = {
        "TERM": "dumb",
        "INPUTRC": os.devnull,
        # So wide that no text is wrapped which a test waits for.
        "COLUMNS": "400",
        "LINES": "40",
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


def chat(model: ScriptedModel, folder: Path, command: Sequence[str]) -> Terminal:
    """Start a conversation in a terminal."""
    return Terminal(
        [sys.executable, "-m", "banking_server", "chat", *command],
        **settings(model, folder),
    )


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
    """One conversation: consent, a question, Ctrl-C everywhere, the history, and the end."""
    script: Script = [
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
        terminal = chat(model, tmp_path, shop.command)
        terminals.append(terminal)
        terminal.wait_for("Model: scripted. Tools: price, buy")

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
        terminal.press("\x03")
        terminal.wait_for("Done so far: code (by the model). The call of hang was under way")

        # A directive's call is shown and asked for as the model's is, and can be stopped too.
        terminal.wait_for("you> ")
        terminal.press("Check out.\n")
        terminal.wait_for("2. pay\n")
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
        terminal.press("\x04")
        assert terminal.finish() == 0
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


def test_without_a_terminal_nothing_is_asked(tmp_path: Path, shop: Shop) -> None:
    script = [call("price", door="oak"), call("buy", door="oak"), "Nobody agreed."]
    with scripted_model(script) as model:
        ran = subprocess.run(
            [sys.executable, "-m", "banking_server", "chat", *shop.command],
            input="Buy an oak door.\n",
            capture_output=True,
            text=True,
            env=environment(**settings(model, tmp_path)),
            timeout=PATIENCE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Nobody agreed.\n" in ran.stdout
    assert "(Not called: buy." in ran.stdout
    assert "you>" not in ran.stdout
    assert [tool for tool, _ in shop.calls()] == ["price"]


def test_a_connection_that_breaks_ends_a_call_and_not_the_conversation(tmp_path: Path) -> None:
    script = [call("begin"), "Nobody knows.", call("go_on"), "Still here."]
    with scripted_model(script) as model, cutting_server() as (url, called):
        ran = subprocess.run(
            [sys.executable, "-m", "banking_server", "chat", "--url", url],
            input="Begin.\nGo on.\n",
            capture_output=True,
            text=True,
            env=environment(**settings(model, tmp_path)),
            timeout=PATIENCE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Nobody knows.\n" in ran.stdout
    assert "Still here.\n" in ran.stdout
    assert called == ["begin", "cut", "go_on"]
    assert "That call was started, and whether it took effect is not known" in model.told


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
