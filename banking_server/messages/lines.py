"""A client over stdio, which sends a message on each line."""

import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, Final

import anyio
import anyio.to_thread
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

from banking_server.messages.reading import MAX_BYTES, Refusal, id_of, read, too_long
from banking_server.messages.sdk import SessionMessage

_END: Final = 1024
"""So many bytes at the end of a line that is too long are looked at."""


@asynccontextmanager
async def client_on_stdio(
    most_bytes: int = MAX_BYTES, hear: Callable[[dict[str, Any]], object] = bool
) -> AsyncIterator[tuple[Any, Any]]:
    """Give what the client says on standard input, and the way to it, until the input ends.

    The SDK writes the lines. It does not read them: it would keep a line whole however long it is,
    and say nothing to one that it cannot read. A line of more than `most_bytes` is refused.
    `hear` is given each message first, and may change it.
    """
    nothing = anyio.wrap_file(io.StringIO())
    async with (
        stdio_server(stdin=nothing) as (unused, outgoing),
        unused,
        anyio.create_task_group() as reading,
    ):
        incoming, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        reading.start_soon(_read_lines, sys.stdin.buffer, incoming, outgoing, most_bytes, hear)
        yield messages, outgoing


async def _read_lines(
    lines: BinaryIO,
    incoming: Any,
    outgoing: Any,
    most_bytes: int,
    hear: Callable[[dict[str, Any]], object],
) -> None:
    """Hand on each message, and answer what is none, until the lines end."""

    async def next_line(most: int) -> bytes:
        return await anyio.to_thread.run_sync(lines.readline, most)

    async with incoming:
        while line := await next_line(most_bytes + 1):
            if len(line) > most_bytes and not line.endswith(b"\n"):
                beginning, end = line, line[-_END:]
                while line and not line.endswith(b"\n"):
                    line = await next_line(most_bytes)
                    end = (end + line)[-_END:]
                found: dict[str, Any] | Refusal = too_long(
                    beginning, end if line else b"", most_bytes
                )
            elif line.isspace():
                continue
            else:
                found = read(line)
            if not isinstance(found, Refusal):
                hear(found)
                await incoming.send(SessionMessage(_message(found)))
            elif found.is_answer:
                await incoming.send(SessionMessage(_error_of(found)))
            elif found.owed:
                await outgoing.send(SessionMessage(_error_of(found)))


def _error_of(refusal: Refusal) -> JSONRPCError:
    """Return the error that answers what was sent, or that takes an answer's place."""
    refused = ErrorData(code=refusal.code, message=refusal.message)
    return JSONRPCError(jsonrpc="2.0", id=refusal.request_id, error=refused)


def _message(found: dict[str, Any]) -> Any:
    """Return a message as the SDK has it."""
    if "method" in found:
        return (JSONRPCRequest if "id" in found else JSONRPCNotification).model_validate(found)
    try:
        return jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError:
        # Dropped, it would leave the question open, and the call that asked it.
        words = "The answer to a question was none."
        return _error_of(Refusal(INVALID_REQUEST, words, id_of(found)))
