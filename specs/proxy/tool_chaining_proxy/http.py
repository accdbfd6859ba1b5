"""The proxy over Streamable HTTP: which requests it serves, and who sent each of them."""

import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Final

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INVALID_REQUEST
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tool_chaining.errors import ForPeople
from tool_chaining_proxy.callers import Callers
from tool_chaining_proxy.eras import is_modern
from tool_chaining_proxy.hosting.any_id import AnyId
from tool_chaining_proxy.hosting.urls import TOKEN_VARIABLE, is_loopback, may_be_a_header
from tool_chaining_proxy.options import Address, Command, HttpOptions, ProxyOptions, Server
from tool_chaining_proxy.sdk import (
    MCP_PROTOCOL_VERSION_HEADER,
    MCP_SESSION_ID_HEADER,
    StreamableHTTPSessionManager,
    authenticated_as,
)
from tool_chaining_proxy.server import proxy_server
from tool_chaining_proxy.upstream import REFUSAL, NotAuthorized

PATH: Final = "/mcp"

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this computer on every computer."""

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
"""The largest body of a request, in bytes."""


ENDING_SECONDS: Final = 5
"""Seconds that running requests have to end when the proxy ends."""


class CannotServe(ForPeople):
    """The proxy cannot be served with these options. The message is one line for people."""


def serve_http(options: ProxyOptions, chosen: HttpOptions) -> None:
    """Print the URL, and serve until Ctrl-C or SIGTERM. Raises `CannotServe`."""
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
    """Return a listening socket; port 0 means any free port. Raises `CannotServe`."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise CannotServe(f"Cannot serve at {host} port {port}: {problem}.") from error


