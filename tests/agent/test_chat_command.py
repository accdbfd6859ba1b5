"""`banking-server chat` as people use it: at a terminal, in a pipe, with real servers."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banking_server.cli import main

from ..kit.command import PATIENCE
from ..kit.model import (
    Action,
    Reply,
    Script,
    ScriptedModel,
    Silence,
    error,
    native,
    scripted_model,
)
from ..kit.terminal import Terminal

CHAT = [sys.executable, "-m", "banking_server", "chat"]


def settings(model: ScriptedModel, folder: Path) -> dict[str, str]:
    """Return the settings of a chat with this model, on a bank of the test's own."""
    return {
        "TERM": "dumb",
        "INPUTRC": os.devnull,
        # So wide that no text is wrapped which a test waits for.
        "COLUMNS": "400",
        "LINES": "40",
        "BANKING_DATABASE": str(folder / "bank.db"),
        "BANKING_MODEL_URL": model.url,
        "BANKING_MODEL_NAME": "scripted",
        "BANKING_MODEL_TOOLS": "native",
    }


Piped = Callable[..., tuple[Any, str, str]]
"""Holds a conversation without a terminal; returns the exit code, and what was written."""


@pytest.fixture
def piped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Piped:
    def run(model: ScriptedModel, *command: str, stdin: str = "") -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["banking-server", "chat", *command])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("latin-1"))))
        for name, value in settings(model, tmp_path).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


def test_the_banks_story_in_a_terminal(tmp_path: Path) -> None:
    """One call by the model, the directive does the rest; then Ctrl-C, `/save`, and the end."""
    script: Script = [
        "**Today.**\n\n- [x](http://a.example)",
        native(
            "prepare_money_transfer",
            fromAccountId="acc_checking_001",
            toAccountId="acc_savings_001",
            amount=100,
        ),
        "An agent will call you.",
        Silence(),
        "Still here.",
    ]
    with scripted_model(script) as model:
        variables = settings(model, tmp_path) | {"TERM": "xterm-256color"}
        terminal = Terminal([*CHAT, "--customer", "CUST001"], **variables)
        try:
            terminal.wait_for("Model: scripted, with ")
            terminal.wait_for("you> ")
            terminal.type("Hi")
            terminal.wait_for("   \x1b[1mToday.\x1b[0m\n")
            terminal.wait_for("\x1b[94mx\x1b[0m (\x1b[4;34mhttp://a.example\x1b[0m)\n")

            terminal.wait_for("you> ")
            terminal.type("Move 100 from acc_checking_001 to acc_savings_001.")
            terminal.wait_for("1. prepare_money_transfer")
            terminal.wait_for("because  the model asked for it")
            terminal.wait_for('"prepare_money_transfer" may change something. Call it? [y/N] ')
            terminal.type("y")
            terminal.wait_for("2. request_agent_handoff")
            terminal.wait_for("because  prepare_money_transfer said so: _meta.nextTool = ")
            terminal.wait_for("Call it? [y/N] ")
            terminal.type("y")
            terminal.wait_for("How would you like to be connected?")
            terminal.wait_for("1-2")
            terminal.type("2")
            terminal.wait_for("An agent will call you.\n")

            terminal.wait_for("you> ")
            terminal.type("Think for ever.")
            assert model.silent.wait(PATIENCE)
            terminal.press("\x03")
            terminal.wait_for("This was stopped. No tool call was completed.")
            terminal.wait_for("you> ")
            terminal.press("half a line")
            terminal.wait_for("half a line")
            terminal.interrupt_until("(Ctrl-D or /quit ends the conversation.)")
            terminal.wait_for("you> ")
            # An arrow key brings back what was typed before; nothing is kept for the next time.
            terminal.press("\x1b[A\n")
            terminal.wait_for("Still here.\n")

            terminal.wait_for("you> ")
            terminal.type(f"/save {tmp_path}/chat.md")
            terminal.wait_for(f"Saved to {tmp_path}/chat.md, as Markdown: 4 requests.")
            terminal.wait_for("you> ")
            terminal.press("\x04")
            assert terminal.finish() == 0
        finally:
            terminal.close()
    assert "\n> An agent will call you.\n" in (tmp_path / "chat.md").read_text("utf-8")
    assert "I'm sorry" in terminal.screen
    assert "I'm sorry" not in model.told
    assert "A customer service agent will call you back." in model.told
    assert model.last_message() == "Think for ever."
    assert "half a line" not in model.told
    assert "Traceback" not in terminal.screen


