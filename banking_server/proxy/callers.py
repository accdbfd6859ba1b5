"""Who uses the proxy over HTTP: a link of its own for each, and an end to each link.

On 2025-11-25 a caller is a session. On 2026-07-28 it is whoever sends the same `Authorization`
header. Without one it is whoever shows the cookie that was set, or comes on the same connection. A
client that says other things about itself is another caller, since the server behind was told what
the client can do.
"""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import INVALID_REQUEST
from starlette.requests import Request

from banking_server.chaining.doubt import CallsInDoubt
from banking_server.proxy.eras import Declared, declared_by, is_modern
from banking_server.proxy.link import ENDING, Link
from banking_server.proxy.options import Address, HttpOptions, ProxyOptions, may_be_a_header
from banking_server.proxy.sdk import Connection, Context, connection_of
from banking_server.proxy.upstream import Refused

COOKIE: Final = "tool-chaining-proxy"
"""The name of the cookie; under it, the state of an HTTP request has the one that is to be set."""

_LINK: Final = "link"


@dataclass
class _Caller:
    """A caller on 2026-07-28."""

    authorization: str | None
    """The header as it came."""
    connection: Any
    """The address and the port from which it came first."""
    cookie: str
    """A name that only who sends no `Authorization` is known by."""
    declared: Declared
    link: Link
    seen: float
    """When it was last active, in seconds."""

    def sent(self, request: Request) -> bool:
        """Return whether a request is from this caller."""
        authorization = request.headers.get("authorization")
        if authorization is not None or self.authorization is not None:
            return authorization == self.authorization
        return request.cookies.get(COOKIE) == self.cookie or request.client == self.connection


class Callers:
    """Finds the link of each message, and closes those that are not used."""

    def __init__(self, options: ProxyOptions, chosen: HttpOptions) -> None:
        self._options = options
        self._chosen = chosen
        self._group: TaskGroup | None = None
        self.over = anyio.Event()
        """Nobody is served any more."""
        self._sessions: dict[str, Connection] = {}
        self._callers: list[_Caller] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have links inside the block; at its end all are closed."""
        async with anyio.create_task_group() as self._group:
            self._tasks.start_soon(self._close_what_is_over)
            yield
            self._tasks.cancel_scope.cancel()

    def end(self) -> None:
        """Give up what runs, so that whoever waits for it is told; nobody else is served."""
        self.over.set()
        for connection in self._sessions.values():
            self._close(connection.state[_LINK])
        for caller in self._callers:
            self._close(caller.link)

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("The proxy does not run.")
        return self._group

    def principal(self, ctx: Context) -> str | None:
        """Return who sent a message, if an `Authorization` header says so."""
        user = _request(ctx).scope.get("user")
        return None if user is None else str(user.display_name)

    async def of(self, ctx: Context) -> Link:
        """Return the link of whoever sent a message. Raises `Refused` if there are too many."""
        if is_modern(ctx.protocol_version):
            return self._link_of_caller(ctx)
        connection = connection_of(ctx)
        if ctx.method == "initialize":
            self._begin_session(ctx, connection)
        link = connection.state.get(_LINK)
        if not isinstance(link, Link):
            raise MCPError(code=INVALID_REQUEST, message="A session begins with initialize.")
        return link

    def has_session(self, name: str) -> bool:
        """Return whether a session has begun, and not ended."""
        connection = self._sessions.get(name)
        return connection is not None and connection.initialize_accepted

    def _begin_session(self, ctx: Context, connection: Connection) -> None:
        if _LINK in connection.state:
            raise MCPError(code=INVALID_REQUEST, message="This session has begun already.")
        link = connection.state[_LINK] = self._new_link(ctx, connection)
        name = connection.session_id or ""
        self._sessions[name] = connection

        async def end() -> None:
            self._sessions.pop(name, None)
            self._close(link)

        connection.exit_stack.push_async_callback(end)

    def _link_of_caller(self, ctx: Context) -> Link:
        request = _request(ctx)
        declared = declared_by(ctx.method, ctx.params, ctx.protocol_version)
        state = (ctx.params or {}).get("requestState")
        own = [caller for caller in self._callers if caller.sent(request)]
        # An answer may come on a new connection: clients without cookies have many. The state is
        # sealed, and only who was asked has it; it is bound to an `Authorization` header.
        known = [caller for caller in own if caller.declared == declared]
        known += [caller for caller in self._callers if caller.link.holds(state)]
        if known:
            caller = known[0]
            caller.seen = time.monotonic()
        else:
            link = self._new_link(ctx, None, own[0].link.in_doubt if own else None)
            authorization = request.headers.get("authorization")
            cookie = own[0].cookie if own else secrets.token_urlsafe(24)
            caller = _Caller(
                authorization, request.client, cookie, declared, link, time.monotonic()
            )
            self._callers.append(caller)
        if caller.authorization is None and request.cookies.get(COOKIE) != caller.cookie:
            request.scope["state"][COOKIE] = caller.cookie
        return caller.link

    def _new_link(
        self, ctx: Context, connection: Connection | None, in_doubt: CallsInDoubt | None = None
    ) -> Link:
        if self.over.is_set():
            raise Refused(ENDING, status=503)
        if len(self._sessions) + len(self._callers) >= self._chosen.max_callers:
            self._make_room()
        options, server = self._options, self._options.server
        if self._chosen.forward_authorization and isinstance(server, Address):
            token = _request(ctx).headers.get("authorization")
            if not may_be_a_header(token or ""):
                raise MCPError(
                    code=INVALID_REQUEST,
                    message="The Authorization header has a character that no header can have.",
                )
            options = replace(options, server=replace(server, authorization=token))
        declared = declared_by(ctx.method, ctx.params, ctx.protocol_version)
        return Link(options, declared, self._tasks, connection=connection, in_doubt=in_doubt)

    def _make_room(self) -> None:
        """Close the link that was not used for the longest time. Raises `Refused`."""
        idle = [caller for caller in self._callers if not caller.link.in_use]
        if not idle:
            words = f"This proxy serves {self._chosen.max_callers} callers already. Try later."
            raise Refused(words, status=503)
        self._end(min(idle, key=lambda caller: caller.seen))

    async def _close_what_is_over(self) -> None:
        while True:
            await anyio.sleep(min(self._chosen.idle / 4, 5))
            now = time.monotonic()
            for caller in [*self._callers]:
                if caller.link.in_use:
                    caller.seen = now
                elif now - caller.seen > self._chosen.idle:
                    self._end(caller)

    def _end(self, caller: _Caller) -> None:
        self._callers.remove(caller)
        self._close(caller.link)

    def _close(self, link: Link) -> None:
        self._tasks.start_soon(link.close)


def _request(ctx: Context) -> Request:
    request = ctx.request
    if not isinstance(request, Request):
        raise RuntimeError("Callers come over HTTP.")
    return request
