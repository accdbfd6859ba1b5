"""`banking-server call`: a client for any server, without a terminal and in one."""

import json
import sys
from pathlib import Path

import pytest

from banking_server.cli.servers import started_by
from banking_server.client.narrator import NOBODY_ASKED

from ..kit.any_server import any_server
from ..kit.command import Cli, command
from ..kit.servers import free_port
from ..kit.terminal import Terminal
from ..kit.words import FROM_LOCKED, TO_AN_AGENT
from ..proxy.scripted import LAST_WORDS, Shop, said
from .support import refusing_server


def test_this_server_by_default(cli: Cli) -> None:
    called = cli("call", "prepare_money_transfer", "--arguments", json.dumps(FROM_LOCKED))
    assert called.code == 0
    lines = called.out.splitlines()
    assert "2. request_agent_handoff" in lines
    # There is no terminal to answer in, so the server was told not to ask: the text form.
    assert "speak to an agent now, or be called back?" in called.out
    assert lines[-1].startswith("Chain completed after 2 calls")
    assert "process_agent_handoff_choice" not in called.out
    assert "\x1b" not in called.out
    left = cli("handoffs")
    assert (left.code, TO_AN_AGENT["arguments"]["reason"] in left.out) == (0, True)


def test_everything_as_json(cli: Cli, elsewhere: str) -> None:
    called = cli("call", "count", "--trust-hints", "--limit", "2", "--json", "--url", elsewhere)
    assert called.code == 1
    chain = json.loads(called.out)
    assert chain["outcome"] == "limit_reached"
    count = {"tool": "count", "arguments": {"number": 3}, "status": "not_made"}
    assert chain["unfinished"] == count
    first, second = chain["steps"]
    # A directive is not said twice.
    assert "nextTool" not in str([first["result"], second["result"]])
    assert (second["level"], second["tool"], second["arguments"]) == (2, "count", {"number": 2})
    assert second["result"]["content"][0]["text"] == "That makes 2."
    assert "1. count" in called.err


def test_a_refusal_over_http_says_why_and_what_to_do(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing_server("No", "Who is it?") as url:
        refused = cli("call", "first", "--url", url)
        assert refused.err == (
            f"banking-server: Cannot talk to {url}: the server answered HTTP 401 No: Who is it?. "
            "Set MCP_TOKEN to a token for that server (for your own bank: `banking-server token`)\n"
        )
        assert cli("tools", "--url", url) == refused
        monkeypatch.setenv("MCP_TOKEN", "of-yesterday")
        refused = cli("call", "first", "--url", url)
    assert "The server does not accept the token in MCP_TOKEN: set it" in refused.err
    assert "of-yesterday" not in refused.err
    for token in ("of-yesterday\nX: y", "of-yesterd\u00e9"):
        monkeypatch.setenv("MCP_TOKEN", token)
        refused = cli("tools", "--url", "http://127.0.0.1:1/mcp")
        assert refused.err.startswith("banking-server: MCP_TOKEN has a character that HTTP headers")
        assert "of-yester" not in refused.err


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (("--url", f"http://127.0.0.1:{free_port()}/mcp"), ""),
        (
            ("--", "no-such-command-anywhere", "--url"),
            "no such command; write the server's command after `--`",
        ),
        (
            ("--", sys.executable, "-c", "import sys; sys.exit('No door\\x1b[2J')"),
            "the server ended instead of answering; what it wrote last to its standard error: "
            "No door\\x1b[2J\n",
        ),
    ],
)
def test_a_server_that_cannot_be_talked_to(cli: Cli, server: tuple[str, ...], why: str) -> None:
    for asking in (("call", "tool"), ("tools",)):
        refused = cli(*asking, *server)
        assert (refused.code, refused.out) == (2, ""), refused
        (line,) = [line for line in refused.err.splitlines(True) if line[:9] != "[server] "]
        assert line.startswith("banking-server: Cannot talk to ")
        assert why in line


def test_a_server_that_ends_in_a_step_is_named_with_the_step(cli: Cli, tmp_path: Path) -> None:
    failed = cli("call", "ends", "--", *Shop(tmp_path, answers={"ends": ["ends"]}).command)
    assert failed.code == 1
    assert failed.out.splitlines()[-2:] == [
        'Chain failed after 0 calls: the call of "ends" (call 1) failed: "Connection closed".',
        "The server ended instead of answering; what it wrote last to its standard error: "
        f"{LAST_WORDS}",
    ]


def test_a_tool_that_reports_an_error_completes_nothing(cli: Cli, elsewhere: str) -> None:
    failed = cli("call", "delete_all", "--url", elsewhere)
    assert failed.code == 1
    assert failed.out.splitlines()[-1] == "Stopped after 1 call: the tool reported an error."


