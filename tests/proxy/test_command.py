"""The command `tool-chaining-proxy`: what it refuses, how it ends, and the story of the bank."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT

from ..kit.bank import Customer, World
from ..kit.command import ANY_SERVER, PATIENCE, command, environment
from ..kit.servers import free_port, http_server
from .pipe import CHAINING, NEW, OLD, PROXY, STRANGE, Refused, pipe

pytestmark = pytest.mark.anyio


def refused(*arguments: str) -> str:
    """Return the one line with which the command refuses to start."""
    ended = subprocess.run(
        [*PROXY, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment()
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    assert "--url" in refused("--limit", "3")
    assert "not both" in refused("--url", "http://localhost/mcp", "--", "true")
    assert "http or https" in refused("--url", "localhost:80")
    assert "--consent" in refused("--consent", str(tmp_path / "missing"), "--", "true")


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_a_server_that_cannot_be_reached_is_one_line(revision: str, tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/mcp"
    for behind, words in (
        (["--", str(tmp_path / "missing")], "there is no such command"),
        (["--", sys.executable, "-c", "pass"], "it ended before it answered"),
        (["--url", nowhere], "connect"),
    ):
        with pytest.raises(Refused) as error, pipe([*PROXY, *behind], revision):
            raise AssertionError("nobody can have answered")
        message = error.value.error["message"]
        assert message.startswith(f"Cannot talk to {behind[1]}: ")
        assert "\n" not in message
        assert words in message.lower()


@pytest.mark.parametrize("how", ["end", signal.SIGINT, signal.SIGTERM])
def test_the_server_behind_ends_with_the_proxy(how: Any) -> None:
    with pipe([*PROXY, "--", *STRANGE], OLD) as client:
        behind = client.call("who")["structuredContent"]["pid"]
        slow = client.begin("tools/call", {"name": "slow", "arguments": {"text": "s"}})
        if how != "end":
            client.process.send_signal(how)
        assert client.close() == 0
        with pytest.raises(Refused):
            client.reply(slow)
    with pytest.raises(ProcessLookupError):
        os.kill(behind, 0)


def test_the_server_behind_is_told_the_environment_and_not_the_token() -> None:
    variables = {"STRANGE_SETTING": "mine", "TOOL_CHAINING_PROXY_TOKEN": "secret"}
    with pipe([*PROXY, "--", *STRANGE], OLD, **variables) as client:
        told = client.call("who")["structuredContent"]
    assert (told["environment"], told["secret"]) == ("mine", None)


def test_a_server_that_does_not_advertise_is_followed_only_if_told_so() -> None:
    unadvertised = [sys.executable, str(ANY_SERVER), "--unadvertised"]
    with pipe([*PROXY, "--limit", "3", "--", *unadvertised], NEW) as client:
        result = client.call("count")
        assert result["_meta"][CHAINING]["outcome"] == "declined"
    with pipe(
        [*PROXY, "--limit", "3", "--follow-unadvertised", "--", *unadvertised], NEW
    ) as client:
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


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_the_story_of_the_locked_account(
    over: str, mode: str, world: World, tmp_path: Path
) -> None:
    user = Customer(mode)
    user.answers.append(lambda asked: {next(iter(asked.schema["properties"])): "callback"})
    bank = ["--", *command("--database", str(world.location), "--customer", "CUST001")]
    if over == "http":
        with http_server(tmp_path, BANKING_DATABASE=str(world.location)) as server:
            token = server.token()
            client = proxied(
                "--url",
                server.url,
                mode=mode,
                answer=user.on_question,
                TOOL_CHAINING_PROXY_TOKEN=token,
            )
            async with client:
                result = await client.call_tool("prepare_money_transfer", LOCKED)
    else:
        async with proxied(*bank, mode=mode, answer=user.on_question) as client:
            result = await client.call_tool("prepare_money_transfer", LOCKED)
    texts = [block.text for block in result.content]
    assert "is currently locked" in texts[0]
    assert result.structured_content["status"] == "account_locked"
    assert result.meta is not None
    assert "nextTool" not in result.meta
    if (over, mode) != ("http", "legacy"):
        # There the bank had no way to ask, and took the handoff down all the same.
        assert "How would you like to be connected?" in user.asked[0].message
    first, second = world.events()[-2:]
    assert (first["tool"], second["tool"]) == ("prepare_money_transfer", "request_agent_handoff")
    assert second["outcome"] == "handoff_opened"
    assert first["chain_id"] == second["chain_id"] == result.meta[CHAINING]["chainId"]
