"""Sessions of 2025-11-25 over HTTP: the way back to a client, and what it declared.

On 2025-11-25 a question goes out in the middle of a call, and its answer comes in with a request of
its own. Both have to find the process that holds the call: that is the session, which the client
names in `Mcp-Session-Id`. What a client declares it says once, at the start, so that a session is
needed to remember who follows directives or shows views, too. Whoever declares none of these gets
none; nor do clients of 2026-07-28, whose questions are part of results, and who declare with each
request.
"""

import logging
import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, InitializeRequestParams
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banking_server.chaining.negotiation import has_declared
from banking_server.messages.replies import reply
from banking_server.server.bodies import message_of
from banking_server.server.replies import RETRY_SECONDS
from banking_server.server.running import Running
from banking_server.server.sdk import (
    CallNext,
    HandlerResult,
    SessionServer,
    SessionTransport,
    serve_session,
)
from banking_server.server.settings import PATH
from banking_server.tools import READ_SCOPE
from banking_server.tools.asking import takes_forms
from banking_server.tools.views import takes_views

logger = logging.getLogger(__name__)

SESSION_ID: Final = "mcp-session-id"

MOST_CALLS: Final = 32
"""Calls of one session that may be under way at once: one whose client has gone away waits for its
answer until the session ends."""

TURNS: Final = 10
"""Turns of the event loop in which a request is handed to its session, and some more."""


@dataclass(eq=False)
class _Session:
    customer: str
    transport: SessionTransport
    requests: int = 0
    """How many are being answered now; without any, the session is idle."""
    under_way: set[str] = field(default_factory=set)
    """Their ids, as texts."""

    @property
    def id(self) -> str:
        return str(self.transport.mcp_session_id)


