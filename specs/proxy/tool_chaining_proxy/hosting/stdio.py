"""A client over stdio. Each of its messages with an id gets an answer with that id.

The SDK drops a line that it cannot read, and takes a request whose id is 1.5 or null for a
notification. When the input ends, it cancels what is running. Here that can finish first.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server.stdio import stdio_server
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
    nothing: Any = _nothing()
    async with stdio_server(nothing) as (_, out), anyio.create_task_group() as tasks:
        client = _Client(out, finish)
        tasks.start_soon(client.read)
        tasks.start_soon(client.write)
        yield client.messages, client.answers


class _Answer(BaseModel):
    """An answer whose id is any JSON value."""

    jsonrpc: str
    id: Any
    result: Any = None
    error: Any = None


class _Client:
    """The client's requests that are not answered, and the questions to it."""

    def __init__(self, out: Any, finish: float) -> None:
        self._out, self._finish = out, finish
        self._incoming, self.messages = anyio.create_memory_object_stream[SessionMessage]()
        self.answers, self._outgoing = anyio.create_memory_object_stream[SessionMessage]()
        self._open: dict[Any, Any] = {}
        """The client's id of each open request, by the id that the SDK knows."""
        self._endless: set[Any] = set()
        """Those of them that end with the connection."""
        self._questions: set[Any] = set()
        self._renamed = 0
        self._ended = False
        self._answered = anyio.Event()

    async def read(self) -> None:
        """Read the input, and then wait for the answers."""
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        async with self._incoming:
            async for line in anyio.wrap_file(sys.stdin):
                if text := line.strip("\ufeff \t\r\n"):
                    await self._take(text)
            self._ended = True
            for number in [*self._questions]:
                await self._refuse_question(number)
            with anyio.move_on_after(self._finish):
                while self._open.keys() - self._endless:
                    await self._answered.wait()
                    self._answered = anyio.Event()
            for number in [*self._open.keys() - self._endless]:
                words = _UNFINISHED.format(self._finish)
                error = ErrorData(code=CONNECTION_CLOSED, message=words)
                await self._answer(self._open.pop(number), error=error)

    async def _take(self, text: str) -> None:
        """Pass a line on as a message, or answer what cannot be read."""
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return await self._refuse(None, PARSE_ERROR, "The line is not JSON.")
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
            return await self._refuse(number, INVALID_REQUEST, words)
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] = number
            if message.method == "subscriptions/listen":
                self._endless.add(message.id)
        elif isinstance(message, JSONRPCNotification):
            self._note_cancelled(message)
        else:
            self._questions.discard(message.id)
        await self._incoming.send(SessionMessage(message))

    def _note_cancelled(self, message: JSONRPCNotification) -> None:
        params = message.params or {}
        if message.method == "notifications/cancelled" and "requestId" in params:
            for known, own in self._open.items():
                if own == params["requestId"]:
                    params["requestId"] = known
                    del self._open[known]
                    return

    async def write(self) -> None:
        """Write what goes to the client: each answer with the client's own id."""
        async with self._out, self._outgoing:
            async for sent in self._outgoing:
                message = sent.message
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    if message.id not in self._open:
                        continue  # The client has cancelled it, or knows that it did not finish.
                    own = self._open.pop(message.id)
                    if isinstance(message, JSONRPCError):
                        await self._answer(own, error=message.error)
                    else:
                        await self._answer(own, result=message.result)
                    self._answered.set()
                elif isinstance(message, JSONRPCRequest) and self._ended:
                    await self._refuse_question(message.id)
                else:
                    if isinstance(message, JSONRPCRequest):
                        self._questions.add(message.id)
                    await self._out.send(sent)

    async def _refuse(self, number: Any, code: int, words: str) -> None:
        """Answer a line that cannot be read. The error does not repeat the line."""
        await self._answer(number, error=ErrorData(code=code, message=words))

    async def _answer(self, number: Any, **members: Any) -> None:
        answer: Any = _Answer(jsonrpc="2.0", id=number, **members)
        await self._out.send(SessionMessage(answer))

    async def _refuse_question(self, number: Any) -> None:
        words = "The input has ended, so nobody can answer."
        error = ErrorData(code=INVALID_REQUEST, message=words)
        answer = JSONRPCError(jsonrpc="2.0", id=number, error=error)
        await self._incoming.send(SessionMessage(answer))


async def _nothing() -> AsyncIterator[str]:
    """Give the SDK no lines: they are read here."""
    return
    yield
