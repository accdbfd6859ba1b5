"""`banking-server chat` as people use it: at a terminal, in a pipe, with real servers."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..kit.command import PATIENCE, Cli, Ended, command
from ..kit.model import Reply, Script, ScriptedModel, Silence, error, native, scripted_model
from ..kit.servers import bank_server
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, LOCKED, PREPARE


def settings(model: ScriptedModel) -> dict[str, str]:
    """Return the settings of a chat with this model."""
    return {
        # So wide that no text is wrapped which a test waits for.
        "COLUMNS": "400",
        "BANKING_MODEL_URL": model.url,
        "BANKING_MODEL_NAME": "scripted",
    }


Piped = Callable[..., Ended]
"""Holds a conversation without a terminal."""


@pytest.fixture
def piped(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Piped:
    def chat(model: ScriptedModel, *arguments: str, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("latin-1"))))
        for name, value in settings(model).items():
            monkeypatch.setenv(name, value)
        return cli("chat", *arguments)

    return chat


def test_the_banks_story_in_a_terminal(database: Path) -> None:
    """One call by the model, the directive does the rest; then Ctrl-C, and the end."""
    script: Script = [
        "Today.",
        native(PREPARE, **FROM_LOCKED),
        "An agent will call you.",
        Silence(),
        "Still here.",
    ]
    with scripted_model(script) as model:
        variables = {**settings(model), "INPUTRC": os.devnull, "BANKING_DATABASE": str(database)}
        with Terminal(command("chat", "--customer", "CUST001"), **variables) as terminal:
            terminal.wait_for("Model: scripted, with ")
            terminal.wait_for("you> ")
            terminal.type("Hi")
            terminal.wait_for("   Today.\n")

            terminal.wait_for("you> ")
            terminal.type(f"Move 250 dollars from {LOCKED}.")
            terminal.wait_for("1. prepare_money_transfer")
            terminal.wait_for("because  the model asked for it")
            terminal.wait_for('"prepare_money_transfer" may change something. Call it? [y/N] ')
            terminal.type("y")
            terminal.wait_for("2. request_agent_handoff")
            terminal.wait_for("because  prepare_money_transfer said so: _meta.nextTool = ")
            terminal.wait_for("Call it? [y/N] ")
            terminal.type("y")
            terminal.wait_for("How would you like to be connected?")
            terminal.wait_for("2. Be called back")
            terminal.press("\x1b[B\n")
            terminal.wait_for("An agent will call you.\n")

            terminal.wait_for("you> ")
            terminal.type("Think for ever.")
            assert model.silent.wait(PATIENCE)
            terminal.press("\x03")
            terminal.wait_for("This was stopped. No tool call was completed.")
            terminal.wait_for("you> ")
            terminal.press("half a line")
            terminal.wait_for("half a line")
            terminal.interrupt_until("(Ctrl-D ends the conversation.)")
            terminal.wait_for("you> ")
            # An arrow key brings back what was typed before; nothing is kept for the next time.
            terminal.press("\x1b[A\n")
            terminal.wait_for("Still here.\n")

            terminal.wait_for("you> ")
            terminal.press("\x04")
            assert terminal.finish() == 0
    assert "I'm sorry" in terminal.screen
    assert "I'm sorry" not in model.told
    assert "A customer service agent will call you back." in model.told
    assert model.last_message() == "Think for ever."
    assert "Traceback" not in terminal.screen


def test_in_a_pipe_nobody_is_asked_and_a_program_gets_the_answers_alone(
    piped: Piped, full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [
        Reply(calls=[("list_accounts", {}), ("request_agent_handoff", {})]),
        "**Nobody** agreed.\n\n1. So.",
        "Et \u00e9.\x1b[2J",
    ]
    with scripted_model(script) as model, bank_server(full) as bank:
        monkeypatch.setenv("MCP_TOKEN", bank.token())
        stdin = "An agent, please.\n\n\xff?\n"
        ended = piped(model, "--trust-hints", "--url", bank.url, stdin=stdin)
    assert ended.code == 0
    assert ended.out == "**Nobody** agreed.\n\n1. So.\nEt \u00e9.\\x1b[2J\n"
    assert "1. list_accounts" in ended.err
    assert "1. request_agent_handoff" in ended.err
    assert ended.err.count("not called: nobody can be asked without a terminal") == 1
    assert "request_agent_handoff was not called: nobody can be asked" in model.told
    for noise in ("you>", "\x1b", "Model:", "Thinking"):
        assert noise not in ended.out + ended.err
    # What is no text is no end.
    assert model.last_message() == "\ufffd?"


def test_one_request(piped: Piped, elsewhere: str) -> None:
    with scripted_model(["Hi.", error(404)]) as model:
        asked = (model, "--url", elsewhere, "--prompt")
        ended = piped(*asked, "-", stdin=" Hello?\nAnd:\nthis. \n")
        assert (ended.code, ended.out) == (0, "Hi.\n")
        assert model.last_message() == "Hello?\nAnd:\nthis."
        ended = piped(*asked, "Hello?", stdin="never read")
        assert (ended.code, ended.out) == (1, "")
        assert model.last_message() == "Hello?"


def test_the_tools_of_several_servers_are_told_apart(piped: Piped, elsewhere: str) -> None:
    with scripted_model(["Hello."]) as model:
        ended = piped(model, "--url", elsewhere, "--url", elsewhere, stdin="Hi\n")
    assert (ended.code, ended.out) == (0, "Hello.\n")
    names = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert {"anything_count", "anything_2_count"} <= names


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--prompt", "-"], "The request is empty"),
        (["--config", "missing"], "missing: cannot be read as YAML: [Errno 2] No such file"),
        (["--agent", "x"], "--agent chooses one of the agents in the file"),
        (["--url", "http://a/mcp", "--url", "http://b/mcp"], "they have different hosts"),
        (["--url", "http://a/mcp", "--customer", "CUST001"], "are for this bank only"),
    ],
)
def test_invalid_options_are_refused_before_the_model_is_asked(
    monkeypatch: pytest.MonkeyPatch, piped: Piped, options: list[str], told: str
) -> None:
    monkeypatch.setenv("MCP_TOKEN", "for one of them")
    with scripted_model([]) as model:
        ended = piped(model, *options)
    assert (ended.code, ended.out, model.requests) == (2, "", [])
    assert told in " ".join(ended.err.replace("\u2502", " ").split())
