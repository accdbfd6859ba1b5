"""The command `tool-chaining-proxy`: what it refuses, and how it ends."""

import io
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from tool_chaining_proxy.__main__ import main
from tool_chaining_proxy.options import Address, Command, ProxyOptions, Server

from ..kit.command import PATIENCE, environment
from ..kit.stdio import Lines, lines_of
from .scripted import WHO_AND_SLOW, Shop
from .wire import JSON, PROXY, proxy_in_memory

pytestmark = pytest.mark.anyio


def ended(*arguments: str) -> int:
    """Run the command in this process; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tool-chaining-proxy", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
    return int(exited.value.code or 0)


def refused(*arguments: str) -> str:
    """Return the one line with which the command refuses to start."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = ended(*arguments)
    said = errors.getvalue()
    assert (code, out.getvalue()) == (2, "")
    assert said.count("\n") == (1 if arguments else 2), said
    assert said.startswith("tool-chaining-proxy: ")
    return said.partition(": ")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--url"),
        (("--url", "http://localhost/mcp", "--", "true"), "not both"),
        (("--url", "localhost:80"), "http or https"),
        (("--", "nosuchprog"), "There is no command 'nosuchprog'"),
        (("--trust-hints", "--consent", "all", "--", "true"), "not both"),
        (("--consent", "/missing/rules", "--", "true"), "--consent"),
        (("--allow-host", "x", "--", "true"), "--allow-host needs --http"),
        (("--http", "--forward-authorization", "--", "true"), "needs --url"),
        (("--http", "--host", "0.0.0.0", "--", "true"), "--allow-host"),
        (("--http", "--host", "0.0.0.0", "--allow-host", "x", "--", "true"), "--anybody"),
        (
            ("--http", "--host", "no such host", "--allow-host", "x", "--anybody", "--", "true"),
            "Cannot serve",
        ),
        (("--http", "--allow-host", "https://bank.example", "--", "true"), "--allow-host"),
    ],
)
def test_invalid_options_are_one_line(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(*arguments)


@pytest.mark.parametrize("token", ["sec ret\nX: y", "secret\x01", "s\u00e9cret"])
def test_an_unsendable_token_is_not_quoted_in_the_error(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", token)
    problem = refused("--url", "http://localhost/mcp")
    assert problem.startswith("MCP_TOKEN has a character")
    assert "cret" not in problem


def test_no_token_goes_to_another_computer_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_clear = "The token would go to 192.0.2.1 unencrypted"
    forwarding = ("--http", "--forward-authorization", "--url", "http://192.0.2.1/mcp")
    assert refused(*forwarding).startswith(in_the_clear)
    assert refused("--url", "http://user:pass@192.0.2.1/mcp").startswith(in_the_clear)
    monkeypatch.setenv("MCP_TOKEN", "secret")
    forwarding = ("--http", "--forward-authorization", "--url", "http://localhost/mcp")
    assert "use only one of them" in refused(*forwarding)
    problem = refused("--url", "http://192.0.2.1/mcp")
    assert problem.startswith(in_the_clear)
    assert "secret" not in problem
    # With the flag, or over TLS, it goes on to the next mistake.
    for allowed in (("--insecure", "--url", "http://192.0.2.1/"), ("--url", "https://192.0.2.1/")):
        assert "needs --http" in refused("--port", "1", *allowed)


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (Command(("true",), environment()), "the server ended instead of answering"),
        (Command(("sh", "-c", "echo Boot; echo No disk. >&2"), environment()), "error: no disk."),
        (Command(("./missing",), environment()), "there is no such command"),
        (Command(("sleep", "300"), environment()), "it did not answer within 0.2 s"),
        (Address("http://u:secret@127.0.0.1:1/mcp?key=secret"), "connect"),
    ],
    ids=["true", "says why", "missing", "silent", "nobody"],
)
async def test_an_unreachable_server_is_one_line(behind: Server, words: str) -> None:
    patience = {"start_timeout": 0.2} if "0.2" in words else {}
    options = ProxyOptions(server=behind, **patience)
    with anyio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as refused:
        async with Client(proxy_in_memory(options)):
            raise AssertionError("It was reached.")
    error: BaseException = refused.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, MCPError)
    message = error.message
    assert message.startswith("Cannot talk to ")
    assert words in message.lower()
    assert "\n" not in message
    assert "secret" not in message


def started(folder: Path, **variables: str) -> Any:
    shop = Shop(folder, answers=WHO_AND_SLOW)
    return lines_of([*PROXY, "--", *shop.command], **variables)


def who(proxy: Lines) -> JSON:
    return dict(proxy.call(5, "who", {})["result"]["structuredContent"])


def test_the_process_over_stdio(tmp_path: Path) -> None:
    """It hands on its environment but for the token, and the server ends with it."""
    with started(tmp_path, STRANGE_SETTING="mine", MCP_TOKEN="secret") as proxy:
        proxy.open()
        behind = who(proxy)
        assert (behind["environment"], behind["secret"]) == ("mine", "$MCP_TOKEN")
        slow = {"name": "slow", "arguments": {"text": "s"}}
        proxy.send({"id": 8, "method": "tools/call", "params": slow})
        assert who(proxy)["pid"] == behind["pid"]  # So the proxy has read the call before it.
        proxy.process.send_signal(signal.SIGINT)
        assert "error" in proxy.said()
        rest, errors = proxy.end()
        assert rest == []
        assert "Traceback" not in errors
        with pytest.raises(ProcessLookupError):
            os.kill(int(behind["pid"]), 0)
