"""The proxy over Streamable HTTP: both revisions at `/mcp`.

The answer to a request is JSON if it is the first thing to send; otherwise it comes in a stream of
events. An interrupted stream cannot be resumed.
"""

import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import FrameType
from typing import Any, Final

import anyio
import uvicorn
from mcp import MCPError
from mcp.types import HEADER_MISMATCH, INVALID_REQUEST
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tool_chaining.errors import ForPeople
from tool_chaining.urls import TOKEN_VARIABLE, is_loopback, may_be_a_header
from tool_chaining_proxy.chain import begin
from tool_chaining_proxy.client_side.callers import Caller, Callers
from tool_chaining_proxy.client_side.messages import (
    Unreadable,
    answer_to,
    declared_in_handshake,
    declared_in_request,
    read,
    written,
)
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.exchange import Channel, ClientGone
from tool_chaining_proxy.options import Address, Command, HttpOptions, ProxyOptions, Server
from tool_chaining_proxy.sdk import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    find_duplicated_routing_header,
)
from tool_chaining_proxy.upstream import NotAuthorized, Refused

PATH: Final = "/mcp"

SESSION: Final = "mcp-session-id"

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this computer on every computer."""

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
"""The largest body of a request, in bytes."""

PING_SECONDS: Final = 15.0
"""Seconds of silence after which a stream gets a comment, so that no proxy closes it."""

ENDING_SECONDS: Final = 5
"""Seconds that running requests have to end when the proxy ends."""

_CANCELLED: Final = MCPError(code=-32800, message="The request was cancelled.")
_EVENTS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


def serve_http(options: ProxyOptions, chosen: HttpOptions) -> None:
    """Print the URL, and serve until Ctrl-C or SIGTERM. Raises `ForPeople`."""
    _check(options, chosen)
    listening = _listen(chosen.host, chosen.port)
    host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
    url = f"http://{host}:{listening.getsockname()[1]}{PATH}"
    words = f"Serving {options.server.name} at {url}. {who_acts(options.server, chosen)}"
    print(f"{words} Ctrl-C ends it.", file=sys.stderr, flush=True)
    # uvicorn shuts down cleanly at the first signal, and then raises it again.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    HttpServer(options, chosen).run([listening])


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port. Raises `ForPeople`."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        # Python adds the address, which the message has.
        problem = (error.strerror or str(error)).partition(" (while ")[0].lower()
        raise ForPeople(f"Cannot serve at {host} port {port}: {problem}.") from error


class HttpServer(uvicorn.Server):
    """The proxy served by uvicorn, which comes with the SDK.

    Slow and idle connections are the task of a reverse proxy.
    """

    def __init__(self, options: ProxyOptions, chosen: HttpOptions) -> None:
        self._callers = Callers(options, chosen)
        super().__init__(
            uvicorn.Config(
                http_app(chosen, self._callers),
                # httptools leaves the spaces around the value of a header.
                http="h11",
                log_config=None,
                log_level=logging.ERROR,
                server_header=False,
                timeout_graceful_shutdown=ENDING_SECONDS,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the running requests with an error, and end."""
        self._callers.end()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at a signal, whatever a server behind the proxy does."""
        last = threading.Timer(2 * ENDING_SECONDS, os._exit, [1])
        last.daemon = True
        last.start()
        super().handle_exit(sig, frame)


def http_app(chosen: HttpOptions, callers: Callers) -> Starlette:
    """Return the ASGI application for `callers`: both revisions at `/mcp` and `/mcp/`."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with callers.running():
            yield

    service = _Service(chosen, callers)
    # A browser asks first, without a token, whether a page may send a request.
    endpoint = CORSMiddleware(
        service,
        allow_origin_regex=service.origins.pattern,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )
    paths = [Route(PATH, endpoint), Route(f"{PATH}/", endpoint), Route("/health", _health)]
    app = Starlette(routes=paths, lifespan=lifespan)
    # A redirect would repeat the scheme and the host that the request names.
    app.router.redirect_slashes = False
    return app


async def _health(_: Request) -> JSONResponse:
    """Say that the proxy serves. The server behind it may be down."""
    return JSONResponse({"status": "ok"})


