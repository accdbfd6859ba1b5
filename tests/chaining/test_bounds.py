"""What a client reads of what a server sends, over HTTP and stdio: so much, and no more."""

import codecs
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from banking_server.chaining import SteadyHttpClient, bounded
from banking_server.chaining.bounded_transport import (
    MAX_UNANSWERED,
    MAX_UNASKED,
    UNASKED_PER_SECOND,
    Unasked,
)
from banking_server.chaining.message_size import (
    BOUNDED_LINES,
    MAX_VALUES,
    MESSAGE_BYTES,
    TOO_LARGE,
    TOO_MANY,
    problem_of,
)

pytestmark = pytest.mark.anyio


def test_a_message_may_be_so_long_and_have_so_many_values() -> None:
    assert problem_of(b" " * MESSAGE_BYTES) is None
    assert problem_of(b" " * (MESSAGE_BYTES + 1)) == TOO_LARGE
    assert problem_of(b"[" + b"1," * (MAX_VALUES - 2) + b"1]") is None
    assert problem_of(b"[" + b"1," * MAX_VALUES + b"1]") == TOO_MANY
    # What stands in a text is no value, whatever it looks like.
    assert problem_of(b'["' + b'[1,\\"{' * MAX_VALUES + b'"]') is None


def test_what_nobody_asked_for_may_come_at_a_measured_pace() -> None:
    now = 0.0
    unasked = Unasked(lambda: now)
    assert not any(unasked.is_too_much() for _ in range(MAX_UNASKED))
    assert unasked.is_too_much()
    now += 1
    for _ in range(3 * MAX_UNASKED):
        now += 1 / UNASKED_PER_SECOND + 1e-6
        assert not unasked.is_too_much()


# --- HTTP -----------------------------------------------------------------------------------------


async def body(content: bytes | AsyncIterator[bytes], **headers: str) -> bytes:
    """Return what the client reads of an answer."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["accept-encoding"] == "gzip"
        whole = parts(content) if isinstance(content, bytes) else content
        return httpx2.Response(200, content=whole, headers=sent)

    async with (
        SteadyHttpClient(transport=httpx2.MockTransport(answer)) as http,
        http.stream("POST", "http://127.0.0.1/", content=b"{}") as response,
    ):
        return await response.aread()


async def parts(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_gzip_is_read() -> None:
    sent = gzip.compress(b"hello " * 100_000)
    assert await body(parts(sent[:100], sent[100:]), content_encoding="gzip") == b"hello " * 100_000


@pytest.mark.parametrize(
    ("content", "headers", "told"),
    [
        (zlib.compress(b"x"), {"content_encoding": "gzip"}, "sent broken gzip"),
        (b"x", {"content_encoding": "br"}, "compressed message, which was not asked for"),
        (
            gzip.compress(b"x"),
            {"content_encoding": "gzip, gzip"},
            "compressed message, which was not asked for",
        ),
        (b"[" * (MAX_VALUES + 1), {}, "more than 100,000 values"),
        (gzip.compress(b" " * (MESSAGE_BYTES + 1)), {"content_encoding": "gzip"}, "4 MiB"),
    ],
    # The time stands in what gzip makes.
    ids=["broken", "brotli", "twice", "values", "bytes"],
)
async def test_an_answer_that_is_too_much_is_not_read(
    content: bytes, headers: dict[str, str], told: str
) -> None:
    with pytest.raises(httpx2.StreamError, match=told):
        await body(content, **headers)


async def test_of_a_stream_each_event_is_bounded() -> None:
    event = b"data: " + b"x" * (MESSAGE_BYTES // 2)
    kind = {"content_type": "text/event-stream; charset=utf-8"}
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        # The end of an event can come in two parts.
        assert len(await body(parts(*[event, end[:1], end[1:]] * 3), **kind)) > MESSAGE_BYTES
    with pytest.raises(httpx2.SSEError, match="more than 4 MiB"):
        await body(parts(*[event, b"\n"] * 3), **kind)
    with pytest.raises(httpx2.SSEError, match="more than 100,000 values"):
        await body(parts(b"data: " + b"[" * (MAX_VALUES + 1) + b"\n\n"), **kind)


async def test_no_redirect_is_followed_whoever_asks_for_it() -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        assert request.url.host == "127.0.0.1"
        return httpx2.Response(307, headers={"location": "http://192.0.2.1/"})

    transport = httpx2.MockTransport(away)
    async with SteadyHttpClient(transport=transport, follow_redirects=True) as http:
        assert (await http.get("http://127.0.0.1/", follow_redirects=True)).status_code == 307


# --- stdio ----------------------------------------------------------------------------------------

DECODER = codecs.getincrementaldecoder(BOUNDED_LINES)


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        ('"jsonrpc":"2.0","id":7,"result":', "", "7"),
        ('"result":', ',"id":"seven","jsonrpc":"2.0"', '"seven"'),
        ('"method":"notifications/message","params":', "", "null"),
    ],
)
def test_an_answer_of_too_many_values_is_an_error(before: str, after: str, number: str) -> None:
    line = f"{{{before}[{'[],' * MAX_VALUES}[]]{after}}}\n"
    error = f'{{"code":-32603,"message":"{TOO_MANY}"}}'
    decoder = DECODER("strict")
    assert decoder.decode(line.encode()) == f'{{"jsonrpc":"2.0","id":{number},"error":{error}}}\n'
    assert decoder.decode(b"{}\n") == "{}\n"


ASKED = JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/list")


async def left(reads: Any) -> str:
    """Return why a request was refused; no message comes any more."""
    refused = await reads.receive()
    assert isinstance(refused.message, JSONRPCError)
    with pytest.raises(anyio.EndOfStream):
        await reads.receive()
    return refused.message.error.message


async def test_after_a_message_of_which_nobody_knows_what_it_was_the_server_is_left() -> None:
    async with (
        create_client_server_memory_streams() as (client, (_, server_writes)),
        bounded(nullcontext(client)) as (reads, writes),
    ):
        await writes.send(SessionMessage(ASKED))
        error = ErrorData(code=INTERNAL_ERROR, message=TOO_LARGE)
        await server_writes.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
        assert await left(reads) == TOO_LARGE


@pytest.mark.parametrize(
    ("said", "most"),
    [
        (JSONRPCNotification(jsonrpc="2.0", method="notifications/message"), MAX_UNASKED),
        (JSONRPCResponse(jsonrpc="2.0", id="to nothing", result={}), MAX_UNASKED),
        (JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"), MAX_UNANSWERED),
    ],
    ids=["notifications", "answers", "questions"],
)
async def test_a_server_that_says_too_much_is_left(said: Any, most: int) -> None:
    async def flood() -> None:
        while True:
            await server_writes.send(SessionMessage(said))

    async with (
        create_client_server_memory_streams() as (client, (server_reads, server_writes)),
        bounded(nullcontext(client)) as (reads, writes),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(writes.send, SessionMessage(ASKED))
        await server_reads.receive()
        tasks.start_soon(flood)
        for _ in range(most):
            assert (await reads.receive()).message == said
        if most == MAX_UNANSWERED:
            assert "more than 100 questions at a time" in await left(reads)
        else:
            # Some more may come in the time that this takes.
            while (one := await reads.receive()).message == said:
                pass
            assert "were no answer; it is left" in one.message.error.message
        tasks.cancel_scope.cancel()
