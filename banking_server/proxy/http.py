"""The proxy over Streamable HTTP: who is let in, and who sent each request."""

import asyncio
import hashlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final

import anyio
import uvicorn
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banking_server.chaining.bearer import is_loopback
from banking_server.connections import BACKLOG, Http, Limits, most_connections
from banking_server.log import log_to_standard_error
from banking_server.messages.names import LOOPBACK, KnownNames
from banking_server.messages.reading import Refusal, read
from banking_server.messages.replies import reply
from banking_server.messages.sdk import once_more, with_body
from banking_server.proxy import TOKEN_VARIABLE
from banking_server.proxy.callers import CALLER, REFUSAL, Callers
from banking_server.proxy.eras import is_modern
from banking_server.proxy.link import ENDING
from banking_server.proxy.options import Address, HttpOptions, ProxyOptions
from banking_server.proxy.sdk import (
    MCP_PROTOCOL_VERSION_HEADER,
    MCP_SESSION_ID_HEADER,
    StreamableHTTPSessionManager,
    authenticated_as,
    end_no_streams_at_shutdown,
)
from banking_server.proxy.server import proxy_server
from banking_server.proxy.signals import end_when_the_terminal_is_gone

PATH: Final = "/mcp"

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
"""The largest body of a request."""

_COOKIE: Final = "tool-chaining-proxy"
_CALLERS: Final = "callers"
_CONNECTION: Final = "connection"
_DESCRIPTORS_OF_CALLER: Final = 6
"""A server of one caller's own is a process, with pipes."""


class CannotServe(Exception):
    """The proxy cannot be served as was chosen; the message is one line for people."""


def serve_http(options: ProxyOptions, chosen: HttpOptions) -> None:
    """Serve until Ctrl-C or SIGTERM, and say where. Raises `CannotServe`."""
    _check(options, chosen)
    log_to_standard_error("%(message)s")
    bound = _bound(chosen.host, chosen.port)
    reserve = 64 + _DESCRIPTORS_OF_CALLER * chosen.max_callers
    config = uvicorn.Config(
        http_app(options, chosen),
        http=partial(_Http, limits=Limits(most=most_connections(reserve))),  # type: ignore[arg-type]
        backlog=BACKLOG,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Who has no session and no cookie is known by the connection.
        timeout_keep_alive=max(5, int(chosen.idle)),
        timeout_graceful_shutdown=5,
    )
    host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
    url = f"http://{host}:{bound.getsockname()[1]}{PATH}"
    print(f"Serving {options.server.name} at {url}. Ctrl-C ends it.", file=sys.stderr, flush=True)
    end_no_streams_at_shutdown()
    # When it has wound down, uvicorn raises the signal again that ended it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    end_when_the_terminal_is_gone()
    with suppress(KeyboardInterrupt):
        _Server(config).run(sockets=[bound])


class _Server(uvicorn.Server):
    """uvicorn, which tells whoever waits for an answer that there will be none."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wind down: what does not end within the time for that is cancelled."""
        self.lifespan.state[_CALLERS].end()
        await super().shutdown(sockets)


