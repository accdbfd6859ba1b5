"""An answer that is lost is one error at once; the server's own errors are its own."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError

from tool_chaining.hosting.reading import NOT_KNOWN
from tool_chaining.hosting.untrusted import TOO_LARGE
from tool_chaining_proxy.options import Address, ProxyOptions

from ..kit.command import PATIENCE
from ..kit.serving import Handler, serving
from .scripted import LAST_WORDS, Shop, said
from .wire import NEW, OLD, proxy_in_memory

pytestmark = pytest.mark.anyio

LOST = ("stream nothing", "stream cut", "cut")
"""After which tool's call the answer does not come."""
OWN = ("-32000", "-32601", "-32603", "-32700")
"""Which tool is answered with an error of the server's own, by a code that the SDK uses too. The
second has status 404, and does not mean that the session is lost."""
LARGE = 17 * 1024 * 1024


class Wrong(Handler):
    """Answers a call as its tool's name says: as JSON, or in a stream. The path is the revision."""

    def do_POST(self) -> None:
        message = self.message()
        if "id" not in message:
            return self.answer(202)
        name = message.get("params", {}).get("name", "")
        kind = name.removeprefix("stream ")
        described = {"capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
        results = {
            "tools/list": {"tools": [], "ttlMs": 0, "cacheScope": "private"},
            "tools/call": said("Good.")["result"],
        }
        if self.path == f"/{NEW}":
            results["server/discover"] = {**described, "supportedVersions": [NEW]}
        else:
            info = {"name": "wrong", "version": "1"}
            results["initialize"] = {**described, "protocolVersion": OLD, "serverInfo": info}
        outcome = {"error": {"code": int(kind) if kind in OWN else -32601, "message": "No."}}
        if message["method"] in results and kind not in OWN:
            outcome = {"result": {"resultType": "complete", **results[message["method"]]}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()
        headers = {"content-type": "application/json", "mcp-session-id": "1"}
        if name.startswith("stream "):
            body, headers["content-type"] = b"data: " + body + b"\n\n", "text/event-stream"
        if name in LOST:
            if "cut" in name:
                headers["content-length"] = str(len(body))
            body = b": nothing\n\n" if name == "stream nothing" else body[:5]
            self.close_connection = True
        return self.answer(404 if name == "-32601" else 200, body, headers)


@pytest.fixture(params=[OLD, NEW])
async def over_http(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A host of the proxy in front of the wrong server."""
    with serving(Wrong) as origin, anyio.fail_after(PATIENCE):
        options = ProxyOptions(server=Address(f"{origin}/{request.param}"))
        mode = "legacy" if request.param == OLD else "auto"
        async with Client(proxy_in_memory(options), mode=mode) as client:
            yield client


async def refusal(client: Client, tool: str) -> str:
    with pytest.raises(MCPError) as refused:
        await client.call_tool(tool)
    assert "\n" not in refused.value.message
    return str(refused.value.message)


async def test_a_lost_answer_is_unknown_and_a_server_error_is_passed_on(
    over_http: Client,
) -> None:
    for tool in LOST:
        words = await refusal(over_http, tool)
        assert words.endswith("Whether the request took effect is not known."), tool
        assert "SSE" not in words
    for tool in (*OWN, *(f"stream {code}" for code in OWN)):
        assert await refusal(over_http, tool) == "No.", tool
    assert not (await over_http.call_tool("good")).is_error


async def test_a_server_over_stdio_that_exits_or_sends_too_much(tmp_path: Path) -> None:
    answers = {"ends": ["ends"], "large": [{"large": LARGE}], "good": [said("Good.")]}
    async with Shop(tmp_path, answers=answers).host("stdio") as host:
        assert await refusal(host, "ends") == (
            "The server ended instead of answering; what it wrote last to its standard error: "
            f"{LAST_WORDS} Whether the request took effect is not known. The next request starts "
            "the server again."
        )
        assert not (await host.call_tool("good")).is_error
        assert await refusal(host, "large") == f"{TOO_LARGE} {NOT_KNOWN}"
        assert not (await host.call_tool("good")).is_error
