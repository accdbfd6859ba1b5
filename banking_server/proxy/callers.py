"""Who uses the proxy over HTTP: a link of its own for each, and an end to each link.

On 2025-11-25 a caller is a session. On 2026-07-28 no request says who sends it, but for its
`Authorization` header; without one, a caller is a TCP connection, or whoever shows the cookie that
was set on it. A client that says other things about itself is another caller, since the server
behind was told what the client can do.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

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
from banking_server.proxy.upstream import NotAuthorized, Refused

CALLER: Final = "caller"
"""Under this, the state of an HTTP request has the name of who sent it."""

REFUSAL: Final = "refusal"
"""Under this it has, if its refusal has an HTTP status, the request's id and that `Refused`."""

_LINK: Final = "link"
_ANONYMOUS: Final = "anonymous"


@dataclass
class _Caller:
    """A caller on 2026-07-28."""

    name: str
    declared: Declared
    link: Link
    seen: float
    """When it was last active, in seconds."""
    anonymous: bool
    """Whether it sends no `Authorization` header."""

    def is_over(self, now: float, idle: float) -> bool:
        """Return whether nobody has come for `idle` seconds."""
        if self.link.in_use:
            self.seen = now
            return False
        return now - self.seen > idle


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
    def ending(self) -> bool:
        """Whether nobody is served any more."""
        return self.over.is_set()

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("The proxy does not run.")
        return self._group

    @property
    def full(self) -> str:
        """What is said to whoever comes when there is no room."""
        most = self._chosen.max_callers
        return (
            f"This proxy serves {most} callers already, or half as many without an "
            "Authorization header. Try later."
        )

    def principal(self, ctx: Context) -> str | None:
        """Return who sent a message, if an `Authorization` header says so."""
        user = _request(ctx).scope.get("user")
        return None if user is None else str(user.display_name)

    def not_authorized(self, ctx: Context, refusal: NotAuthorized) -> None:
        """Note why a request is refused, for who forwards the caller's own `Authorization`."""
        if self._chosen.forward_authorization:
            _request(ctx).scope["state"][REFUSAL] = (ctx.request_id, refusal)

    async def of(self, ctx: Context) -> Link:
        """Return the link of whoever sent a message. Raises MCPError if there are too many."""
        if is_modern(ctx.protocol_version):
            return self._link_of_caller(ctx)
        connection = connection_of(ctx)
        if ctx.method == "initialize":
            self._begin_session(ctx, connection)
        link = connection.state.get(_LINK)
        if not isinstance(link, Link):
            raise MCPError(code=INVALID_REQUEST, message="A session begins with initialize.")
        return link

    # --- on 2025-11-25 ----------------------------------------------------------------------------

    def _begin_session(self, ctx: Context, connection: Connection) -> None:
        if _LINK in connection.state:
            raise MCPError(code=INVALID_REQUEST, message="This session has begun already.")
        link = self._new_link(ctx, connection)
        connection.state[_LINK] = link
        connection.state[_ANONYMOUS] = self.principal(ctx) is None
        name = connection.session_id or ""
        self._sessions[name] = connection

        async def end() -> None:
            self._sessions.pop(name, None)
            self._close(link)

        connection.exit_stack.push_async_callback(end)

    def has_session(self, name: str) -> bool:
        """Return whether a session has begun, and not ended."""
        connection = self._sessions.get(name)
        return connection is not None and connection.initialize_accepted

    def forget(self, name: str) -> None:
        """Give the place of a session away, which is about to end."""
        self._sessions.pop(name, None)

    # --- on 2026-07-28 ----------------------------------------------------------------------------

    def _link_of_caller(self, ctx: Context) -> Link:
        name = _request(ctx).scope["state"][CALLER]
        declared = declared_by(ctx.method, ctx.params, ctx.protocol_version)
        state = (ctx.params or {}).get("requestState")
        for caller in self._callers:
            # An answer may come on a new connection: clients without cookies have many. The state
            # is sealed, and only who was asked has it; it is bound to an `Authorization` header.
            if (caller.name, caller.declared) == (name, declared) or caller.link.holds(state):
                caller.seen = time.monotonic()
                return caller.link
        same = (caller.link.in_doubt for caller in self._callers if caller.name == name)
        link = self._new_link(ctx, None, next(same, None))
        anonymous = self.principal(ctx) is None
        self._callers.append(_Caller(name, declared, link, time.monotonic(), anonymous))
        return link

    def knows(self, name: str) -> bool:
        """Return whether somebody has this name."""
        return any(caller.name == name for caller in self._callers)

    # --- no more than there may be ----------------------------------------------------------------

    def has_room(self, *, anonymous: bool) -> bool:
        """Return whether one more link may be open. For that, the longest idle one is closed.

        Those without an `Authorization` header have half of the places at most, so that they keep
        nobody out who has one.
        """
        makes_room = self._callers
        nameless = [caller for caller in self._callers if caller.anonymous]
        sessions = [one for one in self._sessions.values() if one.state[_ANONYMOUS]]
        if anonymous and len(nameless) + len(sessions) >= max(1, self._chosen.max_callers // 2):
            makes_room = nameless
        elif len(self._sessions) + len(self._callers) < self._chosen.max_callers:
            return True
        idle = [caller for caller in makes_room if not caller.link.in_use]
        if idle:
            self._end(min(idle, key=lambda caller: caller.seen))
        return bool(idle)

    def _new_link(
        self, ctx: Context, connection: Connection | None, in_doubt: CallsInDoubt | None = None
    ) -> Link:
        if self.ending or not self.has_room(anonymous=self.principal(ctx) is None):
            refused = Refused(ENDING if self.ending else self.full, status=503)
            _request(ctx).scope["state"][REFUSAL] = (ctx.request_id, refused)
            raise refused
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

    async def _close_what_is_over(self) -> None:
        while True:
            await anyio.sleep(min(self._chosen.idle / 4, 5))
            now = time.monotonic()
            for caller in [one for one in self._callers if one.is_over(now, self._chosen.idle)]:
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
