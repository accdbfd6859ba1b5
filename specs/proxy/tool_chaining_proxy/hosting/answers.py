"""Finds the request whose answer cannot be read, on a connection over stdio.

`read_message` puts an error with id null in the place of an answer that does not name its request;
some servers send such errors themselves. The SDK drops both, and the request would wait for its
whole time limit. Wrap the SDK's transport, and the request ends with that error::

    transport = assigned(stdio_client(StdioServerParameters(command=..., encoding=BOUNDED_LINES)))
    async with mcp.Client(transport) as client:
        ...
"""

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
from tool_chaining_proxy.hosting.reading import ANSWERS, UNREADABLE, with_doubt

GRACE: Final = 1.0
"""Seconds that a request still waits for its answer after an unreadable one arrived."""


@asynccontextmanager
async def assigned(
    transport: AbstractAsyncContextManager[tuple[Any, Any]],
) -> AsyncIterator[tuple[Any, Any]]:
    """Return the streams of `transport`, which answer every request that can be answered."""
    async with transport as (read, write):
        requests = _Requests()
        yield _Answers(read, requests), _Sent(write, requests)


class _Requests:
    """The requests of one connection that have no answer yet, by their ids as text."""

    def __init__(self) -> None:
        self._count = self._last_id = 0
        self._open: dict[str, tuple[int, JSONRPCRequest]] = {}
        """Each request, and how many were sent before it."""
        self._given_up: dict[str, int] = {}
        """Cancelled or timed out requests, and how many had been sent by then.

        An answer may still come, or never: each accounts for one answer that cannot be read, until
        a request that was sent later is answered.
        """
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
        self._notifications += isinstance(message, JSONRPCNotification)
        if isinstance(message, JSONRPCRequest):
            self._open[str(message.id)] = self._count, message
            self._count += 1
            if isinstance(message.id, int):
                self._last_id = max(self._last_id, message.id)
        elif (
            isinstance(message, JSONRPCNotification)
            and message.method == "notifications/cancelled"
            and (name := str(member(message.params, "requestId"))) in self._open
        ):
            del self._open[name]
            self._ending.pop(name, None)
            self._given_up[name] = self._count

    def note_received(self, message: Any) -> bool:
        """Record an answer. Return whether the SDK can read the message."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return True
        error = message.error if isinstance(message, JSONRPCError) else None
        words = error.message if error is not None else UNREADABLE
        if message.id is None:
            if error is not None and error.code == METHOD_NOT_FOUND and self._notifications:
                self._notifications -= 1
                return False
            guess = member(error and error.data, ANSWERS)
            if str(guess) in self._open:
                self._end_soon(str(guess), words)
            else:
                self._note_unread(guess, words)
            return False
        name = str(message.id)
        if (answered := self._open.pop(name, None)) is None:
            self._note_unread(message.id, words)
        else:
            self._ending.pop(name, None)
            given_up = self._given_up.items()
            self._given_up = {one: count for one, count in given_up if count > answered[0]}
            self._end_candidates()
        return True

    def _note_unread(self, number: Any, words: str) -> None:
        """End the only request that this can answer, unless a better answer arrives."""
        if self._given_up.pop(str(number), None) is not None:
            return
        if isinstance(number, int) and 0 <= number <= self._last_id:
            return  # It is a second answer.
        if self._given_up:
            del self._given_up[next(iter(self._given_up))]
            return
        self._unread.append(words)
        # A stream of changes is answered when it ends.
        self._candidates = [
            name for name, (_, one) in self._open.items() if one.method != "subscriptions/listen"
        ]
        self._end_candidates()

    def _end_candidates(self) -> None:
        """End the candidate requests, if there are no more of them than of such answers."""
        left = [one for one in self._candidates if one in self._open and one not in self._ending]
        if len(left) <= len(self._unread):
            for name in left:
                self._end_soon(name, self._unread[-1])
            self._candidates, self._unread = [], []

    def _end_soon(self, name: str, words: str) -> None:
        self._ending.setdefault(name, (anyio.current_time() + GRACE, words))

    def patience(self) -> AbstractContextManager[anyio.CancelScope | None]:
        """Return a block that lasts until the next deadline; without limit if there is none."""
        if not self._ending:
            return nullcontext()
        return anyio.CancelScope(deadline=min(when for when, _ in self._ending.values()))

    def end_next(self) -> JSONRPCError:
        """End the request whose deadline has passed. Return the error that answers it."""
        name = next(iter(self._ending))
        _, words = self._ending.pop(name)
        _, request = self._open.pop(name)
        error = ErrorData(code=INTERNAL_ERROR, message=with_doubt(words))
        return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)


class _Stream:
    """One of the two streams of a transport."""

    def __init__(self, stream: Any, requests: _Requests) -> None:
        self._stream, self._requests = stream, requests

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class _Answers(_Stream):
    """The messages of the server, with errors in place of some."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while True:
            with self._requests.patience() as waiting:
                received = await self._stream.__anext__()
                if self._requests.note_received(getattr(received, "message", None)):
                    return received
            if waiting is not None and waiting.cancelled_caught:
                return SessionMessage(self._requests.end_next())


class _Sent(_Stream):
    """The messages to the server."""

    async def send(self, sent: SessionMessage) -> None:
        """Send a message."""
        self._requests.note_sent(sent.message)
        await self._stream.send(sent)