def test_a_tool_that_the_server_lacks_has_one_like_it(cli: Cli, elsewhere: str) -> None:
    near = cli("call", "start_ordr", "--url", elsewhere)
    assert near.code == 1
    assert near.out.splitlines()[-1] == (
        'The server has no tool "start_ordr". Did you mean "start_order"?'
    )
    far = cli("call", "xyz", "--url", elsewhere).out.splitlines()[-1]
    assert far == 'The server has no tool "xyz". `tools` lists what it has.'


TITLE = "\x1b[2JOnly dust\nCall it? [y/N] y"
"""It would like to be more than a title."""


def stalling(folder: Path) -> Shop:
    """A server whose `begin` names `cut` as the next tool, which never answers."""
    begun = said("It has begun.", _meta={"nextTool": {"tool": "cut", "title": TITLE}})
    return Shop(folder, answers={"begin": [begun], "cut": ["waits"]}, hints={"readOnlyHint": True})


def test_a_call_that_gets_no_answer_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    options = ("--consent", "all", "--json", "--timeout", "1")
    failed = cli("call", "begin", *options, "--", *stalling(tmp_path).command)
    assert failed.code == 1
    chain = json.loads(failed.out)
    assert chain["outcome"] == "failed"
    assert "the time allowed" in chain["detail"]
    assert [step["tool"] for step in chain["steps"]] == ["begin"]
    assert chain["unfinished"] == {"tool": "cut", "arguments": {}, "status": "unknown"}
    assert "nextTool" not in str(chain["steps"])
    assert "Whether cut took effect is not known." in failed.err
    assert "Traceback" not in failed.err


def test_where_nobody_can_be_asked_it_says_what_would_follow(cli: Cli, elsewhere: str) -> None:
    declined = cli("call", "start_order", "--url", elsewhere)
    assert declined.code == 1
    assert "It is ordered." not in declined.out
    assert "   not called: nobody agreed\n\nChain declined after 1 call:" in declined.out
    assert declined.out.splitlines()[-1] == NOBODY_ASKED
    for option in (("--trust-hints",), ("--consent", "all")):
        assert option[0] in NOBODY_ASKED
        followed = cli("call", "start_order", *option, "--url", elsewhere)
        assert followed.code == 0
        assert "It is ordered." in followed.out
    none = cli("call", "start_order", "--consent", "none", "--url", elsewhere)
    assert "It is ordered." not in none.out
    assert "Nobody could be asked" not in none.out
    both = cli("call", "start_order", "--trust-hints", "--consent", "none", "--url", elsewhere)
    assert both.err == "banking-server: Give either --trust-hints or --consent, not both.\n"


def test_a_server_that_does_not_advertise_is_followed_if_the_user_says_so(cli: Cli) -> None:
    with any_server(advertises=False) as url:
        silent = ("--trust-hints", "--url", url)
        declined = cli("call", "start_order", *silent)
        followed = cli("call", "start_order", "--follow-unadvertised", *silent)
    assert declined.out.splitlines()[-1].startswith("--follow-unadvertised follows it")
    assert followed.code == 0
    assert "It is ordered." in followed.out


def test_a_command_gets_the_environment_but_for_secrets(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["MCP_TOKEN", "BANKING_SECRET", "BANKING_MODEL_KEY"]
    for name in secrets:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("SOMETHING", "else")
    # A path is no secret; a URL may have a password.
    assert "BANKING_DATABASE" in (started_by(["x"]).env or {})
    monkeypatch.setenv("BANKING_DATABASE", "postgresql://me:hunter2@127.0.0.1:1/bank")
    secrets.append("BANKING_DATABASE")
    told = said(" ".join(f"{name}=${name}" for name in (*secrets, "SOMETHING")))
    called = cli("call", "first", "--", *Shop(tmp_path, answers={"first": [told]}).command)
    for name in secrets:
        assert f"{name}=${name}" in called.out, "it is not set"
    assert "SOMETHING=else" in called.out


# --- in a terminal --------------------------------------------------------------------------------


def test_a_person_is_asked_and_can_stop_what_is_waited_for(tmp_path: Path) -> None:
    shop = stalling(tmp_path)
    with Terminal(command("call", "begin", "--", *shop.command)) as terminal:
        terminal.wait_for("Call it? [y/N]")
        assert (len(shop.made("begin")), shop.made("cut")) == (1, [])
        terminal.type("y")
        terminal.wait_for("Waiting for cut")
        terminal.press("\x03")
        assert terminal.finish() == 130
    assert "\x1b[?25h" in terminal.screen.rpartition("Waiting for cut")[2], "the cursor is back"
    assert "Whether cut took effect is not known." in terminal.screen
    with Terminal(command("call", "cut", "--", *shop.command)) as terminal:
        terminal.wait_for("Waiting for cut")
        terminal.press("\x03")
        assert terminal.finish() == 130
    assert "Whether the call took effect is not known." in terminal.screen
