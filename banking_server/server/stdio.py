"""The server over stdio: one customer's client, which sends a message on each line."""

import io
import sys
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from banking_server.server.messages import MAX_BYTES, Refusal, id_of, read, too_long
from banking_server.server.sdk import SessionMessage, serve_streams


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve the client on standard input and output, until the input ends.

    The SDK writes the lines. It does not read them: it would keep a line whole however long it is,
    and say nothing to one that it cannot read.
    """
    nothing = anyio.wrap_file(io.StringIO())
    async with (
        stdio_server(stdin=nothing) as (unused, outgoing),
        unused,
        anyio.create_task_group() as reading,
    ):
        incoming, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        reading.start_soon(_read_lines, sys.stdin.buffer, incoming, outgoing)
        await serve_streams(server, messages, outgoing)


async def _read_lines(lines: BinaryIO, incoming: Any, outgoing: Any) -> None:
    """Hand on each message, and answer what is none, until the lines end."""

    async def next_line(most: int) -> bytes:
        return await anyio.to_thread.run_sync(lines.readline, most)

    async with incoming:
        while line := await next_line(MAX_BYTES + 1):
            if len(line) > MAX_BYTES and not line.endswith(b"\n"):
                found: dict[str, Any] | Refusal = too_long(line)
                while line and not line.endswith(b"\n"):
                    line = await next_line(MAX_BYTES)
            elif line.isspace():
                continue
            else:
                found = read(line)
            if not isinstance(found, Refusal):
                await incoming.send(SessionMessage(_message(found)))
            elif found.owed:
                refused = ErrorData(code=found.code, message=found.message)
                error = JSONRPCError(jsonrpc="2.0", id=found.request_id, error=refused)
                await outgoing.send(SessionMessage(error))


def _message(found: dict[str, Any]) -> Any:
    """Return a message as the SDK has it."""
    if "method" in found:
        return (JSONRPCRequest if "id" in found else JSONRPCNotification).model_validate(found)
    try:
        return jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError:
        # Dropped, it would leave the question open, and the call that asked it.
        refused = ErrorData(code=INVALID_REQUEST, message="The answer to a question was none.")
        return JSONRPCError(jsonrpc="2.0", id=id_of(found), error=refused)
