"""The server over standard input and output, which answers every request before it ends.

Scripts and smoke tests end their input at once: `printf '...' | banking-server`. The SDK would then
cancel the running requests. It also gives no answer to a line that it cannot read.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any, Final, Self

import anyio
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
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

from banking_server.server.sdk import SessionMessage, run_server

FINISHING_SECONDS: Final = 5.0
"""Seconds that running requests may take after the end of the input."""

_UNFINISHED: Final = (
    f"The input ended, and the request did not finish within {FINISHING_SECONDS:g} s. Whether it "
    "took effect is not known."
)


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve one client on standard input and output, until the input ends."""
    lines = _Lines(anyio.wrap_file(sys.stdin.buffer))
    async with stdio_server(stdin=lines) as (read, write):  # type: ignore[arg-type]
        client = _Client(read, write)
        lines.client = client
        await run_server(server, client, client)
        await write.aclose()


class _Lines:
    """The lines of the input that are messages. The others are answered."""

    client: "_Client"

    def __init__(self, lines: anyio.AsyncFile[bytes]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            text = line.decode(errors="replace").strip("\ufeff \t\r\n")
            refused = _refusal(text) if text else None
            if refused is not None:
                await self.client.send(SessionMessage(refused))
            elif text:
                yield text


def _refusal(text: str) -> JSONRPCError | None:
    """Return the answer to a line that is no message; the answer does not repeat it."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "The line is not JSON.")
    number = value.get("id") if isinstance(value, dict) and "method" in value else None
    # The SDK would take a request with any other id for a notification.
    readable = number is None or type(number) in (int, str)
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        readable = False
    if readable:
        return None
    if isinstance(number, str):  # Half of a surrogate pair cannot be written again.
        number = number.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    number = number if type(number) in (int, str) else None
    return _error(number, INVALID_REQUEST, "The line is not a JSON-RPC message of MCP.")


def _error(number: Any, code: int, words: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=words))


class _Client:
    """The stream from the client, and the stream to it. Requests can finish after the input."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read, self._write = read, write
        self._open: set[Any] = set()
        """The client's requests that have no answer yet, but for those that have no end."""
        self._questions: list[Any] = []
        """The server's own requests that have no answer yet."""
        self._changed = anyio.Event()
        self._given_up: set[Any] = set()
        """Requests that did not finish in time, and have their answer."""
        self._until: float | None = None
        """When the requests must have finished, after the end of the input."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing, as `aclose`."""

    async def aclose(self) -> None:
        """Do nothing: one stream must not close the other."""

    def clone(self) -> Self:
        """Return this stream."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        """Return the next message of the client."""
        async for received in self._read:
            message = received.message
            if isinstance(message, JSONRPCRequest):
                if message.method != "subscriptions/listen":
                    self._open.add(message.id)
            elif isinstance(message, JSONRPCNotification):
                if message.method == "notifications/cancelled":
                    self._open.discard((message.params or {}).get("requestId"))
            elif message.id in self._questions:
                self._questions.remove(message.id)
            return received  # type: ignore[no-any-return]
        return await self._after_the_input()

    async def _after_the_input(self) -> SessionMessage:
        """Return an error for each question. End when all requests are answered."""
        self._until = self._until or anyio.current_time() + FINISHING_SECONDS
        with anyio.CancelScope(deadline=self._until):
            while self._open:
                if self._questions:
                    words = "The input has ended, so nobody can answer."
                    return SessionMessage(_error(self._questions.pop(), INVALID_REQUEST, words))
                self._changed = anyio.Event()
                await self._changed.wait()
        for number in [*self._open]:
            await self.send(SessionMessage(_error(number, CONNECTION_CLOSED, _UNFINISHED)))
            self._given_up.add(number)
        raise StopAsyncIteration

    async def send(self, sent: SessionMessage) -> None:
        """Send a message to the client."""
        message = sent.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._given_up:
            return
        if isinstance(message, JSONRPCRequest):
            self._questions.append(message.id)
        await self._write.send(sent)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open.discard(message.id)
        self._changed.set()
