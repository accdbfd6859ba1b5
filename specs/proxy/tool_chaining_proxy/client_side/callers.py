"""The callers of the proxy over HTTP. Each has a session of its own, which closes when idle.

On 2025-11-25 a caller is a session of MCP. Revision 2026-07-28 has none: all requests with the same
`Authorization` header are one caller, and all requests without this header are one caller. There
can be many people behind one header, so they share a record of doubt (TC-C-55).
"""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from tool_chaining import Conversation
from tool_chaining_proxy.eras import Declared
from tool_chaining_proxy.exchange import Channel
from tool_chaining_proxy.options import Address, HttpOptions, ProxyOptions
from tool_chaining_proxy.session import ENDING, Session
from tool_chaining_proxy.upstream import Refused

MAX_RECORDS: Final = 1_000
"""The most `Authorization` headers whose records are kept. Empty records go first, then the one
that was not used for the longest time."""


@dataclass
class Caller:
    """A caller, by the `Authorization` header of its first request."""

    session: Session
    authorization: str | None
    standing: Any = None
    """On 2025-11-25, the channel for messages that belong to no request."""
    seen: float = 0.0
    """When it was last active, in seconds."""


class Callers:
    """Finds the session of each request, and closes those that are not used."""

    def __init__(self, options: ProxyOptions, chosen: HttpOptions) -> None:
        self._options = options
        self._chosen = chosen
        self.tasks: TaskGroup
        """Where the work of all callers runs."""
        self.over = anyio.Event()
        """Set when the proxy ends; it then serves no more requests."""
        self._callers: dict[tuple[str, str | None], Caller] = {}
        """By the id of a session, or else by the `Authorization` header."""
        self._records: dict[str | None, Conversation] = {}
        """The records on 2026-07-28, which outlive the sessions; the latest used is the last."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve callers inside the block, and close all sessions at its end."""
        async with anyio.create_task_group() as self.tasks:
            self.tasks.start_soon(self._close_unused)
            yield
            self.tasks.cancel_scope.cancel()

    def end(self) -> None:
        """End the running requests with an error for their clients, and serve no more requests."""
        self.over.set()
        for caller in self._callers.values():
            self.tasks.start_soon(caller.session.close)

    def begin_session(
        self, declared: Declared, authorization: str | None, standing: Channel
    ) -> tuple[str, Caller]:
        """Begin a session of 2025-11-25. Raises `Refused` if there are too many callers."""
        name = secrets.token_hex(16)
        caller = self._new(declared, authorization, standing=standing)
        self._callers[name, None] = caller
        return name, caller

    def of_session(self, name: str, authorization: str | None) -> Caller | None:
        """Return the caller of a session, if this is the `Authorization` that opened it."""
        caller = self._callers.get((name, None))
        if caller is None or caller.authorization != authorization:
            return None
        caller.seen = time.monotonic()
        return caller

    def end_session(self, name: str) -> None:
        """End a session of 2025-11-25, if it is still open."""
        if (name, None) in self._callers:
            self._end((name, None))

    def of_authorization(self, declared: Declared, authorization: str | None) -> Caller:
        """Return a caller on 2026-07-28. Raises `Refused` if there are too many callers."""
        key = ("", authorization)
        if (caller := self._callers.get(key)) is None:
            record = self._records.get(authorization) or Conversation(shared=True)
            caller = self._callers[key] = self._new(declared, authorization, conversation=record)
        caller.seen = time.monotonic()
        return caller

    def note(self, caller: Caller) -> None:
        """Keep the record of a caller whom the server has accepted; forget any other caller."""
        name, session = caller.authorization, caller.session
        if not session.accepted:
            if not session.in_use and self._callers.get(("", name)) is caller:
                self._end(("", name))
            return
        self._records.pop(name, None)
        self._records[name] = session.conversation
        if len(self._records) > MAX_RECORDS:
            empty = (one for one, record in self._records.items() if record.is_empty)
            del self._records[next(empty, next(iter(self._records)))]

    def _new(self, declared: Declared, authorization: str | None, **members: Any) -> Caller:
        if self.over.is_set():
            raise Refused(ENDING, status=503)
        if len(self._callers) >= self._chosen.max_callers:
            self._make_room()
        options, server = self._options, self._options.server
        if self._chosen.forward_authorization and isinstance(server, Address):
            options = replace(options, server=replace(server, authorization=authorization))
        session = Session(options, declared, self.tasks, **members)
        return Caller(session, authorization, members.get("standing"), time.monotonic())

    def _make_room(self) -> None:
        """Close the least recently used caller of 2026-07-28. Raises `Refused`."""
        idle = [
            (caller.seen, key)
            for key, caller in self._callers.items()
            if not key[0] and not caller.session.in_use
        ]
        if not idle:
            words = f"This proxy already serves {self._chosen.max_callers} callers. Try later."
            raise Refused(words, status=503)
        self._end(min(idle)[1])

    async def _close_unused(self) -> None:
        while True:
            await anyio.sleep(min(self._chosen.idle / 4, 5))
            now = time.monotonic()
            for key, caller in [*self._callers.items()]:
                listens = caller.standing is not None and caller.standing.is_open
                if caller.session.in_use or listens:
                    caller.seen = now
                elif now - caller.seen > self._chosen.idle:
                    self._end(key)

    def _end(self, key: tuple[str, str | None]) -> None:
        self.tasks.start_soon(self._callers.pop(key).session.close)
