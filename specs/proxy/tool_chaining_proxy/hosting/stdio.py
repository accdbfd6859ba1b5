"""A client over stdio, with an error response to a line that the SDK cannot read.

The SDK ignores a line that is not a JSON-RPC message, and its sender would wait for ever. JSON-RPC
requires an error whose id is null (`specs/upstream/README.md`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


@asynccontextmanager
async def client_on_stdio() -> AsyncIterator[tuple[Any, Any]]:
    """Return the stream of the client's messages, and the stream to it, until the input ends."""
    async with stdio_server() as (lines, outgoing), anyio.create_task_group() as reading:
        incoming, messages = anyio.create_memory_object_stream[SessionMessage]()

        async def read() -> None:
            async with incoming:
                async for line in lines:
                    if isinstance(line, Exception):
                        await outgoing.send(SessionMessage(_refusal(line)))
                    else:
                        await incoming.send(line)

        reading.start_soon(read)
        yield messages, outgoing


def _refusal(error: Exception) -> JSONRPCError:
    """Return the error response to a line that could not be read. It does not repeat the line."""
    is_json = isinstance(error, ValidationError) and error.errors()[0]["type"] != "json_invalid"
    if not is_json:
        code, words = PARSE_ERROR, "The line is not JSON."
    else:
        code, words = INVALID_REQUEST, "The line is not a JSON-RPC message of MCP."
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=words))
