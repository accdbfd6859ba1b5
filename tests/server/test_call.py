"""`banking-server call`: a client for any server, without a terminal and in one."""

import json
import sys
from pathlib import Path

import pytest

from ..kit.command import ANY_SERVER, Cli, command, run
from ..kit.servers import HttpServer, free_port
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, LOCKED_TEXT, TO_AN_AGENT

WORDS = json.dumps(FROM_LOCKED)


def test_this_server_by_default(cli: Cli) -> None:
    called = cli("call", "prepare_money_transfer", "--arguments", WORDS)
    assert called.code == 0
    steps = [
        "1. prepare_money_transfer",
        f"   with     {WORDS}",
        "   because  you asked for it",
        f"   {LOCKED_TEXT}",
        "2. request_agent_handoff",
        f"   with     {json.dumps(TO_AN_AGENT['arguments'])}",
        "   because  prepare_money_transfer said so: _meta.nextTool = " + json.dumps(TO_AN_AGENT),
    ]
    lines = called.out.splitlines()
    assert [line for line in lines if line in steps] == steps
    # There is no terminal to answer in, so the server was told not to ask: the text form.
    assert "speak to an agent now, or be called back?" in called.out
    assert lines[-1].startswith("Chain completed after 2 calls")
    assert "process_agent_handoff_choice" not in called.out
    assert "\x1b" not in called.out


def test_everything_as_json(cli: Cli, bank: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_TOKEN", bank.token("CUST001"))
    arguments = ("call", "prepare_money_transfer", "--arguments", WORDS, "--json")
    called = cli(*arguments, "--url", bank.url)
    assert called.code == 0
    chain = json.loads(called.out)
    assert chain["outcome"] == "completed"
    assert chain["pending"] is None
    first, second = chain["steps"]
    assert first["result"]["_meta"]["nextTool"] == TO_AN_AGENT
    assert (second["level"], second["tool"]) == (2, "request_agent_handoff")
    assert "1. prepare_money_transfer" in called.err


def test_without_a_token_or_with_one_that_is_not_enough(
    cli: Cli, bank: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("call", "prepare_money_transfer", "--arguments", WORDS, "--url", bank.url)
    refused = cli(*arguments)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"banking-server: Cannot talk to {bank.url}: "
        "HTTP 401 Unauthorized: Authentication required\n"
    )
    monkeypatch.setenv("BANKING_TOKEN", bank.token("CUST001", "bank:read"))
    refused = cli(*arguments)
    assert refused.code == 1
    assert "HTTP 403 Forbidden: Required scope: bank:transfer" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    "server",
    [
        ("--url", f"http://127.0.0.1:{free_port()}/mcp"),
        ("--url", "not a URL"),
        ("--", "no-such-command-anywhere"),
        ("--", sys.executable, "-c", "pass"),
    ],
)
def test_a_server_that_cannot_be_talked_to(cli: Cli, server: tuple[str, ...]) -> None:
    refused = cli("call", "tool", *server)
    assert (refused.code, refused.out) == (2, ""), refused
    assert refused.err.startswith("banking-server: Cannot talk to ")
    assert refused.err.count("\n") == 1


def test_a_server_that_dies_has_said_why(database: Path) -> None:
    refused = run("call", "list_accounts", "--database", str(database), "--customer", "CUST999")
    assert (refused.returncode, refused.stdout) == (2, "")
    said, meant = refused.stderr.splitlines()
    assert said == "banking-server: The bank has no customer 'CUST999'."
    assert meant.startswith("banking-server: Cannot talk to ")


def test_nobody_to_ask_means_no(cli: Cli, elsewhere: str) -> None:
    declined = cli("call", "tidy_up", "--url", elsewhere)
    assert declined.code == 1
    assert "There is a lot to delete." in declined.out
    assert "Everything is gone." not in declined.out
    assert "Chain declined after 1 call:" in declined.out
    assert "2. delete_all" in declined.out


