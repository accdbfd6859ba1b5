"""What comes through the proxy is what comes without it: both revisions, both transports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from .pipe import CHAINING, JSON, META, NEW, OLD, STRANGE
from .wire import Refused, Wire, proxy_over_http, strange_over_http, wire

pytestmark = pytest.mark.anyio


async def everything(client: Wire) -> JSON:
    """Use all that a server can do, and return all that came, by what it was."""
    seen: JSON = {"greeting": client.greeting}
    for member, method in (
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("templates", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ):
        seen[member] = [page := await client.ask(method)]
        while cursor := page.get("nextCursor"):
            seen[member].append(page := await client.ask(method, {"cursor": cursor}))
    seen["read"] = await client.ask("resources/read", {"uri": "strange://1"})
    seen["prompt"] = await client.ask("prompts/get", {"name": "greet", "arguments": {"whom": "me"}})
    reference = {"type": "ref/prompt", "name": "greet"}
    seen["completion"] = await client.ask(
        "completion/complete", {"ref": reference, "argument": {"name": "whom", "value": "m"}}
    )
    arguments = {"text": "x", "more": [None, {"deep": 1.5}], "unknown": True}
    meta = {"com.wire/meta": {"deep": [None]}, "traceparent": "00-1-2-01"}
    seen["echo"] = await client.call("echo", arguments, **meta)
    for name in ("strict", "fail", "form", "form_twice", "url", "sample", "roots"):
        seen[name] = await client.call(name)
    seen["read, asked"] = await client.through("resources/read", {"uri": "strange://asks"})
    seen["prompt, asked"] = await client.through(
        "prompts/get", {"name": "greet", "arguments": {"whom": "asks"}}
    )
    for name, method, params in (
        ("error", "tools/call", {"name": "error", "arguments": {}}),
        ("unknown tool", "tools/call", {"name": "nothing", "arguments": {}}),
        ("no resource", "resources/read", {"uri": "strange://none"}),
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


async def chains(client: Wire) -> None:
    """Chains are followed, each within one call."""
    client.heard.clear()
    result = await client.call("first")
    assert [item["text"] for item in result["content"][:2]] == ["One.", "Two."]
    assert result["structuredContent"] == {"of": "first"}
    assert result["x-first"] == 1
    assert "nextTool" not in result["_meta"]
    assert result["_meta"]["com.strange/meta"] == "One."
    told = result["_meta"][CHAINING]
    assert told["outcome"] == "completed"
    (step,) = told["followUps"]
    assert (step["tool"], step["fate"]) == ("second", "made")
    assert "On to second" not in str(result["_meta"])

    result = await client.call("first_asks")
    assert "red" in result["content"][1]["text"]
    assert client.methods == ["elicitation/create"]

    result = await client.call("first_destroys")
    assert result["_meta"][CHAINING]["followUps"][0]["fate"] == "not_made"

    result = await client.call("first_fails_later")
    assert result["content"][0]["text"] == "One."
    assert result["_meta"][CHAINING]["outcome"] == "failed"
    assert result["_meta"][CHAINING]["followUps"][0]["fate"] == "unknown"


def plain(value: Any, *, other_era: bool) -> Any:
    """Return a message without what is each connection's own."""
    if isinstance(value, list):
        return [plain(one, other_era=other_era) for one in value]
    if not isinstance(value, dict):
        return value
    own = {"jsonrpc", "id", f"{META}clientCapabilities", CHAINING}
    if other_era:
        # The revisions differ in who may say these, and the server has not said them.
        own |= {f"{META}protocolVersion", f"{META}clientInfo", "supportedVersions", "x-updated"}
        own |= {"com.strange/n", "x-initialize"}
    kept = {key: plain(one, other_era=other_era) for key, one in value.items() if key not in own}
    if f"{META}subscriptionId" in kept:
        kept[f"{META}subscriptionId"] = "of this client"
    return {key: one for key, one in kept.items() if (key, one) not in (("_meta", {}),)}


@pytest.fixture(scope="module")
def origin(folder: Path) -> Iterator[str]:
    with strange_over_http(folder) as server:
        yield server.url.removesuffix("/mcp")


@pytest.fixture(scope="module")
def direct(origin: str) -> dict[str, JSON]:
    """What comes without a proxy, on each revision."""

    async def look(revision: str) -> JSON:
        async with wire(f"{origin}/mcp", revision) as client:
            return await everything(client)

    return {revision: anyio.run(look, revision) for revision in (OLD, NEW)}


BEHIND = [
    ("stdio", OLD),
    ("http", NEW),
    pytest.param(("stdio", NEW), marks=pytest.mark.nightly),
    pytest.param(("http", OLD), marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=BEHIND, ids="-".join)
def behind(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Over what the server behind is spoken to, and on which revision."""
    over, upstream = request.param
    return over, upstream


@pytest.fixture(scope="module")
def upstream(behind: tuple[str, str]) -> str:
    return behind[1]


@pytest.fixture(scope="module")
def proxy(folder: Path, origin: str, behind: tuple[str, str]) -> Iterator[str]:
    """The proxy in front of a server that speaks one revision."""
    over, upstream = behind
    server = ["--url", f"{origin}/{upstream}/mcp"]
    if over == "stdio":
        server = ["--", *STRANGE, "--only", upstream]
    with proxy_over_http(folder, *server) as running:
        yield running.url
        assert "Traceback" not in running.logged()


@pytest.mark.parametrize("downstream", [OLD, NEW])
async def test_all_comes_through(
    proxy: str, direct: dict[str, JSON], upstream: str, downstream: str
) -> None:
    async with wire(proxy, downstream) as client:
        seen = await everything(client)
        await chains(client)
        who = (await client.call("who"))["structuredContent"]

    other_era = upstream != downstream
    expected = direct[downstream]
    if other_era:
        expected = without_what_only(upstream, expected)
        seen = without_what_only(upstream, seen)
    for part in expected:
        came = plain(seen[part], other_era=other_era)
        assert came == plain(expected[part], other_era=other_era), part

    assert who["revision"] == upstream
    assert who["client"] == {"name": "wire", "version": "1", "x-client": True}
    declared = client.capabilities | {"extensions": {**client.capabilities["extensions"]}}
    assert who["capabilities"]["extensions"].pop(CHAINING) is not None
    who["capabilities"]["experimental"].pop(CHAINING, None)
    if other_era:
        declared["roots"] = {}
    assert who["capabilities"] == declared


def without_what_only(upstream: str, seen: JSON) -> JSON:
    """Leave out what a server says on one revision and cannot on the other."""
    questions = [
        one for one in seen["questions"] if one["method"] != "notifications/elicitation/complete"
    ]
    kept = {**seen, "questions": questions}
    if upstream == NEW:
        # Each client of 2026-07-28 says what it wants to hear, and the proxy has to choose.
        del kept["log, unasked"]
        # It was the client's own until the proxy took it over.
        meta = kept["echo"]["structuredContent"]["meta"]
        meta.pop(f"{META}logLevel", None)
    return kept
