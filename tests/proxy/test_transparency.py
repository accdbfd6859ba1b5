"""What comes through the proxy is what comes without it: both revisions, both transports."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tool_chaining_proxy.options import Address, ProxyOptions, Server

from ..kit.command import PATIENCE
from .scripted import WHO_AND_SLOW, Shop
from .wire import (
    CHAINING,
    JSON,
    META,
    NEW,
    OLD,
    Refused,
    Wire,
    proxy_in_a_thread,
    proxy_in_memory,
    strange,
    wire,
)

pytestmark = pytest.mark.anyio


async def everything(client: Wire) -> JSON:
    """Use all that a server can do, and return all that came, by what it was."""
    seen: JSON = {"greeting": client.greeting}
    seen["tools"] = [page := await client.ask("tools/list")]
    while cursor := page.get("nextCursor"):
        seen["tools"].append(page := await client.ask("tools/list", {"cursor": cursor}))
    seen["read"] = await client.ask("resources/read", {"uri": "strange://1"})
    arguments = {"text": "x", "more": [None, {"deep": 1.5}], "unknown": True}
    meta = {"com.wire/meta": {"deep": [None]}, "traceparent": "00-1-2-01"}
    seen["echo"] = await client.call("echo", arguments, **meta)
    for name in ("form_twice", "asks_all"):
        seen[name] = await client.call(name)
    seen["read, asked"] = await client.through("resources/read", {"uri": "strange://asks"})
    for name, method, params in (
        ("error", "tools/call", {"name": "error", "arguments": {}}),
        ("unknown method", "weather/write", {}),
    ):
        with pytest.raises(Refused) as refused:
            await client.ask(method, params)
        seen[name] = refused.value.error
    seen["weather"] = await client.ask("weather/read", {"where": {"deep": None}})
    seen["questions"] = client.heard.copy()

    client.heard.clear()
    seen["work, quietly"] = await client.call("work")
    seen["log, unasked"] = client.params("notifications/message")
    client.heard.clear()
    if client.revision == OLD:
        await client.ask("logging/setLevel", {"level": "info"})
        await client.ask("ping")
    level = {f"{META}logLevel": "info"} if client.revision == NEW else {}
    seen["work"] = await client.call("work", **level, progressToken="my token")
    seen["progress"] = client.params("notifications/progress")
    seen["log"] = client.params("notifications/message")

    client.heard.clear()
    async with client.listening("strange://1"):
        seen["change"] = await client.call("change")
        for method in (
            *(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")),
            "notifications/resources/updated",
            "notifications/weather/changed",
        ):
            await client.until(lambda method=method: method in client.methods)
    seen["news"] = sorted(client.heard, key=lambda message: str(message["method"]))
    return seen


def plain(value: Any) -> Any:
    """Return a message without what is each connection's own."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = {"jsonrpc", "id", f"{META}clientCapabilities", CHAINING, "outputSchema"}
    kept = {key: plain(one) for key, one in value.items() if key not in own}
    if f"{META}subscriptionId" in kept:
        kept[f"{META}subscriptionId"] = "of this client"
    return {key: one for key, one in kept.items() if (key, one) not in (("_meta", {}),)}


@pytest.fixture(params=[OLD, NEW])
def revision(request: pytest.FixtureRequest) -> str:
    """The only one that the server behind speaks."""
    return str(request.param)


def behind(strange_url: str, revision: str, over_stdio: Server) -> ProxyOptions:
    """The options of a proxy in front of a server over stdio, or over HTTP on 2026-07-28."""
    address = Address(strange_url.replace("/mcp", f"/{revision}/mcp"))
    return ProxyOptions(server=over_stdio if revision == OLD else address)


async def test_every_message_passes_unchanged(strange_url: str, revision: str) -> None:
    async with wire(strange_url, revision) as client:
        expected = await everything(client)
    with proxy_in_a_thread(behind(strange_url, revision, strange())) as proxy:
        async with wire(proxy, revision) as client:
            seen = await everything(client)
            roots: JSON = {"notifications/roots/list_changed": {}}
            weather = {"notifications/weather/wish": {"kelvin": 300, "_meta": {"x": 1}}}
            told = roots | weather if revision == OLD else {}
            for method, params in told.items():
                await client.tell(method, params)
            who: JSON = {}
            with anyio.fail_after(PATIENCE):
                while who.get("heard") != told:
                    who = (await client.call("who"))["structuredContent"]

    # The proxy follows by itself, so it says nothing of the extension, and names each chain.
    assert CHAINING in json.dumps(expected["greeting"])
    assert CHAINING not in json.dumps(seen["greeting"])
    # What it adds to structured content fits no schema, so it lists none.
    assert "outputSchema" in json.dumps(expected["tools"])
    assert "outputSchema" not in json.dumps(seen["tools"])
    assert seen["echo"]["structuredContent"]["meta"][CHAINING]["level"] == 1
    for part in expected:
        assert plain(seen[part]) == plain(expected[part]), part

    assert who["revision"] == revision
    assert who["client"] == {"name": "wire", "version": "1", "x-client": True}
    declared = client.capabilities | {"extensions": {**client.capabilities["extensions"]}}
    assert who["capabilities"]["extensions"].pop(CHAINING) is not None
    who["capabilities"]["experimental"].pop(CHAINING, None)
    assert who["capabilities"] == declared


async def test_the_proxy_speaks_the_revision_of_the_server(
    strange_url: str, revision: str, tmp_path: Path
) -> None:
    """A client of the other revision is refused; one of both falls back, as without the proxy."""
    over_stdio = Shop(tmp_path, answers=WHO_AND_SLOW).options().server
    options = behind(strange_url, revision, over_stdio)
    with proxy_in_a_thread(options) as proxy:
        other = Wire(proxy, OLD if revision == NEW else NEW)
        with pytest.raises(Refused, match=r"Unsupported protocol version|Method not found"):
            await other.open()
        await other.http.aclose()
        for transport in (proxy, proxy_in_memory(options)):
            async with Client(transport, mode="auto") as client:
                assert client.protocol_version == revision
                assert not (await client.call_tool("who")).is_error