def http_app(options: ProxyOptions, chosen: HttpOptions) -> Starlette:
    """Return the ASGI application: both revisions at `/mcp`."""
    callers = Callers(options, chosen)
    manager = StreamableHTTPSessionManager(
        proxy_server(callers, parked_for=options.parked_for),
        session_idle_timeout=chosen.idle,
        max_sessions=chosen.max_callers,
        max_request_body_size=MAX_REQUEST_BYTES,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with callers.running(), manager.run():
            yield {_CALLERS: callers}

    # A page elsewhere asks first whether it may (CORS), and cannot read what is not exposed.
    pages = Middleware(
        CORSMiddleware,
        allow_origins=chosen.allow_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=[MCP_SESSION_ID_HEADER, "WWW-Authenticate"],
    )
    hosts, origins = _names_let_in(chosen)
    door = KnownNames(_Door(manager.handle_request, callers), hosts, origins)
    return Starlette(
        routes=[Route(PATH, endpoint=door)],
        middleware=[pages] if chosen.allow_origins else [],
        lifespan=lifespan,
    )


def _check(options: ProxyOptions, chosen: HttpOptions) -> None:
    if not (chosen.allow_hosts or is_loopback(chosen.host)):
        raise CannotServe(
            f"--host {chosen.host} is open to others: --allow-host says by which name they come."
        )
    for host in chosen.allow_hosts:
        if "/" in host:
            raise CannotServe(f"--allow-host takes a name such as mcp.example, not {host[:100]!r}.")
    for origin in chosen.allow_origins:
        scheme, _, name = origin.partition("://")
        if not scheme or not name or "/" in name:
            raise CannotServe(
                f"--allow-origin takes an origin such as https://app.example, not {origin[:100]!r}."
            )
    if not chosen.forward_authorization:
        return
    if not isinstance(options.server, Address):
        raise CannotServe("--forward-authorization needs --url: a command has no such header.")
    if options.server.authorization is not None:
        raise CannotServe(
            "--forward-authorization sends the callers' own tokens on, and "
            f"{TOKEN_VARIABLE} is one for all of them: leave one out."
        )


def _names_let_in(chosen: HttpOptions) -> tuple[list[str], list[str]]:
    """Return which `Host` and `Origin` headers are let in."""
    own = [*LOOPBACK, chosen.host] if is_loopback(chosen.host) else [*LOOPBACK]
    names = [*chosen.allow_hosts, *own]
    pages = [f"http://{name}" for name in own]
    return (
        [*names, *(f"{name}:*" for name in names)],
        [*chosen.allow_origins, *pages, *(f"{page}:*" for page in pages)],
    )


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address. Raises `CannotServe`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise CannotServe(f"Cannot serve at {host} port {port}: {problem}.") from None
    return bound


class _Door:
    """Lets a request in, and says who sent it.

    The SDK keeps others out of a session by the user that is named here. Nobody is verified: that
    is for the server behind, if the header goes there.
    """

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app = app
        self._callers = callers
        self._with_body = with_body(self._read, MAX_REQUEST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ways = {"POST": self._with_body, "GET": self._serve_until_the_end}
        await ways.get(scope["method"], self._serve)(scope, receive, send)

    async def _read(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request if its body is a message; else say why it is none."""
        found = read(body)
        if not isinstance(found, Refusal):
            return await self._serve_to_the_end(found, scope, receive, send)
        refusal = reply(400, found.request_id, found.code, found.message)
        if found.is_answer:
            # Whoever asked the question would wait for another answer, which never comes.
            instead = once_more({"type": "http.request", "body": refusal.body}, receive)
            return await self._serve(scope, instead, send)
        await refusal(scope, receive, send)

    async def _serve_to_the_end(
        self, message: dict[str, Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request; say so if the proxy ends before there is an answer."""
        begun = False

        async def send_and_note(sent: Message) -> None:
            nonlocal begun
            begun = True
            await send(sent)

        try:
            await self._serve(scope, receive, send_and_note)
        except BaseException:  # The cancellation, or what came of it on the way.
            if begun or not self._callers.ending:
                raise
        if self._callers.ending and not begun:
            words = f"{ENDING} Whether the request took effect is not known."
            refusal = reply(503, message.get("id"), CONNECTION_CLOSED, words)
            await refusal(scope, receive, send)

    async def _serve_until_the_end(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what may be a stream without end; it ends when the proxy does."""
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
            await self._serve(scope, receive, send_and_note)
            tasks.cancel_scope.cancel()
        if self._callers.ending and is_open:
            await send({"type": "http.response.body"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            send = _or_refusal(scope, receive, send)
        headers = Headers(scope=scope)
        if authorization := headers.getlist("authorization"):
            name = hashlib.sha256("\n".join(authorization).encode()).hexdigest()
            scope["user"] = authenticated_as(name)
            scope["state"][CALLER] = name
        if is_modern(headers.get(MCP_PROTOCOL_VERSION_HEADER, "")):
            if not authorization:
                send = self._recognized(scope, headers, send)
            return await self._app(scope, receive, send)
        if (session := headers.get(MCP_SESSION_ID_HEADER)) is not None:
            if scope["method"] == "DELETE":
                send = self._gives_its_place(session, send)
            return await self._app(scope, receive, send)
        if not self._callers.has_room(anonymous=not authorization):
            refusal = reply(503, None, INTERNAL_ERROR, self._callers.full)
            return await refusal(scope, receive, send)
        return await self._begin_session(scope, receive, send)

    def _gives_its_place(self, session: str, send: Send) -> Send:
        """Return `send` for whoever ends a session: with the answer there is room again."""

        async def send_and_forget(message: Message) -> None:
            if message.get("status") == 200:
                self._callers.forget(session)
            await send(message)

        return send_and_forget

    def _recognized(self, scope: Scope, headers: Headers, send: Send) -> Send:
        """Name a sender who does not say who it is; return `send`, which may set a cookie."""
        shown = _cookie(headers)
        if shown is not None and self._callers.knows(shown):
            self._callers.showed_cookie(shown)
            scope["state"][CALLER] = shown
            return send
        name = scope["state"][CALLER] = scope["state"][_CONNECTION]

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{_COOKIE}={name}; Path={PATH}; HttpOnly; SameSite=Strict"
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return send_with_cookie

    async def _begin_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a session begin; end it if its `initialize` failed, since the SDK keeps it.

        The SDK begins to answer before it knows. So the head is held back until the answer comes,
        and names no session that has not begun; that one has ended before the client hears of it.
        """
        session: str | None = None
        held: Message | None = None
        last_words: list[Message] = []

        def has_failed() -> bool:
            return session is not None and not self._callers.has_session(session)

        async def send_and_note(message: Message) -> None:
            nonlocal session, held
            if message["type"] == "http.response.start":
                held = message
                session = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                return
            if held is not None:
                body = message.get("body", b"")
                if message.get("more_body") and (not body or body.startswith(b":")):
                    return  # A comment that keeps the connection alive.
                head, held = held, None
                if has_failed():
                    del MutableHeaders(scope=head)[MCP_SESSION_ID_HEADER]
                    last_words.append(head)
                else:
                    await send(head)
            if last_words:
                last_words.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            if session is not None and has_failed():
                with anyio.CancelScope(shield=True):
                    await self._end_session(scope, session)
                self._callers.forget(session)
        for message in last_words:
            await send(message)

    async def _end_session(self, scope: Scope, session: str) -> None:
        async def nothing() -> Message:
            return {"type": "http.request"}

        async def nowhere(_: Message) -> None:
            """Nobody waits for the answer."""

        named = [(MCP_SESSION_ID_HEADER.encode(), session.encode())]
        await self._app({**scope, "method": "DELETE", "headers": named}, nothing, nowhere)


def _or_refusal(scope: Scope, receive: Receive, send: Send) -> Send:
    """Return `send` for an answer that has a status of its own, if the request is refused.

    The SDK begins to answer before that is known, so the head is held back until the body begins.
    Who authorizes callers is the server behind: its challenge names its own metadata
    (`resource_metadata`), so the caller gets a token for that server, and not for the proxy.
    """
    held: Message | None = None
    refused = False

    async def send_either(message: Message) -> None:
        nonlocal held, refused
        if message["type"] == "http.response.start":
            held = message
        elif message.get("more_body") and not message.get("body"):
            return
        elif held is not None and REFUSAL in scope["state"]:
            refused, held = True, None
            number, refusal = scope["state"][REFUSAL]
            answer = reply(refusal.status, number, refusal.code, refusal.message)
            answer.raw_headers += [(b"www-authenticate", one) for one in refusal.challenges]
            await answer(scope, receive, send)
        elif not refused:
            if held is not None:
                head, held = held, None
                await send(head)
            await send(message)

    return send_either


def _cookie(headers: Headers) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


class _Http(Http):  # type: ignore[misc, valid-type]
    """HTTP of uvicorn, which gives each TCP connection a name, and says when it is gone."""

    app_state: dict[str, Any]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection."""
        self.app_state = {**self.app_state, _CONNECTION: secrets.token_urlsafe(24)}
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """End a connection."""
        super().connection_lost(error)
        self.app_state[_CALLERS].left(self.app_state[_CONNECTION])
