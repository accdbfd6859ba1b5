"""The proxy as a program that a client starts: one user, over stdin and stdout.

Each message with an id gets an answer with that id, whatever it is. When the input ends, the
running requests can still finish.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

from tool_chaining import Conversation
from tool_chaining.operator import finish_writing
from tool_chaining_proxy.chain import begin
from tool_chaining_proxy.client_side.messages import (
    Unreadable,
    answer_to,
    declared_in_handshake,
    declared_in_request,
    read,
    written,
)
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.exchange import Channel, ClientGone, Exchange
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.session import Session

FINISHING_SECONDS: Final = 30.0
"""Seconds that running requests may take after the end of the input."""

ENDING_SECONDS: Final = 5.0
"""Seconds that the server has to end after a signal."""

WRITING: Final = 0.3
"""Seconds after that to answer the requests that it cut off."""

_NOBODY: Final = "The input has ended, so nobody can answer."

Write = Callable[[bytes], Awaitable[None]]
"""Writes a line to the client, and returns when it is written. Raises `ClientGone`."""


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until the input ends or a signal arrives."""
    lines: Any = anyio.wrap_file(sys.stdin.buffer)
    with _output() as write:
        await serve_lines(options, lines, write, signals=True)


async def serve_lines(
    options: ProxyOptions, lines: AsyncIterator[bytes], write: Write, *, signals: bool = False
) -> None:
    """Serve one client whose messages are `lines`, until they end."""
    async with anyio.create_task_group() as tasks:
        client = _Client(options, tasks, write)
        if signals:
            tasks.start_soon(_end_on_signal, client)
        async for line in lines:
            await client.handle(line)
        await client.finish()
        tasks.cancel_scope.cancel()


class _Channel(Channel):
    """The client's standard input and output, for one of its requests."""

    def __init__(self, client: "_Client", number: Any) -> None:
        self._client, self._number = client, number

    @property
    def deaf(self) -> str:  # type: ignore[override]
        return _NOBODY if self._client.ended else ""

    async def send(self, message: Json) -> None:
        await self._client.write(written(message))

    async def answer(self, outcome: Json | MCPError | None) -> None:
        if outcome is not None:
            await self.send(answer_to(self._number, outcome))


class _Client:
    """The client, and the session of its user."""

    def __init__(self, options: ProxyOptions, tasks: TaskGroup, write: Write) -> None:
        self.write = write
        self.ended = False
        """Whether the input has ended."""
        self.session: Session | None = None
        self._options, self._tasks = options, tasks
        self._conversation = Conversation()
        """It lasts as long as the process."""

    async def handle(self, line: bytes) -> None:
        """Begin what a message asks for."""
        if not line.strip(b"\xef\xbb\xbf \t\r\n"):
            return
        try:
            message = read(line)
        except Unreadable as error:
            return await self._refuse(error.id, error)
        session, method, params = self.session, message.get("method"), message.get("params")
        if method is not None and "id" in message:
            try:
                self._begin(message)
            except MCPError as error:
                await self._refuse(message["id"], error)
        elif session is None or method == "notifications/initialized":
            return
        elif method is None:
            session.take_answer(message)
        elif method == "notifications/cancelled":
            session.cancel((params or {}).get("requestId"))
        else:
            self._tasks.start_soon(session.notify, method, params)

    async def _refuse(self, number: Any, error: MCPError) -> None:
        with suppress(ClientGone):
            await self.write(written(answer_to(number, error)))

    def _begin(self, message: Json) -> None:
        """Begin a request. Raises MCPError."""
        channel, session = _Channel(self, message["id"]), self.session
        if message["method"] == "initialize":
            session = self._begin_session(declared_in_handshake(message))
        elif session is None or session.declared.modern:
            if "_meta" not in (message.get("params") or {}):
                if message["method"] == "ping":
                    self._tasks.start_soon(channel.answer, {})
                    return
                words = "The first request of a connection is initialize."
                raise MCPError(code=INVALID_REQUEST, message=words)
            declared = declared_in_request(message)
            session = session or self._begin_session(declared)
        begin(session, message, channel)

    def _begin_session(self, declared: Declared) -> Session:
        """Begin a session; a further `initialize` ends the one before."""
        if self.session is not None:
            self._tasks.start_soon(self.session.close)
        standing, record = _Channel(self, None), self._conversation
        self.session = Session(
            self._options, declared, self._tasks, standing=standing, conversation=record
        )
        return self.session

    async def finish(self) -> None:
        """Wait until everything is answered. A stream of changes ends with the connection."""
        self.ended = True
        if self.session is None:
            return
        self.session.give_up_asking(_NOBODY)
        with anyio.move_on_after(FINISHING_SECONDS):
            while any(not one.waits for one in self._running()):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        words = (
            f"The input ended, and the request did not finish within {FINISHING_SECONDS:g} s. "
            "Whether it took effect is not known."
        )
        for exchange in self._running():
            if not (exchange.answered or exchange.waits):
                exchange.answered = True
                await self._refuse(exchange.id, MCPError(code=CONNECTION_CLOSED, message=words))
        await self.session.close()

    def _running(self) -> list[Exchange]:
        exchanges = self.session.exchanges if self.session is not None else []
        return [one for one in exchanges if one.method != "subscriptions/listen"]


async def _end_on_signal(client: _Client) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            with anyio.move_on_after(ENDING_SECONDS):
                if client.session is not None:
                    await client.session.close()
            await anyio.sleep(WRITING)
            finish_writing()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)


@contextmanager
def _output() -> Iterator[Write]:
    """Return what writes to standard output.

    Other output of this process or its children goes to standard error, not into the protocol.
    """
    sys.stdout.flush()
    file, lock = os.dup(1), anyio.Lock(fast_acquire=True)
    os.dup2(2, 1)

    def write_all(rest: bytes) -> None:
        while rest:
            rest = rest[os.write(file, rest) :]

    async def write(line: bytes) -> None:
        async with lock:
            try:
                await anyio.to_thread.run_sync(write_all, line + b"\n")
            except OSError:
                raise ClientGone from None

    try:
        yield write
    finally:
        os.dup2(file, 1)
