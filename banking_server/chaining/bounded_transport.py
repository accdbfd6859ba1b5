"""A transport of the SDK that listens to its server while it does not talk without end.

    server = StdioServerParameters(command="some-server", encoding=BOUNDED_LINES)
    async with mcp.Client(bounded(stdio_client(server)), extensions=[CLIENT_EXTENSION]) as client:
        ...

A server that sends more messages than anybody asked for, or one that is too large and nobody's
answer, is heard no further: each request that waits for it is answered with an error that says why,
and the connection ends.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

import anyio
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
)

from banking_server.chaining.message_size import TOO_LARGE, TOO_MANY

MAX_UNASKED: Final = 2_000
"""Notifications and requests of a server that may come at once, besides `UNASKED_PER_SECOND`."""

UNASKED_PER_SECOND: Final = 100
"""How many of them may come in the long run."""

MAX_UNANSWERED: Final = 100
"""Requests of a server that may wait for their answers at a time."""


class _TooMuchSent(Exception):
    """The message says what, without a subject."""


class Unasked:
    """Counts what a server says by itself. `clock` returns seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._level = 0.0
        self._at = clock()

    def is_too_much(self) -> bool:
        """Count a message, and return whether there have been too many."""
        now = self._clock()
        self._level = max(0.0, self._level - (now - self._at) * UNASKED_PER_SECOND) + 1
        self._at = now
        return self._level > MAX_UNASKED


@asynccontextmanager
async def bounded(
    transport: AbstractAsyncContextManager[tuple[Any, Any]],
) -> AsyncIterator[tuple[Any, Any]]:
    """Return a transport that goes on for as long as its server keeps within bounds."""
    async with transport as (read, write):
        watch = _Watch()
        yield _Reading(read, watch), _Writing(write, watch)


class _Watch:
    """What is under way on one connection, both ways."""

    def __init__(self) -> None:
        self._waiting: dict[Any, Any] = {}
        """The client's requests without an answer, by their ids."""
        self._unanswered = 0
        self._unasked = Unasked()

    def sent(self, item: Any) -> None:
        """Take note of a message of the client's."""
        if isinstance(item.message, JSONRPCRequest):
            self._waiting[item.message.id] = item
        elif isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._unanswered -= 1

    def came(self, item: Any) -> None:
        """Take note of what came of the server: a message, or why it could not be read.

        Raises `_TooMuchSent`.
        """
        message = getattr(item, "message", None)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._waiting:
            del self._waiting[message.id]
            return
        if isinstance(message, JSONRPCError) and message.error.message in (TOO_LARGE, TOO_MANY):
            raise _TooMuchSent(message.error.message)
        if self._unasked.is_too_much():
            raise _TooMuchSent(
                f"The server sent more than {MAX_UNASKED:,} messages that were no answer; it is "
                "left."
            )
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > MAX_UNANSWERED:
                raise _TooMuchSent(
                    f"The server asked more than {MAX_UNANSWERED} questions at a time; it is left."
                )

    def refusals(self, words: str) -> list[Any]:
        """Return an error for each request that waits."""
        error = ErrorData(code=CONNECTION_CLOSED, message=words)
        return [
            replace(item, message=JSONRPCError(jsonrpc="2.0", id=request, error=error))
            for request, item in self._waiting.items()
        ]


class _Stream:
    """One direction of a connection, as the SDK's sessions use it."""

    def __init__(self, inner: Any, watch: _Watch) -> None:
        self._inner = inner
        self._watch = watch

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Reading(_Stream):
    _last: list[Any] | None = None
    """What is still to be read, once the server is heard no further."""

    @property
    def last_context(self) -> Any:
        """The context of the sender of the last message, over HTTP."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        if self._last is None:
            item = await self._inner.receive()
            try:
                self._watch.came(item)
            except _TooMuchSent as problem:
                self._last = self._watch.refusals(str(problem))
            else:
                return item
        if not self._last:
            raise anyio.EndOfStream
        return self._last.pop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Writing(_Stream):
    async def send(self, item: Any) -> None:
        self._watch.sent(item)
        await self._inner.send(item)
