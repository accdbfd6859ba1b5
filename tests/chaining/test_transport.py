"""What a client reads of a server, and a connection that breaks in the middle of a call."""

import codecs
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import HEADER_MISMATCH

from tool_chaining import CLIENT_EXTENSION, FollowUpStatus, Outcome
from tool_chaining.caller import was_refused
from tool_chaining.hosting import untrusted
from tool_chaining.hosting.reading import NOT_KNOWN
from tool_chaining.hosting.refused import note_status, telling_refusals
from tool_chaining.hosting.untrusted import (
    BOUNDED_LINES,
    MESSAGE_BYTES,
    TOO_LARGE,
    ResilientHttpClient,
)

from ..kit.command import PATIENCE
from ..kit.cutting import cutting_server
from ..kit.servers import free_port
from ..kit.words import MODES
from .support import follow

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", MODES)
async def test_a_cut_connection_fails_the_chain_and_not_the_client(mode: str) -> None:
    with cutting_server() as (url, called):
        async with ResilientHttpClient() as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
                chain = await follow(client, "begin")
                after = await follow(client, "go_on")

    assert [step.tool for step in chain.steps] == ["begin"]
    assert [(call.tool, call.status) for call in chain.follow_ups] == [
        ("cut", FollowUpStatus.UNKNOWN)
    ]
    assert called == ["begin", "cut", "go_on"]
    assert after.outcome is Outcome.COMPLETED


async def test_a_server_that_is_slower_than_http_allows() -> None:
    async def slow(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("", request=request)

    async with ResilientHttpClient(transport=httpx2.MockTransport(slow)) as http:
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
        async with ResilientHttpClient() as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, extensions=[CLIENT_EXTENSION]) as client:
                await follow(client, "go_on")
            assert called == ["go_on"]
            # The proxy, which is not there, is the way for https, encrypted from end to end.
            with pytest.raises(httpx2.ConnectError, match="attempts failed"):
                await http.get(url.replace("http:", "https:"))


# --- how much is read -----------------------------------------------------------------------------


async def body(content: bytes | AsyncIterator[bytes], **headers: str) -> bytes:
    """Return what the client reads of an answer."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["accept-encoding"] == "identity"
        whole = parts(content) if isinstance(content, bytes) else content
        return httpx2.Response(200, content=whole, headers=sent)

    async with (
        ResilientHttpClient(transport=httpx2.MockTransport(answer)) as http,
        http.stream("POST", "http://127.0.0.1/", content=b"{}") as response,
    ):
        return await response.aread()


async def parts(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_an_answer_that_is_too_large_or_compressed_is_not_read() -> None:
    whole = b"x" * MESSAGE_BYTES
    for encoding in ("identity", "UTF-8", ""):
        assert await body(parts(whole[:100], whole[100:]), content_encoding=encoding) == whole
    with pytest.raises(httpx2.StreamError, match="4 MiB"):
        await body(parts(whole, b"x"))
    with pytest.raises(httpx2.StreamError, match="compressed"):
        await body(gzip.compress(b"x"), content_encoding="utf-8, GZip")


async def test_of_a_stream_each_event_is_bounded() -> None:
    event = b"data: " + b"x" * (MESSAGE_BYTES // 2)
    kind = {"content_type": "text/event-stream; charset=utf-8"}
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        # The end of an event can come in two parts.
        assert len(await body(parts(*[event, end[:1], end[1:]] * 3), **kind)) > MESSAGE_BYTES
    with pytest.raises(httpx2.SSEError, match="more than 4 MiB"):
        await body(parts(*[event, b"\n"] * 3), **kind)


async def test_no_redirect_is_followed_whoever_asks_for_it() -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        assert request.url.host == "127.0.0.1"
        return httpx2.Response(307, headers={"location": "http://192.0.2.1/"})

    transport = httpx2.MockTransport(away)
    async with ResilientHttpClient(transport=transport, follow_redirects=True) as http:
        assert (await http.get("http://127.0.0.1/", follow_redirects=True)).status_code == 307


async def test_a_notification_that_is_never_answered_counts_as_received(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(untrusted, "RECEIVED", 0.01)

    async def silent(_: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        async with ResilientHttpClient(transport=httpx2.MockTransport(silent)) as http:
            sent = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await http.post("http://127.0.0.1/", json=sent)).status_code == 202


LATER = '{"jsonrpc":"2.0","method":"later","params":{"lock":"\u9501"}}\n'


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        ('"jsonrpc":"2.0","id":7,"result":', "", "7"),
        ('"result":', ',"id":"seven","jsonrpc":"2.0"', '"seven"'),
        ('"method":"notifications/message","params":', "", None),
    ],
)
def test_a_line_that_is_too_long_is_an_error_for_who_waits(
    before: str, after: str, number: str | None
) -> None:
    line = f'{{{before}"{"x" * MESSAGE_BYTES}"{after}}}\n{LATER}'.encode()
    decoder = codecs.getincrementaldecoder(BOUNDED_LINES)("strict")
    read = "".join(decoder.decode(line[at : at + 65_536]) for at in range(0, len(line), 65_536))

    *errors, later = read.splitlines(keepends=True)
    assert later == LATER
    error = {"code": -32603, "message": f"{TOO_LARGE} {NOT_KNOWN}"}
    expected = {"jsonrpc": "2.0", "id": json.loads(number or "null"), "error": error}
    assert list(map(json.loads, errors)) == ([expected] if number is not None else [])


def test_a_line_without_end_is_not_kept() -> None:
    decoder = codecs.getincrementaldecoder(BOUNDED_LINES)("strict")
    tracemalloc.start()
    for _ in range(3_000):
        assert decoder.decode(b"x" * 65_536) == ""
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert held < 4 * MESSAGE_BYTES


# --- what a server refused before it acted --------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "code", "refused"),
    [
        ([401], None, True),
        ([403], None, True),
        ([400, 401], None, True),
        # The first request was lost, or brought a question: the server may have acted on it.
        ([None, 401], None, False),
        ([200, 403], None, False),
        ([200, 400], HEADER_MISMATCH, False),
        ([400], HEADER_MISMATCH, True),
        ([], HEADER_MISMATCH, True),
        ([400], None, False),
        ([], None, False),
    ],
)
def test_a_call_is_refused_only_if_each_request_of_it_was(
    statuses: list[int | None], code: int | None, refused: bool
) -> None:
    error = ConnectionError("lost") if code is None else MCPError(code, "refused")

    def call() -> None:
        with telling_refusals():
            for status in statuses:
                note_status(None)
                if status is not None:
                    note_status(status)
            raise error

    with pytest.raises(Exception, match=str(error)) as raised:
        call()
    assert was_refused(raised.value, "2026-07-28") is refused
    assert was_refused(raised.value, "2025-11-25") is (refused and code is None)
