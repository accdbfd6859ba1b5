"""Connections are bounded in time, size and number: real sockets, on both of the parsers."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from banking_server import connections
from banking_server.connections import MAX_HEAD_BYTES, MAX_WAITING, Http, Limits, TrustedProxies

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
PATIENCE = 20
"""Seconds after which something hangs, on however busy a machine."""

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


class App:
    """Answers with what it was asked, when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.disconnected = asyncio.Event()
        self.says = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with the path and the body, or with what the test wants said."""
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return
            body += message["body"]
            more = message["more_body"]
        self.asked.append(scope["path"])
        await self.may_answer.wait()
        said = self.says or json.dumps([scope["path"], body.decode()]).encode()
        length = (b"content-length", b"%d" % len(said))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": said})


class Served:
    """A server on a socket of its own, and its clients."""

    def __init__(self, app: App, port: int, state: ServerState, at_the_end: AsyncExitStack) -> None:
        self.app = app
        self.state = state
        self._port = port
        self._at_the_end = at_the_end

    async def connect(self, sent: bytes = b"", address: str = "127.0.0.1") -> tuple[Reader, Writer]:
        """Open a connection from an address and send something."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(address, 0)
        )
        # It is closed when it is forgotten, too.
        self._at_the_end.callback(lambda: writer.transport.abort())
        writer.write(sent)
        return reader, writer

    async def all_of(self, sent: bytes) -> list[int]:
        """Send something, and return the statuses of all that comes until the end."""
        reader, _ = await self.connect(sent)
        return [int(each) for each in re.findall(rb"HTTP/1.1 (\d+)", await to_the_end(reader))]


async def to_the_end(reader: Reader) -> bytes:
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def answer(reader: Reader) -> bytes:
    """Read one answer: its status line, and its body."""
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        assert found is not None, head
        return head.partition(b"\r\n")[0] + await reader.readexactly(int(found[1]))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture(params=["httptools", "h11"])
async def serve(request: pytest.FixtureRequest) -> AsyncIterator[Serve]:
    """Serves an `App` with limits, on one parser after the other."""
    protocol = Http if request.param == "httptools" else connections._H11
    assert protocol.__name__.lower().endswith(request.param)
    async with AsyncExitStack() as at_the_end:

        async def start(idle: float = PATIENCE, **limits: Any) -> Served:
            app = App()
            config = uvicorn.Config(app, log_config=None, ws="none", lifespan="off")
            config.timeout_keep_alive = idle  # type: ignore[assignment]
            config.load()
            state = ServerState()
            made = {"config": config, "server_state": state, "app_state": {}}
            server = await asyncio.get_running_loop().create_server(
                lambda: protocol(**made, limits=Limits(**limits)), "127.0.0.1", 0
            )
            at_the_end.callback(server.close)
            return Served(app, server.sockets[0].getsockname()[1], state, at_the_end)

        yield start


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "sent", "statuses"),
    [
        ("head", b"", []),
        ("head", GET + POST, [200, 408]),
        ("body", POST + b"Content-Length: 5\r\n\r\nhell", [408]),
        ("body", CHUNKED + b"5\r\nhello\r\n0\r\nX-Trailer: ", [408]),
        ("idle", GET, [200]),
    ],
)
async def test_what_does_not_come_in_time_closes_the_connection(
    serve: Serve, limit: str, sent: bytes, statuses: list[int]
) -> None:
    served = await serve(**{limit: 0.1})
    assert await served.all_of(sent) == statuses
    assert len(served.app.asked) == statuses.count(200)


async def test_dripping_does_not_help(serve: Serve) -> None:
    served = await serve(head=0.1)
    _, writer = await served.connect(POST + b"X-Slow: ")
    await until(lambda: bool(served.state.connections))
    while served.state.connections:
        writer.write(b"x")
        await asyncio.sleep(0.01)
    assert served.app.asked == []


async def test_a_call_takes_its_time(serve: Serve) -> None:
    served = await serve(idle=0.05, head=0.05, body=0.05, unread=0.05)
    served.app.may_answer.clear()
    reader, writer = await served.connect(GET)
    await asyncio.sleep(0.1)
    writer.write(POST)
    await asyncio.sleep(0.1)
    served.app.may_answer.set()
    assert b" 200 " in await answer(reader)


async def test_who_does_not_read_is_closed(serve: Serve) -> None:
    served = await serve(unread=0.1, idle=0.1)
    served.app.says = b"x" * 20_000_000
    reader, writer = await served.connect(GET)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    await until(lambda: served.app.asked == ["/"])
    # Nor does it help to ask again.
    writer.write(GET)
    await until(lambda: not served.state.connections)
    reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert len(await to_the_end(reader)) < len(served.app.says)


# --- number ---------------------------------------------------------------------------------------


async def test_who_waits_longest_without_a_request_makes_room(serve: Serve) -> None:
    served = await serve(most=3)
    known, writer = await served.connect(GET)
    assert b" 200 " in await answer(known)
    silent, _ = await served.connect(address="127.0.0.2")
    slow, _ = await served.connect(POST, address="127.0.0.3")
    for number, gone in ((4, silent), (5, slow)):
        newcomer, _ = await served.connect(GET, address=f"127.0.0.{number}")
        assert b" 200 " in await answer(newcomer)
        assert await to_the_end(gone) == b""
    writer.write(GET)
    assert b" 200 " in await answer(known), "who was served has the connection for longer"