def _check(options: ProxyOptions, chosen: HttpOptions) -> None:
    if not (chosen.allow_hosts or is_loopback(chosen.host)):
        raise ForPeople(
            f"Other computers can reach --host {chosen.host}: give the name that they use with "
            "--allow-host."
        )
    if not (chosen.forward_authorization or chosen.anybody or is_loopback(chosen.host)):
        raise ForPeople(
            f"Other computers can reach --host {chosen.host}, and the proxy checks no credentials. "
            "With --forward-authorization the server checks those of each caller. With --anybody, "
            "every caller has the proxy's own rights."
        )
    for host in chosen.allow_hosts:
        if "/" in host:
            raise ForPeople(f"--allow-host takes a name such as mcp.example, not {host[:100]!r}.")
    if not chosen.forward_authorization:
        return
    if not isinstance(options.server, Address):
        raise ForPeople("--forward-authorization needs --url: a command gets no HTTP headers.")
    if options.server.authorization is not None:
        raise ForPeople(
            "--forward-authorization sends each caller's own token, and "
            f"{TOKEN_VARIABLE} is one token for all callers: use only one of them."
        )


def who_acts(server: Server, chosen: HttpOptions) -> str:
    """Return a sentence that says with whose rights callers use the server behind the proxy."""
    if chosen.forward_authorization:
        return "Each caller uses it with their own Authorization header."
    anybody = "Every account and program of this computer"
    if not is_loopback(chosen.host):
        anybody = "Whoever reaches this address"
    if isinstance(server, Command):
        means = "as the user who started it"
    elif server.authorization is not None:
        means = f"with the token in {TOKEN_VARIABLE}"
    else:
        means = "without a token of their own"
    return f"{anybody} can use it {means}."


class _Response(Channel):
    """The HTTP response to one request."""

    def __init__(self, send: Send, number: Any = None, *, modern: bool, forwards: bool) -> None:
        """`forwards`: the server's refusal of the caller's own token becomes the HTTP status."""
        self._send, self._number, self._modern, self._forwards = send, number, modern, forwards
        self._lock = anyio.Lock(fast_acquire=True)
        self._is_stream = False
        self.session: str | None = None
        """The session that an answer to `initialize` begins."""
        self.over = anyio.Event()
        """Set when the response is complete, or the client has closed the connection."""

    async def send(self, message: Json) -> None:
        """Send a message in the stream, which begins with it."""
        await self._event(b"event: message\r\ndata: " + written(message) + b"\r\n\r\n")

    async def ping(self) -> None:
        """Send a comment in the stream."""
        await self._event(b": ping\r\n\r\n")

    async def answer(self, outcome: Json | MCPError | None) -> None:
        """Send the answer: in the stream, or as JSON with an HTTP status of its own."""
        outcome = _CANCELLED if outcome is None else outcome
        body = written(answer_to(self._number, outcome))
        async with self._lock:
            try:
                if self._is_stream:
                    await self._write(b"event: message\r\ndata: " + body + b"\r\n\r\n")
                    await self._write(b"", end=True)
                else:
                    await self._begin(*self._head(outcome))
                    await self._write(body, end=True)
            finally:
                self.over.set()

    def _head(self, outcome: Json | MCPError) -> tuple[int, list[tuple[str, str]]]:
        """Return the HTTP status and the headers of an answer as JSON."""
        headers = [("content-type", "application/json")]
        if isinstance(outcome, Refused) and (
            self._forwards or not isinstance(outcome, NotAuthorized)
        ):
            challenges = (one.decode("latin-1") for one in outcome.challenges)
            return outcome.status, [*headers, *(("www-authenticate", one) for one in challenges)]
        if isinstance(outcome, MCPError):
            return ERROR_CODE_HTTP_STATUS.get(outcome.code, 200) if self._modern else 200, headers
        return 200, [*headers, *([(SESSION, self.session)] if self.session else [])]

    async def end(self) -> None:
        """End a stream without an answer."""
        async with self._lock:
            if not self.over.is_set():
                await self._write(b"", end=True)

    async def open(self) -> None:
        """Begin the stream before the first message."""
        async with self._lock:
            if not self._is_stream:
                session = [] if self.session is None else [(SESSION, self.session)]
                await self._begin(200, [*_EVENTS.items(), *session])
                self._is_stream = True

    async def _event(self, event: bytes) -> None:
        await self.open()
        async with self._lock:
            await self._write(event)

    async def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        if self.over.is_set():
            raise ClientGone
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _write(self, body: bytes, *, end: bool = False) -> None:
        """Write a part of the body. Raises `ClientGone` if nobody reads it any more."""
        if self.over.is_set():
            raise ClientGone
        await self._send({"type": "http.response.body", "body": body, "more_body": not end})
        if self.over.is_set():
            raise ClientGone
        if end:
            self.over.set()

    async def wait(self, receive: Receive) -> bool:
        """Wait until the response is complete. Return whether the client closed it before."""
        gone = False
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                nonlocal gone
                while (await receive())["type"] != "http.disconnect":
                    pass
                gone = not self.over.is_set()
                self.over.set()

            async def ping() -> None:
                while True:
                    await anyio.sleep(PING_SECONDS)
                    await self.ping()

            tasks.start_soon(watch)
            tasks.start_soon(ping)
            await self.over.wait()
            tasks.cancel_scope.cancel()
        return gone


