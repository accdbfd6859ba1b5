"""Ends every request on a connection, and bounds the server's own.

`read_messages` puts an error with id null in the place of an answer that does not name its request;
some servers send such errors themselves. The SDK drops both, and the request would wait for its
whole time limit. The SDK also handles any number of the server's requests at a time, and each waits
in memory until its answer is written. Wrap the SDK's transport::

    transport = assigned(stdio_client(StdioServerParameters(command=..., encoding=BOUNDED_LINES)))
    async with mcp.Client(transport) as client:
        ...

Over HTTP an answer always has the id of its request, and `bounded` is enough.
"""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from typing import Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from tool_chaining.content import member
from tool_chaining.hosting.reading import UNREADABLE, with_doubt

GRACE: Final = 1.0
"""Seconds that a request still waits for its answer after an unreadable one arrived."""

OPEN_REQUESTS: Final = 100
"""The most unanswered requests of the server's own. One more ends the connection."""

OPEN_BYTES: Final = 16 * 1024 * 1024
"""The most bytes of all these requests together."""

TOO_MANY: Final = f"The server had {OPEN_REQUESTS} open requests of its own, or too large ones."
"""Why a connection was ended."""

logger = logging.getLogger(__name__)

Transport = AbstractAsyncContextManager[tuple[Any, Any]]


@asynccontextmanager
async def bounded(transport: Transport) -> AsyncIterator[tuple[Any, Any]]:
    """Return the streams of `transport`. They end if the server has too many open requests."""
    async with transport as (read, write):
        asked = _Asked()
        yield Received(read, asked), _Sent(write, asked)


@asynccontextmanager
async def assigned(transport: Transport) -> AsyncIterator[tuple[Any, Any]]:
    """Return the streams of `transport`, bounded. Every request gets an answer that it can get."""
    async with transport as (read, write):
        requests, asked = _Requests(), _Asked()
        yield Received(read, asked, requests), _Sent(write, asked, requests)


class _Requests:
    """The requests of one connection that have no answer yet, by their ids as text."""

    def __init__(self) -> None:
        self._last_id = 0
        self._open: dict[str, JSONRPCRequest] = {}
        self._notifications = 0
        """The notifications that were sent. Some servers answer each with "Method not found"."""
        self._unread: list[str] = []
        """The texts of unreadable answers whose requests are uncertain."""
        self._candidates: list[str] = []
        """The requests that were open when these answers arrived."""
        self._ending: dict[str, tuple[float, str]] = {}
        """Requests that wait for a better answer: until when, and what the first one said."""

    def note_sent(self, message: Any) -> None:
        """Record a request, a notification, or that a request was cancelled."""
        if isinstance(message, JSONRPCRequest):
            self._open[str(message.id)] = message
            if isinstance(message.id, int):
                self._last_id = max(self._last_id, message.id)
        elif isinstance(message, JSONRPCNotification):
            self._notifications += 1
            if message.method == "notifications/cancelled":
                name = str(member(message.params, "requestId"))
                self._open.pop(name, None)
                self._ending.pop(name, None)

    def note_received(self, message: Any) -> bool:
        """Record an answer. Return whether the SDK can read the message."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return True
        error = message.error if isinstance(message, JSONRPCError) else None
        words = error.message if error is not None else UNREADABLE
        if message.id is None:
            if error is not None and error.code == METHOD_NOT_FOUND and self._notifications:
                self._notifications -= 1
            else:
                self._note_unread(words)
            return False
        if self._open.pop(str(message.id), None) is not None:
            self._ending.pop(str(message.id), None)
            self._end_candidates()
        elif not (isinstance(message.id, int) and 0 <= message.id <= self._last_id):
            # Otherwise it is a second answer, or one to a cancelled request.
            self._note_unread(words)
        return True

    def _note_unread(self, words: str) -> None:
        """End the only request that this can answer, unless a better answer arrives."""
        self._unread.append(words)
        # A stream of changes is answered when it ends.
        self._candidates = [
            name for name, one in self._open.items() if one.method != "subscriptions/listen"
        ]
        self._end_candidates()

    def _end_candidates(self) -> None:
        """End the candidate requests, if there are no more of them than of such answers."""
        left = [one for one in self._candidates if one in self._open and one not in self._ending]
        if self._unread and len(left) <= len(self._unread):
            until = anyio.current_time() + GRACE
            self._ending |= dict.fromkeys(left, (until, self._unread[-1]))
            self._candidates, self._unread = [], []

    def patience(self) -> AbstractContextManager[anyio.CancelScope | None]:
        """Return a block that lasts until the next deadline; without limit if there is none."""
        if not self._ending:
            return nullcontext()
        return anyio.CancelScope(deadline=min(when for when, _ in self._ending.values()))

    def end_next(self) -> JSONRPCError:
        """End the request whose deadline has passed. Return the error that answers it."""
        name = next(iter(self._ending))
        _, words = self._ending.pop(name)
        request = self._open.pop(name)
        error = ErrorData(code=INTERNAL_ERROR, message=with_doubt(words))
        return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)


class _Asked:
    """The server's own requests that have no answer yet."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []
        """The id and the size of each. A server can repeat an id."""

    def note(self, message: Any) -> bool:
        """Record a message of the server. Return whether it may have so many open requests."""
        if isinstance(message, JSONRPCRequest):
            self._open.append((str(message.id), len(json.dumps(message.params))))
        elif getattr(message, "method", None) == "notifications/cancelled":
            self.end(member(message.params, "requestId"))
        return len(self._open) <= OPEN_REQUESTS and sum(n for _, n in self._open) <= OPEN_BYTES

    def end(self, number: Any) -> None:
        """Record that a request was answered or cancelled."""
        found = next((one for one in self._open if one[0] == str(number)), None)
        if found is not None:
            self._open.remove(found)


class _Stream:
    """One of the two streams of a transport."""

    def __init__(self, stream: Any, asked: _Asked, requests: _Requests | None = None) -> None:
        self._stream, self._asked, self._requests = stream, asked, requests

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class Received(_Stream):
    """The messages of the server, with errors in place of some."""

    flooded = False
    """Whether the stream ended because the server had too many open requests."""

    @property
    def last_context(self) -> Any:
        """The context of the last message, which the SDK's streams over HTTP have."""
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while True:
            patience = self._requests.patience() if self._requests else nullcontext()
            with patience as waiting:
                received = await self._stream.__anext__()
                message = getattr(received, "message", None)
                if not self._asked.note(message):
                    logger.warning("The connection was ended. %s", TOO_MANY)
                    self.flooded = True
                    raise StopAsyncIteration
                if self._requests is None or self._requests.note_received(message):
                    return received
            if self._requests and waiting is not None and waiting.cancelled_caught:
                return SessionMessage(self._requests.end_next())


class _Sent(_Stream):
    """The messages to the server."""

    async def send(self, sent: SessionMessage) -> None:
        """Send a message."""
        if self._requests is not None:
            self._requests.note_sent(sent.message)
        await self._stream.send(sent)
        if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
            self._asked.end(sent.message.id)
