"""The callers of the proxy over HTTP. Each has a link, which closes when idle.

On 2025-11-25 a caller is a session. Revision 2026-07-28 has no sessions: all requests with the same
`Authorization` header are one caller, and all requests without this header are one caller. There
can be many people behind one header, so they share a record of doubt (TC-C-55).
"""

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

from tool_chaining import Conversation
from tool_chaining_proxy.eras import declared_by, is_modern
from tool_chaining_proxy.link import ENDING, Link
from tool_chaining_proxy.options import Address, HttpOptions, ProxyOptions
from tool_chaining_proxy.sdk import Connection, Context, connection_of
from tool_chaining_proxy.upstream import Refused

_LINK: Final = "link"

MAX_RECORDS: Final = 1_000
"""The most `Authorization` headers whose records are kept.

The least recently used header goes first.
"""


@dataclass
class _Caller:
    """A caller on 2026-07-28."""

    link: Link
    seen: float
    """When it was last active, in seconds."""


class Callers:
    """Finds the link of each message, and closes those that are not used."""

    def __init__(self, options: ProxyOptions, chosen: HttpOptions) -> None:
        self._options = options
        self._chosen = chosen
        self._group: TaskGroup | None = None
        self.over = anyio.Event()
        """Set when the proxy ends; it then serves no more requests."""
        self._sessions: dict[str, Connection] = {}
        self._callers: dict[str | None, _Caller] = {}
        """The callers on 2026-07-28, by their `Authorization` header."""
        self._records: dict[str | None, Conversation] = {}
        """Their records, which outlive their links; the latest used is the last."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve callers inside the block, and close all links at its end."""
        async with anyio.create_task_group() as self._group:
            self._tasks.start_soon(self._close_unused)
            yield
            self._tasks.cancel_scope.cancel()

    def end(self) -> None:
        """End the running requests with an error for their clients, and serve no more requests."""
        self.over.set()
        for connection in self._sessions.values():
            self._close(connection.state[_LINK])
        for caller in self._callers.values():
            self._close(caller.link)

    @property
    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise RuntimeError("The proxy is not running.")
        return self._group

    async def of(self, ctx: Context) -> Link:
        """Return the link of a message's sender. Raises `Refused` if there are too many callers."""
        if is_modern(ctx.protocol_version):
            return self._link_of_caller(ctx)
        connection = connection_of(ctx)
        if ctx.method == "initialize":
            self._begin_session(ctx, connection)
        link = connection.state.get(_LINK)
        if not isinstance(link, Link):
            raise MCPError(code=INVALID_REQUEST, message="A session must begin with initialize.")
        return link

    def has_session(self, name: str) -> bool:
        """Return whether a session is open."""
        connection = self._sessions.get(name)
        return connection is not None and connection.initialize_accepted

    def _begin_session(self, ctx: Context, connection: Connection) -> None:
        if _LINK in connection.state:
            raise MCPError(code=INVALID_REQUEST, message="This session has already begun.")
        link = connection.state[_LINK] = self._new_link(ctx, connection)
        name = connection.session_id or ""
        self._sessions[name] = connection

        async def end() -> None:
            self._sessions.pop(name, None)
            self._close(link)

        connection.exit_stack.push_async_callback(end)

    def _link_of_caller(self, ctx: Context) -> Link:
        name = _authorization(ctx)
        record = self._records.pop(name) if name in self._records else Conversation(shared=True)
        self._records[name] = record
        if len(self._records) > MAX_RECORDS:
            del self._records[next(iter(self._records))]
        if (caller := self._callers.get(name)) is None:
            caller = self._callers[name] = _Caller(self._new_link(ctx, conversation=record), 0)
        caller.seen = time.monotonic()
        return caller.link

    def _new_link(
        self,
        ctx: Context,
        connection: Connection | None = None,
        conversation: Conversation | None = None,
    ) -> Link:
        if self.over.is_set():
            raise Refused(ENDING, status=503)
        if len(self._sessions) + len(self._callers) >= self._chosen.max_callers:
            self._make_room()
        options, server = self._options, self._options.server
        if self._chosen.forward_authorization and isinstance(server, Address):
            server = replace(server, authorization=_authorization(ctx))
            options = replace(options, server=server)
        declared = declared_by(ctx.method, ctx.params, ctx.protocol_version)
        return Link(
            options, declared, self._tasks, connection=connection, conversation=conversation
        )

    def _make_room(self) -> None:
        """Close the least recently used link. Raises `Refused`."""
        idle = [name for name, caller in self._callers.items() if not caller.link.in_use]
        if not idle:
            words = f"This proxy already serves {self._chosen.max_callers} callers. Try later."
            raise Refused(words, status=503)
        self._end(min(idle, key=lambda name: self._callers[name].seen))

    async def _close_unused(self) -> None:
        while True:
            await anyio.sleep(min(self._chosen.idle / 4, 5))
            now = time.monotonic()
            for name, caller in [*self._callers.items()]:
                if caller.link.in_use:
                    caller.seen = now
                elif now - caller.seen > self._chosen.idle:
                    self._end(name)

    def _end(self, name: str | None) -> None:
        self._close(self._callers.pop(name).link)

    def _close(self, link: Link) -> None:
        self._tasks.start_soon(link.close)


def _authorization(ctx: Context) -> str | None:
    """Return the unchanged `Authorization` header of a message, or None."""
    request: Any = ctx.request
    if not isinstance(request, Request):
        raise RuntimeError("Callers come over HTTP.")
    return request.headers.get("authorization")
