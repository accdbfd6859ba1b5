"""The proxy as a program that a client starts: one user, over stdin and stdout.

Each message with an id gets an answer with that id, whatever it is. When the input ends, the
running requests can still finish.
"""

import os
import signal
import sys
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from math import inf
from queue import Full, Queue
from threading import Semaphore, Thread
from typing import Any, Final, Self

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

from tool_chaining import Conversation
from tool_chaining_proxy.chain import answer
from tool_chaining_proxy.client_side.messages import (
    Refusal,
    answer_to,
    exchange_of,
    handshake,
    modern_request,
    read,
    written,
)
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.exchange import Channel, ClientGone, Exchange
from tool_chaining_proxy.hosting.operator import finish_writing
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.session import Session

AHEAD: Final = 100
"""The most lines that are read before they are handled, or that wait to be written."""

FINISHING_SECONDS: Final = 30.0
"""Seconds that running requests may take after the end of the input."""

ENDING_SECONDS: Final = 5.0
"""Seconds that the server has to end after a signal."""

WRITING: Final = 0.3
"""Seconds after that to answer the requests that it cut off."""

Write = Callable[[bytes], Awaitable[None]]
"""Writes a line to the client, and returns when it is written. Raises `ClientGone`."""


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until the input ends or a signal arrives."""
    with _Output() as output:
        async with anyio.create_task_group() as tasks:
            client = _Client(options, tasks, output.write)
            tasks.start_soon(_end_on_signal, client)
            await client.serve(_lines())
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(output.finish)


async def serve_lines(options: ProxyOptions, lines: AsyncIterator[bytes], write: Write) -> None:
    """Serve one client whose messages are `lines`, until they end."""
    async with anyio.create_task_group() as tasks:
        await _Client(options, tasks, write).serve(lines)
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


_NOBODY: Final = "The input has ended, so nobody can answer."


class _Client:
    """The client, and the session of its user."""

    def __init__(self, options: ProxyOptions, tasks: TaskGroup, write: Write) -> None:
        self.write = write
        self.ended = False
        """Whether the input has ended."""
        self._options, self._tasks = options, tasks
        self._session: Session | None = None
        self._conversation = Conversation()
        """It lasts as long as the process."""
        self._running: set[Exchange] = set()
        self._done = anyio.Event()

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Handle each message, until the input ends and the running requests are answered."""
        async for line in lines:
            if not line.strip(b"\xef\xbb\xbf \t\r\n"):
                continue
            try:
                self._handle(read(line))
            except Refusal as refusal:
                with suppress(ClientGone):
                    await self.write(written(answer_to(refusal.id, refusal)))
        await self._finish()

    async def close(self) -> None:
        """End the running requests, and the connection to the server."""
        if self._session is not None:
            await self._session.close()

    def _handle(self, message: Json) -> None:
        """Begin what a message asks for. Raises `Refusal`."""
        session, method = self._session, message.get("method")
        if method is None:
            if session is not None:
                session.take_answer(message)
        elif "id" in message:
            self._begin(message)
        elif session is None or method == "notifications/initialized":
            return
        elif method == "notifications/cancelled":
            session.cancel((message.get("params") or {}).get("requestId"))
        else:
            self._tasks.start_soon(session.notify, method, message.get("params"))

    def _begin(self, message: Json) -> None:
        channel, session = _Channel(self, message["id"]), self._session
        if message["method"] == "initialize":
            session = self._begin_session(handshake(message))
        elif session is None or session.declared.modern:
            if "_meta" not in (message.get("params") or {}):
                if message["method"] == "ping":
                    self._tasks.start_soon(channel.answer, {})
                    return
                words = "The first request of a connection is initialize."
                raise Refusal(message["id"], INVALID_REQUEST, words)
            declared = modern_request(message)
            session = session or self._begin_session(declared)
        if session.declared.modern and "requestState" in (message.get("params") or {}):
            try:
                session.resumed(message, channel)
            except MCPError as error:
                raise Refusal(message["id"], error.code, error.message) from None
            return
        exchange = exchange_of(message, channel, session.declared, self._options)
        self._running.add(exchange)
        self._tasks.start_soon(self._run, session, exchange)

    def _begin_session(self, declared: Declared) -> Session:
        """Begin a session; a further `initialize` ends the one before."""
        if self._session is not None:
            self._tasks.start_soon(self._session.close)
        self._session = Session(
            self._options,
            declared,
            self._tasks,
            standing=_Channel(self, None),
            conversation=self._conversation,
        )
        return self._session

    async def _run(self, session: Session, exchange: Exchange) -> None:
        try:
            with session.running(exchange):
                await exchange.run(lambda: answer(session, exchange))
        finally:
            self._running.discard(exchange)
            self._done.set()

    async def _finish(self) -> None:
        """Wait until everything is answered. A stream of changes ends with the connection."""
        self.ended = True
        if self._session is not None:
            self._session.give_up_asking(_NOBODY)
        with anyio.move_on_after(FINISHING_SECONDS):
            while self._unfinished():
                self._done = anyio.Event()
                await self._done.wait()
        words = (
            f"The input ended, and the request did not finish within {FINISHING_SECONDS:g} s. "
            "Whether it took effect is not known."
        )
        with anyio.move_on_after(WRITING):
            for exchange in self._unfinished():
                exchange.answered = True
                error = MCPError(code=CONNECTION_CLOSED, message=words)
                await self.write(written(answer_to(exchange.id, error)))
        await self.close()

    def _unfinished(self) -> list[Exchange]:
        return [
            one
            for one in self._running
            if one.method != "subscriptions/listen" and not (one.answered or one.waits)
        ]


async def _end_on_signal(client: _Client) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            with anyio.move_on_after(ENDING_SECONDS):
                await client.close()
            await anyio.sleep(WRITING)
            finish_writing()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)


async def _lines() -> AsyncIterator[bytes]:
    """Return the lines of standard input, which a thread reads."""
    room, end = Semaphore(AHEAD), b""
    sent, received = anyio.create_memory_object_stream[bytes](inf)

    def read_all(loop: AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # The loop has ended.
            for line in sys.stdin.buffer:
                room.acquire()
                loop.call_soon_threadsafe(sent.send_nowait, line)
            loop.call_soon_threadsafe(sent.send_nowait, end)

    Thread(target=read_all, args=[get_running_loop()], daemon=True).start()
    async for line in received:
        if line == end:
            return
        room.release()
        yield line


class _Output:
    """Standard output, written by a thread.

    Other output of this process or its children goes to standard error, not into the protocol.
    """

    def __enter__(self) -> Self:
        sys.stdout.flush()
        self._file = os.dup(1)
        os.dup2(2, 1)
        self._waiting = Queue[tuple[bytes, Callable[[bool], None]] | None](AHEAD)
        self._thread = Thread(target=self._write, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self._file, 1)

    def finish(self) -> None:
        """Wait until everything is written."""
        self._waiting.put(None)
        self._thread.join()

    async def write(self, line: bytes) -> None:
        """Write a line, and wait until the client could read it. Raises `ClientGone`."""
        loop, done = get_running_loop(), anyio.Event()
        outcome: list[bool] = []

        def note(written: bool) -> None:
            outcome.append(written)
            with suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(done.set)

        item = (line + b"\n", note)
        try:
            self._waiting.put_nowait(item)
        except Full:
            await anyio.to_thread.run_sync(self._waiting.put, item)
        await done.wait()
        if not outcome[0]:
            raise ClientGone

    def _write(self) -> None:
        while item := self._waiting.get():
            rest, note = item
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:  # The client is gone, and its input ends too.
                note(False)
            else:
                note(True)