def test_in_a_pipe_nobody_is_asked_and_a_program_gets_the_answers_alone(
    tmp_path: Path, piped: Piped
) -> None:
    script: Script = [
        Reply(calls=[("list_accounts", {}), ("request_agent_handoff", {})]),
        "**Nobody** agreed.\n\n1. So.",
        "Et \u00e9.\x1b[2J",
    ]
    file = tmp_path / "chat.md"
    stdin = f"An agent, please.\n\xff?\n/tools\n/save {file}\n/quit\nnever read\n"
    with scripted_model(script) as model:
        code, out, err = piped(model, stdin=stdin)
    assert (code, out) == (0, "**Nobody** agreed.\n\n1. So.\nEt \u00e9.\\x1b[2J\n")
    for told in (
        "Nobody can be asked for consent here",
        "(Not called: request_agent_handoff. Nobody can be asked here.)",
        "   request_agent_handoff: Request Agent Handoff (not called here)\n",
    ):
        assert told in err
    for noise in ("you>", "\x1b", "Model:", "Thinking"):
        assert noise not in out + err
    assert model.last_message() == "\ufffd?"
    assert file.read_text("utf-8").count("## Request") == 2


@pytest.mark.parametrize(
    ("prompt", "stdin", "reply", "code", "out"),
    [
        ("Hello?", "never read", "Hi.", 0, "Hi.\n"),
        ("-", " Hello?\nAnd:\nthis. \n", "Hi.", 0, "Hi.\n"),
        ("Hello?", "", error(500), 1, ""),
    ],
)
def test_one_request(
    piped: Piped, prompt: str, stdin: str, reply: Action, code: int, out: str
) -> None:
    with scripted_model([reply]) as model:
        assert piped(model, "--prompt", prompt, stdin=stdin)[:2] == (code, out)
    assert model.last_message() == (stdin.strip() if prompt == "-" else prompt)


def test_commands_are_carried_out_and_are_not_for_the_model(piped: Piped, elsewhere: str) -> None:
    lines = "/help\n/save\n/save /no/where\n/nothing at all\nHi\n"
    with scripted_model(["Hello."]) as model:
        code, out, err = piped(model, "--url", elsewhere, "--url", elsewhere, stdin=lines)
    assert (code, out) == (1, "Hello.\n"), "not every command was carried out"
    assert [request["messages"][-1]["content"] for request in model.requests] == ["Hi"]
    assert "   /save FILE  write the conversation to a new file, as Markdown\n" in err
    assert "/save needs the name of a file to write to.\n" in err
    assert "There is nothing to save yet.\n" in err
    assert "There is no /nothing at all: there are /help, /tools, /save FILE, /quit.\n" in err
    # The tools of several servers are told apart.
    names = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert {"anything__count", "anything_2__count"} <= {*names}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["--prompt", "-"], "The request is empty"),
        (["--config", "missing"], "missing: cannot be read as YAML: [Errno 2] No such file"),
        (["--agent", "x"], "--agent chooses one of the agents in the file"),
        (["--url", "http://a/mcp", "--url", "http://b/mcp"], "they have different hosts"),
        (["--url", "http://a/mcp", "--customer", "CUST001"], "are for this server only"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, piped: Piped, command: list[str], told: str
) -> None:
    monkeypatch.setenv("MCP_TOKEN", "for one of them")
    with scripted_model([]) as model:
        code, out, err = piped(model, *command)
    assert (code, out, model.requests) == (2, "", [])
    assert told in " ".join(err.replace("\u2502", " ").split())
