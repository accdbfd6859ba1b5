"""A connection that breaks in the middle of a call, over real HTTP."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from banking_server.chaining import (
    CLIENT_EXTENSION,
    ChainFailed,
    ChainResult,
    Fate,
    Outcome,
    SteadyHttpClient,
)

from ..kit.cutting import cutting_server
from ..kit.servers import free_port
from ..kit.words import MODES
from .support import follow

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", MODES)
async def test_a_cut_connection_fails_the_chain_and_not_the_client(mode: str) -> None:
    with cutting_server() as (url, called):
        async with SteadyHttpClient() as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
                with pytest.raises(ChainFailed) as failed:
                    await follow(client, "begin")
                after = await follow(client, "go_on")

    chain = failed.value.result
    assert [step.tool for step in chain.steps] == ["begin"]
    assert [(call.tool, call.fate) for call in chain.follow_ups] == [("cut", Fate.UNKNOWN)]
    assert called == ["begin", "cut", "go_on"]
    assert after.outcome is Outcome.COMPLETED


async def test_a_server_that_is_slower_than_http_allows() -> None:
    async def slow(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("", request=request)

    async with SteadyHttpClient(transport=httpx2.MockTransport(slow)) as http:
        response = await http.post("http://slow/mcp", json={"method": "tools/call"})

        assert response.status_code == 502
        assert "ReadTimeout" in response.json()["error"]["message"]
        # The SDK tries to connect in another way if it is answered.
        with pytest.raises(httpx2.ReadTimeout):
            await http.post("http://slow/mcp", json={"method": "server/discover"})
        with pytest.raises(httpx2.ReadTimeout):
            await http.get("http://slow/mcp")


async def test_no_proxy_of_the_environment_reads_what_goes_over_http(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with cutting_server() as (url, called):
        async with SteadyHttpClient() as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, extensions=[CLIENT_EXTENSION]) as client:
                await follow(client, "go_on")
            assert called == ["go_on"]
            # The proxy, which is not there, is the way for https, encrypted from end to end.
            with pytest.raises(httpx2.ConnectError, match="attempts failed"):
                await http.get(url.replace("http:", "https:"))


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_no_error_repeats_the_token(kind: str) -> None:
    async def body(said: bytes) -> AsyncIterator[bytes]:
        yield said

    def echo(request: httpx2.Request) -> httpx2.Response:
        said = request.headers["authorization"].encode()
        challenge = b'Bearer error_description="no ' + said + b'"'
        data = b"data: " if "event" in kind else b""
        return httpx2.Response(
            400,
            headers=[(b"WWW-Authenticate", challenge), (b"Content-Type", kind.encode())],
            content=body(data + b'{"error": "' + said + b'"}\n\n'),
            extensions={"reason_phrase": b"Not " + said},
        )

    noted: list[str] = []

    async def note(response: httpx2.Response) -> None:
        noted.append(f"{response.reason_phrase} {response.headers}")

    async with SteadyHttpClient(
        transport=httpx2.MockTransport(echo),
        headers={"Authorization": "Bearer s3cret-t0ken"},
        event_hooks={"response": [note]},
    ) as http:
        response = await http.get("http://127.0.0.1/")
        anonymous = await http.get("http://127.0.0.1/", headers={"Authorization": "Bearer e"})
    assert "s3cret" not in f"{noted}{response.headers}{response.text}"
    assert ("Not Bearer ***" in noted[0], "no Bearer ***" in noted[0]) == (True, True)
    assert "Bearer ***" in response.text
    assert "***" not in anonymous.text


async def test_a_plain_client_is_cancelled_and_the_result_is_told_all_the_same() -> None:
    ended: list[ChainResult] = []
    with (
        cutting_server() as (url, _),
        pytest.RaisesGroup(
            httpx2.RemoteProtocolError, flatten_subgroups=True, allow_unwrapped=True
        ),
    ):
        async with Client(url, extensions=[CLIENT_EXTENSION]) as client:
            await follow(client, "begin", on_end=ended.append)

    (chain,) = ended
    assert chain.outcome is Outcome.CANCELLED
    assert chain.detail == 'its task was cancelled during the call of "cut"'
    assert [step.tool for step in chain.steps] == ["begin"]
    assert [(call.tool, call.fate) for call in chain.follow_ups] == [("cut", Fate.UNKNOWN)]
