"""The command `tool-chaining-proxy`: what it refuses, how it ends, and the story of the bank."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest
from typer.testing import CliRunner

from banking_server.chaining import SteadyHttpClient
from banking_server.proxy.cli import app
from banking_server.proxy.options import Address, Command, ProxyOptions, Server
from banking_server.proxy.upstream import reason

from ..kit.bank import Customer, World, structured, words
from ..kit.command import ANY_SERVER, PATIENCE, command, environment, heeds_hangups
from ..kit.servers import free_port, http_server
from ..kit.serving import running
from .pipe import CHAINING, CLIENT, JSON, META, NEW, OLD, PROXY, STRANGE, Refused, pipe, soon
from .proxied_client import proxy
from .wire import strange_over_http

pytestmark = pytest.mark.anyio


def refused(*arguments: str) -> str:
    """Return the one line with which the command refuses to start."""
    ended = CliRunner().invoke(app, arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    assert "--url" in refused("--limit", "3")
    assert "not both" in refused("--url", "http://localhost/mcp", "--", "true")
    assert "http or https" in refused("--url", "localhost:80")
    assert "--consent" in refused("--consent", str(tmp_path / "missing"), "--", "true")


@pytest.mark.parametrize("token", ["sec ret\nX: y", "secret\x01", "s\u00e9cret"])
def test_a_token_that_cannot_be_sent_is_named_and_not_shown(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_CHAINING_PROXY_TOKEN", token)
    problem = refused("--url", "http://localhost/mcp")
    assert problem.startswith("TOOL_CHAINING_PROXY_TOKEN has a character")
    assert "cret" not in problem


def test_no_token_goes_to_another_computer_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_clear = "A token would go to 192.0.2.1 unencrypted"
    forwarding = ("--http", "--forward-authorization", "--url", "http://192.0.2.1/mcp")
    assert refused(*forwarding).startswith(in_the_clear)
    assert refused("--url", "http://user:pass@192.0.2.1/mcp").startswith(in_the_clear)
    monkeypatch.setenv("TOOL_CHAINING_PROXY_TOKEN", "secret")
    problem = refused("--url", "http://192.0.2.1/mcp")
    assert problem.startswith(in_the_clear)
    assert "secret" not in problem
    # With the flag, or over TLS, it goes on to the next mistake.
    for allowed in (("--insecure", "--url", "http://192.0.2.1/"), ("--url", "https://192.0.2.1/")):
        assert "need --http" in refused("--port", "1", *allowed)


async def test_nothing_that_was_to_be_sent_is_quoted() -> None:
    """The HTTP library shows the header that it refuses to send."""
    sent: list[str | None] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.headers["authorization"])
            self.send_error(404)

        def log_message(self, *arguments: Any) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Recorder)) as url:
        secret = {"Authorization": "Bearer secret\n"}
        async with httpx2.AsyncClient(headers=secret) as http:
            with pytest.raises(httpx2.LocalProtocolError, match="secret") as refusal:
                await http.post(url, json={})
        assert reason(refusal.value) == "it failed (LocalProtocolError)"
        async with SteadyHttpClient(headers=secret) as steady:
            assert "secret" not in (await steady.post(url, json={})).text
        assert sent == []
        # A line break at the end, which is a file's, is none of the token.
        command = [*PROXY, "--url", url]
        with pytest.raises(Refused), pipe(command, OLD, TOOL_CHAINING_PROXY_TOKEN="t\n"):
            raise AssertionError("nobody can have answered")
    assert set(sent) == {"Bearer t"}


def test_a_server_that_cannot_be_started_is_one_line() -> None:
    with pytest.raises(Refused) as error, pipe([*PROXY, "--", "./missing"], OLD):
        raise AssertionError("nobody can have answered")
    message = error.value.error["message"]
    assert message == "Cannot talk to ./missing: there is no such command"


async def greeting(server: Server, **options: Any) -> str:
    """Return the error that greets a client of 2026-07-28, of a proxy in this process."""
    declared = {f"{META}protocolVersion": NEW, f"{META}clientInfo": CLIENT}
    declared[f"{META}clientCapabilities"] = {}
    async with proxy(ProxyOptions(server=server, **options)) as (read, write):
        hello = JSONRPCRequest(
            jsonrpc="2.0", id=1, method="server/discover", params={"_meta": declared}
        )
        await write.send(SessionMessage(hello))
        with anyio.fail_after(PATIENCE):
            answer = await read.receive()
    return str(answer.message.error.message)


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (Command(("true",), environment()), "it ended before it answered"),
        (Address("http://u:secret@127.0.0.1:1/mcp?key=secret"), "connect"),
    ],
    ids=["true", "nobody"],
)
async def test_a_server_that_cannot_be_reached_is_one_line(behind: Server, words: str) -> None:
    message = await greeting(behind)
    assert message.startswith("Cannot talk to ")
    assert words in message.lower()
    assert "\n" not in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_the_server_behind_ends_with_the_proxy(how: signal.Signals) -> None:
    variables = {"STRANGE_SETTING": "mine", "TOOL_CHAINING_PROXY_TOKEN": "secret"}
    with pipe([*PROXY, "--", *STRANGE], OLD, **variables) as client:
        behind = client.call("who")["structuredContent"]
        # It is told the environment, but not the token.
        assert (behind["environment"], behind["secret"]) == ("mine", None)
        slow = client.begin("tools/call", {"name": "slow", "arguments": {"text": "s"}})
        client.process.send_signal(how)
        with pytest.raises(Refused):
            client.reply(slow)
    with pytest.raises(ProcessLookupError):
        os.kill(behind["pid"], 0)


def silent(tmp_path: Path) -> list[str]:
    """The command of a server that reads nothing and says nothing, but writes down who it is."""
    script = "import os, pathlib, sys, time; p = pathlib.Path(sys.argv[1]); "
    script += "p.with_suffix('.new').write_text(str(os.getpid())); "
    script += "p.with_suffix('.new').rename(p); time.sleep(300)"
    return [sys.executable, "-c", script, str(tmp_path / "pid")]


async def test_a_server_that_never_answers_is_one_line(tmp_path: Path) -> None:
    command = [*PROXY, "--call-timeout", "0.2", "--", *silent(tmp_path)]
    with pytest.raises(Refused) as error, pipe(command, OLD):
        raise AssertionError("nobody can have answered")
    assert error.value.error["message"].endswith("it did not answer within 0.2 s")
    quiet = Command(tuple(silent(tmp_path)), environment())
    assert (await greeting(quiet, start_timeout=0.2)).endswith("it did not answer within 0.2 s")


@pytest.mark.parametrize("how", ["end", pytest.param("SIGHUP", marks=pytest.mark.nightly)])
def test_a_server_that_never_answers_ends_with_the_client(how: str, tmp_path: Path) -> None:
    hello: JSON = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "c"}}
    hello["clientInfo"]["version"] = "1"
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    process = subprocess.Popen(
        [*PROXY, "--", *silent(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment(),
        preexec_fn=heeds_hangups,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    soon((tmp_path / "pid").exists)
    if how == "end":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGHUP)
    assert process.wait(PATIENCE) == 0
    process.stdin.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("revision", [OLD, pytest.param(NEW, marks=pytest.mark.nightly)])
def test_a_server_over_http_that_was_started_anew_is_used_again(
    revision: str, tmp_path: Path
) -> None:
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(strange_over_http(tmp_path, port))
        url = f"http://127.0.0.1:{port}/mcp"
        client = stack.enter_context(pipe([*PROXY, "--url", url], revision))
        before = client.call("who")["structuredContent"]["pid"]
        with pytest.raises(Refused) as died:
            client.call("die")
        assert "Whether the request took effect is not known" in died.value.error["message"]
        stack.enter_context(strange_over_http(tmp_path, port))
        # The session is gone with the process, and nobody notices; nor within a chain.
        assert client.call("first")["_meta"][CHAINING]["outcome"] == "completed"
        assert client.call("who")["structuredContent"]["pid"] != before


def test_a_server_that_does_not_advertise_is_followed_if_told_so() -> None:
    behind = [sys.executable, str(ANY_SERVER), "--unadvertised"]
    with pipe([*PROXY, "--limit", "3", "--follow-unadvertised", "--", *behind], NEW) as client:
        told = client.call("count")["_meta"][CHAINING]
        assert told["outcome"] == "limit_reached"
        assert [one["fate"] for one in told["followUps"]] == ["made", "made", "not_made"]


def proxied(*arguments: str, mode: str, answer: ElicitationFnT, **variables: str) -> Client:
    """An unmodified client of the SDK that starts the proxy as its server."""
    server = StdioServerParameters(
        command=PROXY[0], args=[*PROXY[1:], *arguments], env=environment(**variables)
    )
    return Client(server, mode=mode, elicitation_callback=answer)


LOCKED = {"fromAccountId": "acc_checking_001", "toAccountId": "acc_savings_001", "amount": 250}


@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.nightly)])
async def test_the_story_of_the_locked_account(mode: str, world: World) -> None:
    bank = command("--database", str(world.location), "--customer", "CUST001")
    await the_story(world, mode, "--", *bank)


async def test_the_story_over_http(world: World, tmp_path: Path) -> None:
    with http_server(tmp_path, BANKING_DATABASE=str(world.location)) as server:
        token = server.token()
        await the_story(world, "auto", "--url", server.url, TOOL_CHAINING_PROXY_TOKEN=token)


async def the_story(world: World, mode: str, *behind: str, **variables: str) -> None:
    user = Customer(mode)
    user.answers.append(lambda asked: {next(iter(asked.schema["properties"])): "callback"})
    async with proxied(*behind, mode=mode, answer=user.on_question, **variables) as client:
        result = await client.call_tool("prepare_money_transfer", LOCKED)
    assert "is currently locked" in words(result)
    assert structured(result)["status"] == "account_locked"
    assert "How would you like to be connected?" in user.asked[0].message
    assert result.meta is not None
    assert "nextTool" not in result.meta
    first, second = world.events()[-2:]
    assert (first["tool"], second["tool"]) == ("prepare_money_transfer", "request_agent_handoff")
    assert second["outcome"] == "handoff_opened"
    assert second["chain_previous_tool"] == "prepare_money_transfer"
    assert first["chain_id"] == second["chain_id"] == result.meta[CHAINING]["chainId"]


def test_what_needs_http_or_a_url_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "need --http" in refused("--port", "1", "--", "true")
    assert "need --http" in refused("--forward-authorization", "--url", "http://localhost/mcp")
    assert "needs --url" in refused("--http", "--forward-authorization", "--", "true")
    assert "--allow-host" in refused("--http", "--host", "0.0.0.0", "--", "true")
    monkeypatch.setenv("TOOL_CHAINING_PROXY_TOKEN", "one")
    both = ("--http", "--forward-authorization", "--url", "http://localhost/mcp")
    assert "leave one out" in refused(*both)
