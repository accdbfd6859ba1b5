"""The server over standard input and output, which answers all that was asked before it ends.

The SDK breaks off what is running when the input ends, though it may take effect. Scripts and smoke
tests end their input at once: `printf '...' | banking-server`.
"""

from typing import Any, Final

import anyio
from mcp.server import MCPServer
from mcp.types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from banking_server.server.sdk import SessionMessage, run_server
from tool_chaining_proxy.hosting.stdio import client_on_stdio

FINISHING_SECONDS: Final = 5
"""Seconds that running requests may take after the end of the input."""

_UNKNOWN: Final = (
    f"The input ended, and this request did not finish within {FINISHING_SECONDS} seconds. Whether "
    "it took effect is not known."
)
_NOBODY_TO_ASK: Final = "The input has ended, so nobody can answer."


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve one client on standard input and output, until the input ends."""
    async with client_on_stdio() as (lines, client), anyio.create_task_group() as pumps:
        ending = _Ending(lines, client)
        pumps.start_soon(ending.read)
        pumps.start_soon(ending.write)
        await run_server(server, ending.incoming, ending.outgoing)


class _Ending:
    """The client's messages, and the end of them only when its requests are answered."""

    def __init__(self, lines: Any, client: Any) -> None:
        self._lines, self._client = lines, client
        self._to_server, self.incoming = anyio.create_memory_object_stream[Any]()
        self.outgoing, self._from_server = anyio.create_memory_object_stream[Any]()
        self._running: set[RequestId] = set()
        """The client's requests that have no answer yet."""
        self._given_up: set[RequestId] = set()
        self._questions: set[RequestId] = set()
        """The server's requests that have no answer yet."""
        self._ended, self._answered = False, anyio.Event()

    async def read(self) -> None:
        """Pass on the client's messages. After the last one, wait for the answers."""
        async with self._to_server:
            async for line in self._lines:
                message = line.message
                if isinstance(message, JSONRPCRequest):
                    self._running.add(message.id)
                elif isinstance(message, JSONRPCNotification):
                    if message.method == "notifications/cancelled":
                        self._running.discard((message.params or {}).get("requestId", ""))
                elif message.id is not None:
                    self._questions.discard(message.id)
                await self._to_server.send(line)
            self._ended = True
            for question in self._questions:
                await self._refuse(question)
            if self._running:
                with anyio.move_on_after(FINISHING_SECONDS):
                    await self._answered.wait()
            self._given_up |= self._running
            for request in self._given_up:
                await self._client.send(_error(request, _UNKNOWN))

    async def write(self) -> None:
        """Pass on the server's messages."""
        async with self._client:
            async for sent in self._from_server:
                message = sent.message
                is_question = isinstance(message, JSONRPCRequest)
                is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
                if is_question and self._ended:
                    await self._refuse(message.id)
                elif not (is_answer and message.id in self._given_up):
                    await self._client.send(sent)
                if is_question:
                    self._questions.add(message.id)
                if is_answer:
                    self._running.discard(message.id)
                    if self._ended and not self._running:
                        self._answered.set()

    async def _refuse(self, question: RequestId) -> None:
        await self._to_server.send(_error(question, _NOBODY_TO_ASK))


def _error(request: RequestId, words: str) -> SessionMessage:
    error = ErrorData(code=CONNECTION_CLOSED, message=words)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