class Sessions:
    """Opens a session for each client of 2025-11-25 that needs one, and serves it.

    ASGI middleware, next to the route, which serves everybody else: each of their requests stands
    for itself. A session is its customer's: under anybody else's token it is as good as unknown.
    There are at most `most` (0 for none at all), and each ends after `idle_seconds` without a
    request. Where there is no room for a new one, the customer who has most loses the one that has
    been idle for longest; where none is idle, the new one is refused with 503.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: SessionServer,
        running: Running,
        most: int,
        idle_seconds: float,
    ) -> None:
        self._app = app
        self._server = server
        self._running = running
        self._most = most
        self._idle_seconds = idle_seconds
        self._methods = ("POST", "DELETE") if most else ("POST",)
        self._open: dict[str, _Session] = {}
        """By id; of those that are idle, the one that has been for longest comes first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        token = get_access_token()
        if (
            scope["type"] != "http"
            or scope["path"] != PATH
            or token is None
            or READ_SCOPE not in token.scopes
        ):
            # The route refuses it.
            await self._app(scope, receive, send)
        elif scope["method"] not in self._methods:
            # There is no stream to open with GET: a question goes out with the call it belongs to.
            allowed = {"Allow": ", ".join(self._methods)}
            await Response(status_code=405, headers=allowed)(scope, receive, send)
        elif not self._most or not _is_of_handshake_era(scope):
            await self._app(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = get_access_token()
        customer = "" if token is None else str(token.subject)
        session_id = Headers(scope=scope).get(SESSION_ID)
        if session_id is not None or scope["method"] == "DELETE":
            session = self._open.get(session_id or "")
            if session is None or session.customer != customer:
                refusal = reply(404, None, INVALID_REQUEST, "Session not found")
                await refusal(scope, receive, send)
            else:
                await self._answer(session, scope, receive, send)
        elif _takes_event_stream(scope) and _needs_session(message_of(scope)):
            await self._begin(customer, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _begin(self, customer: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session with the request that asks for one; it ends if that is refused."""
        gives_way = None
        if len(self._open) >= self._most:
            gives_way = self._longest_idle()
            if gives_way is None:
                words = "All sessions that there may be are in use. Please try again in a moment."
                retry = {"Retry-After": str(RETRY_SECONDS)}
                await reply(503, None, INTERNAL_ERROR, words, retry)(scope, receive, send)
                return
            del self._open[gives_way.id]
        transport = SessionTransport(secrets.token_hex(16), idle_timeout=self._idle_seconds)
        # From now on it takes its room, and is not idle before it was answered.
        session = self._open[transport.mcp_session_id or ""] = _Session(
            customer, transport, requests=1
        )
        accepted = False

        async def look_at(message: Message) -> None:
            nonlocal accepted
            if message["type"] == "http.response.start":
                accepted = message["status"] == 200
            await send(message)

        try:
            if gives_way is not None:
                await self._end(gives_way)
            await self._running.background.start(self._run, session)
            await self._answer(session, scope, receive, look_at)
        finally:
            session.requests -= 1
            if not accepted:
                await self._end(session)

    def _longest_idle(self) -> _Session | None:
        held = Counter(session.customer for session in self._open.values())
        idle = [session for session in self._open.values() if not session.requests]
        # Of several that are as good, max returns the first.
        return max(idle, key=lambda session: held[session.customer], default=None)

    async def _answer(self, session: _Session, scope: Scope, receive: Receive, send: Send) -> None:
        message = message_of(scope) if scope["method"] == "POST" else {}
        request_id = message.get("id") if "method" in message else None
        # The SDK does not tell 7 from "7", and of two under way it would leave one unanswered.
        taken = str(request_id)
        if request_id is not None:
            if taken in session.under_way:
                words = "A request with this id is under way. Please give each an id of its own."
                await reply(400, request_id, INVALID_REQUEST, words)(scope, receive, send)
                return
            session.under_way.add(taken)
        session.requests += 1
        try:
            if scope["method"] == "DELETE":
                # Nobody comes in any more, and who has is let through to the session: the SDK
                # takes a message that it ends on the way for a fault of its own.
                self._open.pop(session.id, None)
                for _ in range(TURNS * session.requests):
                    await anyio.lowlevel.checkpoint()
            await session.transport.handle_request(scope, receive, send)
        finally:
            session.under_way.discard(taken)
            session.requests -= 1
            self._open.pop(session.id, None)
            if not session.transport.is_terminated:
                self._open[session.id] = session

    async def _run(
        self, session: _Session, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve the session's messages until it ends, or the server does."""

        async def serve() -> None:
            try:
                # Ended from outside it would say so to its client, who takes nothing any more.
                with anyio.CancelScope(shield=True):
                    await serve_session(self._server, session.transport, app, task_status)
            except Exception:
                logger.exception("A session has crashed")
            serving.cancel_scope.cancel()

        app = self._running.app
        async with anyio.create_task_group() as serving:
            serving.start_soon(serve)
            try:
                await anyio.sleep_forever()
            finally:
                await self._end(session)

    async def _end(self, session: _Session) -> None:
        self._open.pop(session.id, None)
        with anyio.CancelScope(shield=True):
            await session.transport.terminate()


def _is_of_handshake_era(scope: Scope) -> bool:
    """Whether the request is of 2025-11-25 or before, as the SDK tells them apart."""
    version = Headers(scope=scope).get("mcp-protocol-version")
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _takes_event_stream(scope: Scope) -> bool:
    """Whether the client reads event streams, in which questions come."""
    accepted = Headers(scope=scope).get("accept", "")
    return any(kind in accepted for kind in ("text/event-stream", "text/*", "*/*"))


def _needs_session(message: dict[str, Any]) -> bool:
    """Whether a message is the `initialize` of a client that is to be remembered.

    That is one that declares form elicitation, that it shows views, or that it follows directives.
    """
    if message.get("method") != "initialize" or "id" not in message:
        return False
    try:
        params = InitializeRequestParams.model_validate(message.get("params"), by_name=False)
    except ValidationError:
        return False
    declared = params.capabilities
    to_be_shown = takes_forms(declared) or takes_views(declared)
    return to_be_shown or has_declared(declared, HANDSHAKE_PROTOCOL_VERSIONS[-1])


class CallsOfSession:
    """MCP middleware that refuses a session's call while `MOST_CALLS` are under way."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Serve one request."""
        session_id = _session_of(ctx)
        if session_id is None:
            return await call_next(ctx)
        if self._under_way[session_id] >= MOST_CALLS:
            raise MCPError(
                INTERNAL_ERROR,
                f"{MOST_CALLS} calls of this session are under way. Please answer what they ask, "
                "or open a new session.",
            )
        self._under_way[session_id] += 1
        try:
            return await call_next(ctx)
        finally:
            self._under_way[session_id] -= 1
            if not self._under_way[session_id]:
                del self._under_way[session_id]


def _session_of(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """Return the id of the session in which a tool is called; None for everything else."""
    if ctx.method != "tools/call" or ctx.request is None or not ctx.session.can_send_request:
        return None
    found: str | None = ctx.request.headers.get(SESSION_ID)
    return found
