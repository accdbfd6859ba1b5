"""The proxy over HTTP: whose each request is, and that nobody gets at anybody else's."""

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest

from tool_chaining_proxy.options import Address, ProxyOptions

from ..kit.command import PATIENCE
from .scripted import WHO_AND_SLOW, Shop
from .wire import JSON, NEW, OLD, Refused, Wire, proxy_in_a_thread, proxy_over_http, wire

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def shop(folder: Path) -> Shop:
    return Shop(folder, None, answers=WHO_AND_SLOW, advertises=False)


@pytest.fixture(scope="module")
def proxy(shop: Shop) -> Iterator[str]:
    """A proxy that takes every step, in front of a command."""
    with proxy_in_a_thread(shop.options()) as url:
        yield url


async def who(client: Wire) -> JSON:
    return dict((await client.call("who"))["structuredContent"])


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_callers_have_connections_of_their_own(proxy: str, revision: str) -> None:
    async with (
        wire(proxy, revision) as first,
        wire(proxy, revision) as second,
        wire(proxy, revision, authorization="Bearer 1") as third,
        wire(proxy, revision, authorization="Bearer 2") as fourth,
    ):
        callers = (first, second, third, fourth)
        processes = [(await who(client))["pid"] for client in callers]
        assert [(await who(client))["pid"] for client in callers] == processes
    # On 2025-11-25 each session is a caller. Later ones are known by their credentials alone.
    assert len(set(processes)) == (4 if revision == OLD else 3)


async def test_a_request_with_two_authorization_headers_is_refused(proxy: str) -> None:
    async with httpx2.AsyncClient() as http:
        twice = [("Authorization", "Bearer 4"), ("Authorization", "Bearer 5")]
        response = await http.post(proxy, headers=twice, json={})
        assert (response.status_code, "More than one" in response.text) == (400, True)
        response = await http.post(proxy, headers={b"Authorization": b"Bearer \xe9"}, json={})
        assert (response.status_code, "not printable ASCII" in response.text) == (400, True)


async def test_a_session_belongs_to_the_caller_that_began_it(proxy: str) -> None:
    async with (
        wire(proxy, OLD, authorization="Bearer 1") as owner,
        wire(proxy, OLD) as anonymous,
    ):
        for session, authorization in (
            (owner.session, "Bearer 2"),
            (owner.session, None),
            (anonymous.session, "Bearer 1"),
        ):
            thief = Wire(proxy, OLD, authorization=authorization, session=session)
            with pytest.raises(Refused) as refused:
                await thief.call("who")
            assert refused.value.status == 404
            await thief.http.aclose()
        await who(owner)


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_an_abandoned_call_is_cancelled_at_the_server(
    proxy: str, shop: Shop, revision: str
) -> None:
    left, stays = ({"text": f"{revision} {name}"} for name in ("left", "stays"))
    async with wire(proxy, revision) as client:

        async def wait(arguments: JSON) -> None:
            with contextlib.suppress(Refused):
                await client.call("slow", arguments)

        async with anyio.create_task_group() as group:
            for arguments in (left, stays):
                group.start_soon(wait, arguments)
                await shop.until(tool="slow", arguments=arguments)
            if revision == OLD:
                number = {"requestId": client.last - 1, "reason": "enough"}
                await client.tell("notifications/cancelled", number)
                await shop.until(cancelled="slow", arguments=left)
                assert not shop.has(cancelled="slow", arguments=stays)
            group.cancel_scope.cancel()
    # The end of a session, or of the request's connection, ends what runs in it.
    await shop.until(cancelled="slow", arguments=left)
    await shop.until(cancelled="slow", arguments=stays)


@pytest.fixture(scope="module")
def bounded(strange_url: str) -> Iterator[str]:
    """A proxy for two callers, and for names of its own."""
    options = ProxyOptions(server=Address(strange_url))
    chosen = {"allow_hosts": ("bank.example",), "max_callers": 2, "idle": 1}
    with proxy_in_a_thread(options, **chosen) as url:
        yield url


PAGE = {"Origin": "http://localhost:5173"}
NAMED = {"Host": "bank.example"}


async def test_unknown_hosts_and_origins_are_refused(bounded: str, strange_url: str) -> None:
    """Off this computer, its own names are not among them."""
    chosen = {"host": "0.0.0.0", "allow_hosts": ("bank.example",), "anybody": True}
    with proxy_in_a_thread(ProxyOptions(server=Address(strange_url)), **chosen) as public:
        for url, headers, refused in (
            (bounded, {"Host": "evil.example"}, 421),
            (bounded, {"Origin": "https://evil.example"}, 403),
            # Names are compared as a whole.
            (bounded, {"Origin": "http://localhost:1.evil.com"}, 403),
            (bounded, {"Origin": "http://localhost.evil.com"}, 403),
            (bounded, {"Origin": "null"}, 403),
            (bounded, {"Host": "localhost:1.evil.com"}, 421),
            (bounded, {"Host": "127.0.0.1.evil.com"}, 421),
            (bounded, PAGE, None),
            (bounded, NAMED, None),
            (public, {}, 421),
            (public, {"Host": "localhost"}, 421),
            (public, {**NAMED, **PAGE}, 403),
            (public, NAMED, None),
        ):
            for revision in (OLD, NEW):
                sent = {**headers, "MCP-Protocol-Version": revision}
                async with httpx2.AsyncClient(headers=sent) as http:
                    # Whatever is wrong with it else is found behind the door.
                    came = (await http.post(url, json={})).status_code
                assert (came == refused) if refused else (came not in (403, 421)), sent