class HttpServer(uvicorn.Server):
    """The proxy served by uvicorn, which comes with the SDK.

    Slow and idle connections are the task of a reverse proxy.
    """

    def __init__(self, options: ProxyOptions, chosen: HttpOptions) -> None:
        self._callers = Callers(options, chosen)
        # The SDK's streams would end before the running requests are answered.
        AppStatus.enable_automatic_graceful_drain = False
        super().__init__(
            uvicorn.Config(
                http_app(options, chosen, self._callers),
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


def http_app(options: ProxyOptions, chosen: HttpOptions, callers: Callers) -> Starlette:
    """Return the ASGI application for `callers`: both revisions at `/mcp` and `/mcp/`."""
    names = _accepted_names(chosen)
    manager = StreamableHTTPSessionManager(
        proxy_server(callers.of),
        session_idle_timeout=chosen.idle,
        max_sessions=chosen.max_callers,
        max_request_body_size=MAX_REQUEST_BYTES,
        security_settings=names,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with callers.running(), manager.run():
            yield

    # A browser asks first, without a token, whether a page may send a request.
    endpoint = CORSMiddleware(
        AnyId(_Endpoint(manager.handle_request, callers, forwards=chosen.forward_authorization)),
        allow_origin_regex="|".join(
            re.escape(one).replace(r":\*", ":[0-9]+") for one in names.allowed_origins
        ),
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
        raise CannotServe(
            f"Other computers can reach --host {chosen.host}: give the name that they use with "
            "--allow-host."
        )
    if not (chosen.forward_authorization or chosen.anybody or is_loopback(chosen.host)):
        raise CannotServe(
            f"Other computers can reach --host {chosen.host}, and the proxy checks no credentials. "
            "With --forward-authorization the server checks those of each caller. With --anybody, "
            "every caller has the proxy's own rights."
        )
    for host in chosen.allow_hosts:
        if "/" in host:
            raise CannotServe(f"--allow-host takes a name such as mcp.example, not {host[:100]!r}.")
    if not chosen.forward_authorization:
        return
    if not isinstance(options.server, Address):
        raise CannotServe("--forward-authorization needs --url: a command gets no HTTP headers.")
    if options.server.authorization is not None:
        raise CannotServe(
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


def _accepted_names(chosen: HttpOptions) -> TransportSecuritySettings:
    """Return the accepted `Host` and `Origin` headers: this computer's only on loopback."""
    own = [*LOOPBACK, chosen.host] if is_loopback(chosen.host) else []
    names = [*chosen.allow_hosts, *own]
    pages = [f"http://{name}" for name in own]
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*pages, *(f"{page}:*" for page in pages)],
    )


class _Endpoint:
    """The endpoint `/mcp`: it names the sender of each request, and passes it to the SDK.

    The sender is the unchanged `Authorization` header. The SDK lets only the same sender use a
    session. The proxy does not verify the header: the server behind it does, if it gets the header.
    """

    def __init__(self, app: ASGIApp, callers: Callers, *, forwards: bool) -> None:
        self._app = app
        self._callers = callers
        self._forwards = forwards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = Headers(scope=scope)
        authorization = headers.getlist("authorization")
        if len(authorization) > 1:
            refusal = _reply(400, None, INVALID_REQUEST, "More than one Authorization header.")
            return await refusal(scope, receive, send)
        if not all(map(may_be_a_header, authorization)):
            words = "The Authorization header is not printable ASCII."
            return await _reply(400, None, INVALID_REQUEST, words)(scope, receive, send)
        scope.setdefault("state", {})
        if authorization:
            scope["user"] = authenticated_as(authorization[0])
        if scope["method"] == "GET":
            return await self._serve_until_the_end(scope, receive, send)
        if scope["method"] != "POST":
            return await self._app(scope, receive, send)
        send = _OrRefusal(scope, receive, send, forwards=self._forwards)
        if is_modern(headers.get(MCP_PROTOCOL_VERSION_HEADER, "")):
            return await self._app(scope, receive, send)
        if headers.get(MCP_SESSION_ID_HEADER) is not None:
            return await self._app(scope, receive, send)
        return await self._begin_session(scope, receive, send)

    async def _serve_until_the_end(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request whose stream may be endless. It ends when the proxy ends."""
        is_open = False

        async def send_and_note(sent: Message) -> None:
            nonlocal is_open
            is_open = sent["type"] == "http.response.start" or sent.get("more_body", False)
            await send(sent)

        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await self._callers.over.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end)
            await self._app(scope, receive, send_and_note)
            tasks.cancel_scope.cancel()
        if is_open:
            await send({"type": "http.response.body"})

    async def _begin_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Begin a session. End it if `initialize` fails, because the SDK would keep it."""
        session: str | None = None

        async def send_and_note(message: Message) -> None:
            nonlocal session
            if message["type"] == "http.response.start":
                session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
            await send(message)

        async def nothing() -> Message:
            return {"type": "http.request"}

        async def nowhere(_: Message) -> None:
            """Drop the response: nobody waits for it."""

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            if session is not None and not self._callers.has_session(session):
                named = [(MCP_SESSION_ID_HEADER.encode(), session.encode())]
                with anyio.CancelScope(shield=True):
                    await self._app(
                        {**scope, "method": "DELETE", "headers": named}, nothing, nowhere
                    )


class _OrRefusal:
    """A `send` that gives a refusal an HTTP status of its own.

    The SDK begins its response before a refusal is known. So the head is held back until the body
    begins. The server behind the proxy authorizes callers: its challenge names its own metadata
    (`resource_metadata`), so the caller gets a token for that server.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, forwards: bool) -> None:
        self._scope, self._receive, self._send, self._forwards = scope, receive, send, forwards
        self._head: Message | None = None
        self._refused = False

    async def __call__(self, message: Message) -> None:
        """Send a message of the response, or the refusal in its place."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if self._refused or (message.get("more_body") and not message.get("body")):
            return
        if self._head is not None:
            head, self._head = self._head, None
            number, refusal = self._scope["state"].get(REFUSAL, (None, None))
            if refusal is not None and (self._forwards or not isinstance(refusal, NotAuthorized)):
                self._refused = True
                answer = _reply(refusal.status, number, refusal.code, refusal.message)
                answer.raw_headers += [(b"www-authenticate", one) for one in refusal.challenges]
                return await answer(self._scope, self._receive, self._send)
            await self._send(head)
        await self._send(message)


def _reply(status: int, request_id: str | int | None, code: int, message: str) -> JSONResponse:
    """Return an error response to one request; the id is None if the request was not read."""
    error = {"code": code, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status)