class _Standing(Channel):
    """The stream that a session opens by GET, for messages that belong to no request."""

    def __init__(self) -> None:
        self.response: _Response | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client listens."""
        return self.response is not None

    async def send(self, message: Json) -> None:
        if self.response is None:
            raise ClientGone
        await self.response.send(message)

    async def answer(self, outcome: Json | MCPError | None) -> None:
        """Do nothing: no request is to be answered here."""


class _Service:
    """The endpoint: it finds the sender of each request, and answers it.

    The sender is the unchanged `Authorization` header, which the proxy does not verify: the server
    behind it does, if it gets the header.
    """

    def __init__(self, chosen: HttpOptions, callers: Callers) -> None:
        self._chosen, self._callers = chosen, callers
        own = [*LOOPBACK, chosen.host] if is_loopback(chosen.host) else []
        self._hosts = _names([*chosen.allow_hosts, *own])
        self.origins = _names(own, "http://")
        """The pages that may use the proxy: only those of this computer, and only on loopback."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        with suppress(ClientDisconnect):
            response = await self._served(request, send)
            if response is not None:
                await response(scope, receive, send)

    async def _served(self, request: Request, send: Send) -> Response | None:
        """Serve a request, or return the response to it."""
        headers = request.headers
        if not self._hosts.fullmatch(headers.get("host", "").lower()):
            return Response("Invalid Host header", 421)
        if "origin" in headers and not self.origins.fullmatch(headers["origin"].lower()):
            return Response("Invalid Origin header", 403)
        sender = headers.getlist("authorization")
        if len(sender) > 1:
            return _error(400, "More than one Authorization header.")
        if not all(map(may_be_a_header, sender)):
            return _error(400, "The Authorization header is not printable ASCII.")
        authorization = sender[0] if sender else None
        revision = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        modern = revision is not None and revision not in HANDSHAKE_PROTOCOL_VERSIONS
        if request.method == "POST":
            return await self._post(request, send, authorization, modern=modern)
        if modern:
            return Response(status_code=405, headers={"Allow": "POST"})
        if (caller := self._caller(request, authorization)) is None:
            return _no_session(headers)
        if request.method == "DELETE":
            self._callers.end_session(headers[SESSION])
            return Response()
        return await self._stream(request, send, caller.standing)

    def _caller(self, request: Request, authorization: str | None) -> Caller | None:
        """Return the caller of the session that a request names."""
        return self._callers.of_session(request.headers.get(SESSION, ""), authorization)

    async def _stream(self, request: Request, send: Send, standing: _Standing) -> Response | None:
        """Send the messages that belong to no request, until the client or the proxy ends."""
        if not _accepts(request.headers, "text/event-stream"):
            return _error(406, "The client must accept text/event-stream.")
        if standing.is_open:
            return _error(409, "The session already has a stream.")
        channel = standing.response = self._response(send, modern=False)
        try:
            await channel.open()
            async with anyio.create_task_group() as tasks:

                async def end() -> None:
                    await self._callers.over.wait()
                    await channel.end()

                tasks.start_soon(end)
                await channel.wait(request.receive)
                tasks.cancel_scope.cancel()
        finally:
            standing.response = None
        return None

    def _response(self, send: Send, number: Any = None, *, modern: bool) -> _Response:
        return _Response(send, number, modern=modern, forwards=self._chosen.forward_authorization)

    async def _post(
        self, request: Request, send: Send, authorization: str | None, *, modern: bool
    ) -> Response | None:
        headers = request.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _error(415, "The Content-Type must be application/json.")
        if not all(_accepts(headers, one) for one in ("application/json", "text/event-stream")):
            return _error(406, "The client must accept application/json and text/event-stream.")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_REQUEST_BYTES:
                return _error(413, f"A message has at most {MAX_REQUEST_BYTES:,} bytes.")
        try:
            message = read(bytes(body))
        except Unreadable as error:
            return JSONResponse(answer_to(error.id, error), 400)
        if "method" not in message or "id" not in message:
            return await self._noted(request, message, authorization, modern=modern)
        if type(number := message["id"]) not in (int, str):
            return _error(400, "The id of a request is a string or an integer.", number)
        channel = self._response(send, number, modern=modern)
        try:
            if modern:
                await self._modern(request, message, channel, authorization)
            elif message["method"] == "initialize" and SESSION not in headers:
                await self._initialize(request, message, channel, authorization)
            elif (caller := self._caller(request, authorization)) is None:
                return _no_session(headers)
            elif message["method"] == "initialize":
                raise MCPError(code=INVALID_REQUEST, message="This session has already begun.")
            else:
                begin(caller.session, message, channel)
                # If the client closes the response, the request goes on.
                await channel.wait(request.receive)
        except MCPError as error:
            await channel.answer(error)
        return None

    async def _noted(
        self, request: Request, message: Json, authorization: str | None, *, modern: bool
    ) -> Response:
        """Take a notification or an answer. On 2026-07-28 neither has a meaning over HTTP."""
        method = message.get("method")
        if modern:
            is_known = method is not None
            return Response(None, 202) if is_known else _error(400, "This answers no question.")
        if (caller := self._caller(request, authorization)) is None:
            return _no_session(request.headers)
        if method is None:
            caller.session.take_answer(message)
        elif method == "notifications/cancelled":
            caller.session.cancel((message.get("params") or {}).get("requestId"))
        elif method != "notifications/initialized":
            await caller.session.notify(method, message.get("params"))
        return Response(None, 202)

    async def _modern(
        self, request: Request, message: Json, channel: _Response, authorization: str | None
    ) -> None:
        """Serve a request of 2026-07-28. Raises MCPError."""
        if twice := find_duplicated_routing_header(request.headers.items()):
            words = f"{twice} header appears more than once"
            raise MCPError(code=HEADER_MISMATCH, message=words)
        declared = declared_in_request(message, dict(request.headers))
        caller = self._callers.of_authorization(declared, authorization)
        exchange = begin(caller.session, message, channel)
        if await channel.wait(request.receive):
            exchange.cancel_for(channel)
        self._callers.note(caller)

    async def _initialize(
        self, request: Request, message: Json, channel: _Response, authorization: str | None
    ) -> None:
        """Begin a session. It ends at once if the server or the client does not accept it.

        Raises MCPError.
        """
        declared = declared_in_handshake(message)
        name, caller = self._callers.begin_session(declared, authorization, _Standing())
        channel.session = name
        begin(caller.session, message, channel)
        if await channel.wait(request.receive) or not caller.session.accepted:
            self._callers.end_session(name)


def _names(names: list[str], scheme: str = "") -> re.Pattern[str]:
    """Return a pattern for these hosts, on any port."""
    found = "|".join(re.escape(name.lower()) for name in names)
    return re.compile(rf"{scheme}(?:{found})(?::\d+)?" if names else r"(?!)")


def _accepts(headers: Headers, kind: str) -> bool:
    """Return whether a client accepts this media type."""
    given = {one.partition(";")[0].strip().lower() for one in headers.get("accept", "").split(",")}
    return not given.isdisjoint({kind, f"{kind.partition('/')[0]}/*", "*/*"})


def _no_session(headers: Headers) -> Response:
    """Return the response to a request that names no session, or not one of its sender."""
    if SESSION not in headers:
        return _error(400, "The request names no session. A session begins with initialize.")
    return _error(404, "Session not found")


def _error(status: int, words: str, number: Any = None) -> Response:
    error = MCPError(code=INVALID_REQUEST, message=words)
    return JSONResponse(answer_to(number, error), status)
