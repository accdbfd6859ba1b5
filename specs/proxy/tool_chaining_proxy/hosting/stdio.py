"""A client over stdio. Each of its messages with an id gets an answer with that id.

The SDK drops a line that it cannot read, and takes a request whose id is 1.5 or null for a
notification. When the input ends, it cancels running requests. Here they can finish first.
"""

import json
import os
import sys
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from queue import Full, Queue
from threading import Semaphore, Thread
from typing import Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import BaseModel

from tool_chaining_proxy.hosting.reading import whole

AHEAD: Final = 100
"""The most lines that are read before they are handled, or that wait to be written."""

_UNFINISHED: Final = (
    "The input ended, and the request did not finish within {:g} s. Whether it took effect is not "
    "known."
)


@asynccontextmanager
async def client_on_stdio(finish: float) -> AsyncIterator[tuple[Any, Any]]:
    """Return the stream of the client's messages, and the stream to it.

    The first one ends when the input has ended and each request is answered, after `finish` seconds
    with an error. A question to the client is then answered with an error at once.
    """
    async with _Output() as out, anyio.create_task_group() as tasks:
        client = _Client(out, tasks.start_soon, finish)
        yield client, client


class _Answer(BaseModel):
    """An answer whose id is any JSON value."""

    jsonrpc: str
    id: Any
    result: Any = None
    error: Any = None


class _Client:
    """The client's requests that are not answered, and the questions to it: both streams in one."""

    def __init__(self, out: "_Output", start_soon: Callable[..., object], finish: float) -> None:
        self._out, self._start_soon, self._finish = out, start_soon, finish
        self._sent, self._received = anyio.create_memory_object_stream[bytes | SessionMessage](inf)
        """Lines of the input, "" at its end; answers to questions that nobody can answer."""
        self._room = Semaphore(AHEAD)
        self._open: dict[Any, Any] = {}
        """The client's id of each open request, by the id that the SDK knows."""
        self._endless: set[Any] = set()
        """Those of them that end with the connection."""
        self._questions: set[Any] = set()
        self._renamed = 0
        self._ended = False
        self._answered = anyio.Event()
        Thread(target=self._read, args=[get_running_loop()], daemon=True).start()

    def _read(self, loop: AbstractEventLoop) -> None:
        """Read the input, in a thread."""
        with suppress(RuntimeError):  # The loop has ended.
            for line in sys.stdin.buffer:
                self._room.acquire()
                loop.call_soon_threadsafe(self._sent.send_nowait, line)
            loop.call_soon_threadsafe(self._sent.send_nowait, b"")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: other servers may use the streams."""

    async def aclose(self) -> None:
        """Do nothing, as `__aexit__`."""

    def clone(self) -> Self:
        """Return this stream."""
        return self

    # --- from the client --------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            received = await self._received.__anext__()
            if isinstance(received, SessionMessage):
                return received
            if not received:
                self._ended = True
                self._start_soon(self._end)
                continue
            self._room.release()
            text = received.decode(errors="replace").strip("\ufeff \t\r\n")
            if text and (message := await self._message(text)):
                return message

    async def _message(self, text: str) -> SessionMessage | None:
        """Return a line as a message. Answer one that cannot be read."""
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            await self._refuse(None, PARSE_ERROR, "The line is not JSON.")
            return None
        number = whole(value.get("id")) if isinstance(value, dict) else None
        plain = type(number) in (int, str) and number not in self._open
        if isinstance(value, dict) and {"id", "method"} <= value.keys() and not plain:
            self._renamed += 1
            value["id"] = f"renamed-{self._renamed}"
            text = json.dumps(value)
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            if isinstance(value, dict) and {"result", "error"} & value.keys():
                number = None  # The id of an answer is not the client's.
            words = "The line is not a JSON-RPC message of MCP."
            await self._refuse(number, INVALID_REQUEST, words)
            return None
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] = number
            if message.method == "subscriptions/listen":
                self._endless.add(message.id)
        elif isinstance(message, JSONRPCNotification):
            self._note_cancelled(message)
        else:
            self._questions.discard(message.id)
        return SessionMessage(message)

    def _note_cancelled(self, message: JSONRPCNotification) -> None:
        params = message.params or {}
        if message.method == "notifications/cancelled" and "requestId" in params:
            for known, own in self._open.items():
                if own == params["requestId"]:
                    params["requestId"] = known
                    del self._open[known]
                    return

    async def _end(self) -> None:
        """Wait until everything is answered, then end the stream of messages."""
        for number in self._questions:
            self._refuse_question(number)
        with anyio.move_on_after(self._finish):
            while self._open.keys() - self._endless:
                await self._answered.wait()
                self._answered = anyio.Event()
        for number in [*self._open.keys() - self._endless]:
            words = _UNFINISHED.format(self._finish)
            error = ErrorData(code=CONNECTION_CLOSED, message=words)
            await self._answer(self._open.pop(number), error=error)
        self._sent.close()

    # --- to the client ----------------------------------------------------------------------------

    async def send(self, sent: SessionMessage) -> None:
        """Write a message to the client: an answer with the client's own id."""
        message = sent.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id not in self._open:
                return  # The client has cancelled it, or knows that it did not finish.
            own = self._open.pop(message.id)
            if isinstance(message, JSONRPCError):
                await self._answer(own, error=message.error)
            else:
                await self._answer(own, result=message.result)
            self._answered.set()
        elif isinstance(message, JSONRPCRequest) and self._ended:
            self._refuse_question(message.id)
        else:
            if isinstance(message, JSONRPCRequest):
                self._questions.add(message.id)
            await self._out.send(message)

    async def _refuse(self, number: Any, code: int, words: str) -> None:
        """Answer a line that cannot be read. The error does not repeat the line."""
        await self._answer(number, error=ErrorData(code=code, message=words))

    async def _answer(self, number: Any, **members: Any) -> None:
        answer: Any = _Answer(jsonrpc="2.0", id=number, **members)
        await self._out.send(answer)

    def _refuse_question(self, number: Any) -> None:
        words = "The input has ended, so nobody can answer."
        error = ErrorData(code=INVALID_REQUEST, message=words)
        answer = JSONRPCError(jsonrpc="2.0", id=number, error=error)
        with suppress(anyio.ClosedResourceError):
            self._sent.send_nowait(SessionMessage(answer))


class _Output:
    """Standard output, written by a thread: the SDK takes two for each line.

    Other output of this process or its children goes to standard error, not into the protocol.
    """

    async def __aenter__(self) -> Self:
        sys.stdout.flush()
        self._file = os.dup(1)
        os.dup2(2, 1)
        self._waiting = Queue[bytes | None](AHEAD)
        self._thread = Thread(target=self._write, daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await anyio.to_thread.run_sync(self._waiting.put, None)
        await anyio.to_thread.run_sync(self._thread.join)
        os.dup2(self._file, 1)

    async def send(self, message: BaseModel) -> None:
        """Write a message soon. Wait while the client does not read."""
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        line = text.encode() + b"\n"
        try:
            self._waiting.put_nowait(line)
        except Full:
            await anyio.to_thread.run_sync(self._waiting.put, line)

    def _write(self) -> None:
        while rest := self._waiting.get():
            with suppress(OSError):  # The client is gone, and its input ends too.
                while rest:
                    rest = rest[os.write(self._file, rest) :]
