"""The proxy over Streamable HTTP: who is let in, and who sent each request."""

import hashlib
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Final

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banking_server.chaining.bearer import is_loopback
from banking_server.log import log_to_standard_error
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
)
from banking_server.proxy.server import proxy_server
from banking_server.proxy.signals import end_when_the_terminal_is_gone
from banking_server.serving import CannotListen, listen, serve

PATH: Final = "/mcp"

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this computer that everybody has."""

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
"""The largest body of a request."""

_COOKIE: Final = "tool-chaining-proxy"


class CannotServe(Exception):
    """The proxy cannot be served as was chosen; the message is one line for people."""


def serve_http(options: ProxyOptions, chosen: HttpOptions) -> None:
    """Serve until Ctrl-C or SIGTERM, and say where. Raises `CannotServe`."""
    _check(options, chosen)
    log_to_standard_error("%(message)s")
    try:
        listening = listen(chosen.host, chosen.port)
    except CannotListen as error:
        raise CannotServe(str(error)) from None
    host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
    url = f"http://{host}:{listening.getsockname()[1]}{PATH}"
    print(f"Serving {options.server.name} at {url}. Ctrl-C ends it.", file=sys.stderr, flush=True)
    end_when_the_terminal_is_gone()
    callers = Callers(options, chosen)
    serve(http_app(options, chosen, callers), listening, ending=callers.end)


def http_app(options: ProxyOptions, chosen: HttpOptions, callers: Callers) -> Starlette:
    """Return the ASGI application for `callers`: both revisions at `/mcp`."""
    manager = StreamableHTTPSessionManager(
        proxy_server(callers, parked_for=options.parked_for),
        session_idle_timeout=chosen.idle,
        max_sessions=chosen.max_callers,
        max_request_body_size=MAX_REQUEST_BYTES,
        security_settings=_names_let_in(chosen),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with callers.running(), manager.run():
            yield

    # A page elsewhere asks first whether it may (CORS), and cannot read what is not exposed.
    pages = Middleware(
        CORSMiddleware,
        allow_origins=chosen.allow_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=[MCP_SESSION_ID_HEADER, "WWW-Authenticate"],
    )
    return Starlette(
        routes=[Route(PATH, endpoint=_Door(manager.handle_request, callers))],
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


def _names_let_in(chosen: HttpOptions) -> TransportSecuritySettings:
    """Return which `Host` and `Origin` headers are let in."""
    own = [*LOOPBACK, chosen.host] if is_loopback(chosen.host) else [*LOOPBACK]
    names = [*chosen.allow_hosts, *own]
    pages = [f"http://{name}" for name in own]
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*chosen.allow_origins, *pages, *(f"{page}:*" for page in pages)],
    )


class _Door:
    """Lets a request in, and says who sent it.

    The SDK keeps others out of a session by the user that is named here. Nobody is verified: that
    is for the server behind, if the header goes there.
    """

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app = app
        self._callers = callers
        self._names: dict[object, str] = {}
        """By the connection, the names of those who say nothing about themselves."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ways = {"POST": self._serve_to_the_end, "GET": self._serve_until_the_end}
        await ways.get(scope["method"], self._serve)(scope, receive, send)

    async def _serve_to_the_end(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            refusal = _reply(503, None, CONNECTION_CLOSED, words)
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
        scope.setdefault("state", {})
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
            refusal = _reply(503, None, INTERNAL_ERROR, self._callers.full)
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
            scope["state"][CALLER] = shown
            return send
        name = scope["state"][CALLER] = self._name_of(scope["client"])

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{_COOKIE}={name}; Path={PATH}; HttpOnly; SameSite=Strict"
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return send_with_cookie

    def _name_of(self, connection: tuple[str, object]) -> str:
        """Return the name of whoever is on a connection; after a pause, a new one."""
        key = tuple(connection)
        name = self._names.get(key)
        if name is None or not self._callers.knows(name):
            self._names = {at: one for at, one in self._names.items() if self._callers.knows(one)}
            name = self._names[key] = secrets.token_urlsafe(24)
        return name

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
            answer = _reply(refusal.status, number, refusal.code, refusal.message)
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


def _reply(status: int, request_id: str | int | None, code: int, message: str) -> JSONResponse:
    """Return an error response to one request; the id is None where the request was not read."""
    error = {"code": code, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status)