async def test_a_local_page_passes_cors_and_nothing_redirects(proxy: str) -> None:
    asked = {
        "Origin": "http://localhost:6274",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-protocol-version,x-any",
    }
    for url in (proxy, f"{proxy}/"):
        async with wire(url, OLD) as client:
            assert (await who(client))["pid"]
        async with httpx2.AsyncClient() as http:
            may = await http.options(url, headers=asked)
            assert may.headers["access-control-allow-origin"] == asked["Origin"]
            assert "x-any" in may.headers["access-control-allow-headers"]
            may_not = await http.options(url, headers={**asked, "Origin": "http://localhost.evil"})
            assert "access-control-allow-origin" not in may_not.headers
            # Also what is refused can be read.
            answer = await http.post(url, headers={"Origin": asked["Origin"]}, content=b"{")
            assert answer.headers["access-control-allow-origin"] == asked["Origin"]
            assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
            assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
            health = await http.get(proxy.replace("/mcp", "/health"))
            assert (health.status_code, health.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("number", ["null", "1.5", "true", "[1]", '"\\ud83d"', '{"params":[]}'])
async def test_an_invalid_request_is_answered_with_its_id(proxy: str, number: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}'
    async with wire(proxy, OLD) as client:
        headers = {**client._headers({}), "content-type": "application/json"}
        answer = await client.http.post(proxy, headers=headers, content=body.encode())
    assert answer.status_code == 400
    assert answer.json()["id"] == json.loads(number.replace("\\ud83d", "\ufffd"))
    assert answer.json()["error"]["code"] in (-32600, -32700)


async def test_callers_are_bounded_in_number(bounded: str) -> None:
    async def refused(revision: str, authorization: str | None) -> None:
        late = Wire(bounded, revision, authorization)
        with pytest.raises(Refused) as refusal:
            await late.open()
        assert "2 callers" in refusal.value.error["message"]
        assert refusal.value.status == 503
        await late.http.aclose()

    async with (
        wire(bounded, OLD) as first,
        first.listening(),
        wire(bounded, NEW, authorization="Bearer second") as second,
        second.listening(),
    ):
        for revision in (OLD, NEW):
            await refused(revision, "Bearer late")
        await who(second)


# --- the caller's own token -----------------------------------------------------------------------


async def test_the_configured_token_replaces_the_caller_s(strange_url: str) -> None:
    options = ProxyOptions(server=Address(strange_url, "Bearer own"))
    with proxy_in_a_thread(options) as proxy:
        for revision in (OLD, NEW):
            async with wire(proxy, revision, authorization="Bearer mine") as client:
                assert (await who(client))["authorization"] == "Bearer own"


async def test_forward_authorization_sends_the_caller_s_token_to_the_server(
    strange_url: str,
) -> None:
    options = ProxyOptions(server=Address(strange_url))
    with proxy_in_a_thread(options, forward_authorization=True) as proxy:
        for revision in (OLD, NEW):
            for token in ("Bearer 1", "Basic Mjox", None):
                async with wire(proxy, revision, authorization=token) as client:
                    assert (await who(client))["authorization"] == token
            await refused_like_upstream(proxy, revision)


async def refused_like_upstream(url: str, revision: str) -> None:
    """Who may not do it, or not any more, is told so by HTTP, as without the proxy."""
    for token, status, error in (
        ("Bearer expired", 401, "invalid_token"),
        ("Bearer narrow", 403, "insufficient_scope"),
    ):
        client = Wire(url, revision, authorization=token)
        with pytest.raises(Refused) as refused:
            await client.open()
        assert refused.value.status == status
        assert f'error="{error}"' in (refused.value.challenge or "")
        assert 'resource_metadata="https://strange.example/' in (refused.value.challenge or "")
        assert f"HTTP {status}" in refused.value.error["message"]
        assert ("header that was sent" in refused.value.error["message"]) == (status == 401)
        assert token not in refused.value.error["message"], "though the server repeats it"
        assert client.session is None
        await client.http.aclose()


# --- the process ----------------------------------------------------------------------------------


async def test_sigterm_ends_running_calls_as_unknown(shop: Shop, folder: Path) -> None:
    with proxy_over_http(folder, "--", *shop.command) as proxy:
        async with wire(proxy.url, OLD) as session, wire(proxy.url, NEW) as caller:

            async def given_up(client: Wire) -> None:
                with pytest.raises(Refused) as refused:
                    await client.call("slow", {"text": client.revision})
                assert "took effect is not known" in refused.value.error["message"]

            async with anyio.create_task_group() as calls:
                for client in (session, caller):
                    calls.start_soon(given_up, client)
                    await shop.until(tool="slow", arguments={"text": client.revision})
                    await client.call("prepare")
                proxy.process.send_signal(signal.SIGTERM)
            assert proxy.process.wait(PATIENCE) == 0
        (line, warning) = proxy.logged().splitlines()
        assert "Every account and program of this computer can use it" in line
        assert "does not advertise tool chaining" in warning
