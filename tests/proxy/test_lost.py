"""An answer that is refused, lost or too large is one error at once."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from mcp import Client, MCPError

from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.hosting.reading import NOT_KNOWN
from tool_chaining_proxy.hosting.untrusted import TOO_LARGE
from tool_chaining_proxy.options import Address, Command, ProxyOptions, Server

from ..kit.command import PATIENCE, environment
from ..kit.serving import Handler, serving
from . import wrong_server
from .wire import CHAINING, NEW, OLD, proxy_in_memory
from .wrong_server import LAST_WORDS, OWN, REFUSALS

pytestmark = pytest.mark.anyio

LOST = ("stream nothing", "stream cut", "cut")
"""After which tool's call the answer does not come."""


class Wrong(Handler):
    """The wrong server over HTTP: as JSON, or in a stream. The path says which revision."""

    def do_POST(self) -> None:
        message = self.message()
        if "id" not in message:
            return self.answer(202)
        body = wrong_server.answer(message, self.path.strip("/")).encode()
        headers = {"content-type": "application/json"}
        name = message.get("params", {}).get("name", "")
        if name.startswith("stream "):
            body, headers["content-type"] = b"data: " + body + b"\n\n", "text/event-stream"
        if REFUSALS.get(name, 200) > 400:
            body, headers["content-type"] = b"No.", "text/plain"
        if name in LOST:
            if "cut" in name:
                headers["content-length"] = str(len(body))
            body = b": nothing\n\n" if name == "stream nothing" else body[:5]
            self.close_connection = True
        return self.answer(REFUSALS.get(name, 200), body, headers)


@pytest.fixture(scope="module")
def wrong() -> Iterator[str]:
    """The address of the wrong server."""
    with serving(Wrong) as origin:
        yield origin


def over_stdio(revision: str) -> Command:
    command = (sys.executable, "-I", "-S", wrong_server.__file__, revision)
    return Command(command, environment())


@asynccontextmanager
async def through(server: Server, revision: str) -> AsyncIterator[Client]:
    """A client of a revision, and the proxy in this process."""
    mode = "legacy" if revision == OLD else "auto"
    with anyio.fail_after(PATIENCE):
        async with Client(proxy_in_memory(ProxyOptions(server=server)), mode=mode) as client:
            yield client


async def refusal(client: Client, tool: str) -> str:
    with pytest.raises(MCPError) as refused:
        await client.call_tool(tool)
    assert "\n" not in refused.value.message
    return str(refused.value.message)


async def test_a_step_that_was_refused_was_not_made(wrong: str) -> None:
    server = Address(f"{wrong}/{NEW}")
    options = ProxyOptions(server=server, consent=consent_of("all"), follow_unadvertised=True)
    statuses = {}
    with anyio.fail_after(PATIENCE):
        async with Client(proxy_in_memory(options), mode="auto") as client:
            for tool in (*REFUSALS, "asks of the weather"):
                result = await client.call_tool(f"to {tool}")
                assert result.meta is not None
                (followed,) = result.meta[CHAINING]["followUps"]
                statuses[tool] = followed["status"]
                (words,) = result.content
                assert ("was not made" in words.text) is (statuses[tool] == "not_made")
    # Of the last one, an interim result came before: what was done by then nobody knows.
    unknown = {"-32602", "502", "asks of the weather"}
    assert {tool for tool, status in statuses.items() if status == "unknown"} == unknown
    assert set(statuses.values()) == {"unknown", "not_made"}


async def test_an_answer_that_is_lost_is_told_as_such_and_the_server_s_own_error_is_not(
    wrong: str,
) -> None:
    for revision in (OLD, NEW):
        async with through(Address(f"{wrong}/{revision}"), revision) as client:
            for tool in LOST:
                words = await refusal(client, tool)
                assert words.endswith("Whether the request took effect is not known."), tool
                assert "SSE" not in words
            for tool in (*OWN, *(f"stream {code}" for code in OWN)):
                assert await refusal(client, tool) == "No.", tool
            assert not (await client.call_tool("good")).is_error


async def test_a_server_that_ends_in_a_call_is_told_with_what_it_wrote_last() -> None:
    async with through(over_stdio(OLD), OLD) as client:
        assert await refusal(client, "ends") == (
            "The server ended instead of answering; what it wrote last to its standard error: "
            f"{LAST_WORDS} Whether the request took effect is not known. The next request starts "
            "the server again."
        )
        assert not (await client.call_tool("good")).is_error


async def test_an_answer_that_is_too_large_is_one_error(wrong: str) -> None:
    too_large = f"{TOO_LARGE} {NOT_KNOWN}"
    async with through(over_stdio(OLD), OLD) as client:
        assert await refusal(client, "large") == too_large
        assert not (await client.call_tool("good")).is_error
    async with through(Address(f"{wrong}/{NEW}"), NEW) as client:
        for kind in ("large", "stream large"):
            assert await refusal(client, kind) == too_large, kind
        assert not (await client.call_tool("good")).is_error