def test_yes_follows_unasked(cli: Cli, elsewhere: str) -> None:
    followed = cli("call", "tidy_up", "--yes", "--url", elsewhere)
    assert followed.code == 0
    assert "Everything is gone." in followed.out


def test_the_limit_counts_the_first_call(cli: Cli, elsewhere: str) -> None:
    stopped = cli("call", "count", "--max-calls", "3", "--url", elsewhere)
    assert stopped.code == 1
    assert "That makes 3." in stopped.out
    assert "That makes 4." not in stopped.out
    assert "Chain limit_reached after 3 calls:" in stopped.out


def test_an_error_is_an_exit_code_too(cli: Cli, elsewhere: str) -> None:
    failed = cli("call", "fail", "--url", elsewhere)
    assert failed.code == 1
    assert "It did not work." in failed.out
    assert "reports this as an error" in failed.out


def test_a_servers_words_do_nothing_but_stand_there(cli: Cli, elsewhere: str) -> None:
    shown = cli("call", "steer", "--url", elsewhere)
    assert shown.code == 0
    assert "\ufffd[2Jgone [red]red[/red]" in shown.out
    assert "for the model alone" not in shown.out


def test_without_a_terminal_a_server_is_told_that_it_cannot_ask(cli: Cli, elsewhere: str) -> None:
    assert "Nobody to ask." in cli("call", "order", "--url", elsewhere).out


@pytest.mark.parametrize("secret", ["BANKING_TOKEN", "BANKING_SECRET", "BANKING_MODEL_KEY"])
def test_a_command_gets_the_environment_but_for_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv(secret, "secret")
    monkeypatch.setenv("SOMETHING", "else")
    server = ("--", sys.executable, str(ANY_SERVER))
    arguments = ("--arguments", json.dumps({"secret": secret}))
    assert "None else" in cli("call", "environment", *arguments, *server).out


# --- in a terminal --------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
def test_a_person_is_asked_before_something_is_destroyed(
    elsewhere: str, answer: str, code: int
) -> None:
    terminal = Terminal(command("call", "tidy_up", "--url", elsewhere))
    terminal.wait_for("Call it? [y/N]")
    assert "Everything is gone." not in terminal.screen
    terminal.type(answer)
    assert terminal.finish() == code
    assert ("Everything is gone." in terminal.screen) == (code == 0)


def test_a_person_answers_the_servers_questions(elsewhere: str) -> None:
    terminal = Terminal(command("call", "order", "--url", elsewhere))
    terminal.wait_for("2. Green")
    terminal.wait_for("declines): ")
    terminal.type("3")
    terminal.wait_for("from 1 to 2")
    terminal.wait_for("declines): ")
    terminal.type("2")
    terminal.wait_for("To everything.")
    terminal.wait_for("y/n")
    terminal.type("yes")
    terminal.wait_for("Pieces")
    terminal.wait_for("declines): ")
    terminal.type("0")
    terminal.wait_for("does not fit")
    terminal.wait_for("declines): ")
    terminal.type("12")
    terminal.wait_for("A number")
    terminal.type("2.5")
    terminal.wait_for('means "nothing to note"')
    terminal.type("")
    assert terminal.finish() == 0
    assert (
        'Answered: {"colour":"g","agree":true,"pieces":12,"weight":2.5,"note":"nothing to note"}'
    ) in terminal.screen


@pytest.mark.parametrize(("typed", "action"), [("\n", "decline"), ("\x04", "cancel")])
def test_a_person_need_not_answer(elsewhere: str, typed: str, action: str) -> None:
    terminal = Terminal(command("call", "order", "--url", elsewhere))
    terminal.wait_for("declines): ")
    terminal.press(typed)
    assert terminal.finish() == 0
    assert f"Not answered: {action}" in terminal.screen


def test_ctrl_c_at_a_question_ends_it(elsewhere: str) -> None:
    terminal = Terminal(command("call", "order", "--url", elsewhere))
    terminal.wait_for("declines): ")
    terminal.press("\x03")
    assert terminal.finish() == 130
    assert "Traceback" not in terminal.screen