async def test_few_requests_wait_on_one_connection(serve: Serve) -> None:
    served = await serve()
    served.app.may_answer.clear()
    await served.connect(GET * 1000)
    await until(lambda: bool(served.app.asked) or served.app.disconnected.is_set())
    waiting = [len(getattr(each, "pipeline", ())) for each in served.state.connections]
    assert max(waiting, default=0) <= MAX_WAITING


@pytest.mark.parametrize("limits", [{"most": 2}, {"each_address": 2}])
async def test_where_all_are_being_answered_a_newcomer_is_refused(
    serve: Serve, limits: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve(**limits)
    served.app.may_answer.clear()
    inside = [(await served.connect(GET))[0] for _ in range(2)]
    await until(lambda: len(served.app.asked) == 2)
    refused, _ = await served.connect()
    said = await to_the_end(refused)
    assert said.startswith(b"HTTP/1.1 503")
    assert b"Retry-After: 1" in said
    assert "all 2 are being answered" in caplog.text
    served.app.may_answer.set()
    if "each_address" in limits:
        inside.append((await served.connect(GET, address="127.0.0.3"))[0])
    for reader in inside:
        assert b" 200 " in await answer(reader)


async def test_a_proxys_requests_count_for_whom_they_are(serve: Serve) -> None:
    served = await serve(each_address=1, trusted_proxies=("127.0.0.0/24",))

    def request(forwarded: bytes) -> bytes:
        return GET[:-2] + b"X-Forwarded-For: %s\r\n\r\n" % forwarded

    served.app.may_answer.clear()
    one, _ = await served.connect(request(b"192.0.2.9, 198.51.100.7:4711, 127.0.0.3"))
    other, _ = await served.connect(request(b"198.51.100.7, 192.0.2.1"))
    own, _ = await served.connect(GET)
    await until(lambda: len(served.app.asked) == 3)
    assert await served.all_of(request(b"198.51.100.7")) == [503]
    served.app.may_answer.set()
    for reader in (one, other, own):
        assert b" 200 " in await answer(reader)
    again, _ = await served.connect(request(b"198.51.100.7"))
    assert b" 200 " in await answer(again)


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (b"10.0.0.1", None),
        (b"192.0.2.1:80, ::ffff:10.0.0.1", "192.0.2.1"),
        (b"[2001:db8:1:2:3::4]:80", "2001:db8:1:2::/64"),
        (b"unknown", "unknown"),
    ],
)
def test_whom_a_proxy_names(forwarded: bytes, client: str | None) -> None:
    assert TrustedProxies(["10.0.0.0/8"]).client(forwarded) == client


# --- what is read in one way only -----------------------------------------------------------------

AMBIGUOUS = {
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "a plus": POST + b"Content-Length: +5\r\n\r\nhello",
    "another coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "a chunk without its end": CHUNKED + b"5\r\nhello!0\r\n\r\n",
    "two hosts": POST + b"Host: b\r\n\r\n",
    "no host": b"POST / HTTP/1.1\r\n\r\n",
    "an unknown version": b"POST / HTTP/1.2\r\nHost: a\r\n\r\n",
    "too much: headers": POST + b"X: a\r\n" * 100 + b"\r\n",
    "too much: one header": POST + b"X: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n",
}
"""What another server on the way could read as something else."""


async def test_what_can_be_read_in_two_ways_is_refused(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve()
    for name, sent in AMBIGUOUS.items():
        # Where both parsers refuse, each has a word of its own for it.
        (status,) = await served.all_of(sent)
        assert status in ((431,) if name.startswith("too much") else (400, 501, 505)), name
    assert served.app.asked == []
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 5\r\n\r\nhello" + GET,
        CHUNKED.replace(b"chunked", b"CHUNKED") + b"5;ext=1\r\nhello\r\n0\r\n\r\n" + GET,
    ],
)
async def test_what_can_be_read_in_one_way_is_served(serve: Serve, sent: bytes) -> None:
    served = await serve(idle=0.05)
    assert await served.all_of(sent) == [200, 200]


@pytest.mark.parametrize(
    "begins",
    [POST + b"X: ", CHUNKED + b"5;"],
    ids=["head", "chunk extension"],
)
async def test_what_has_no_end_is_not_kept(serve: Serve, begins: bytes) -> None:
    served = await serve()
    reader, writer = await served.connect(begins)
    for _ in range(100):
        writer.write(b"x" * 4000)
        await asyncio.sleep(0)
    assert (await to_the_end(reader))[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 400")
    assert served.app.asked == []


async def test_nothing_is_switched_to(serve: Serve) -> None:
    served = await serve()
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    # llhttp reads no body then, and could take it for another request.
    reader, _ = await served.connect(POST + b"Content-Length: 5\r\n" + upgrade + b"hello")
    said = await answer(reader)
    assert b" 400 " in said or b'"hello"' in said
