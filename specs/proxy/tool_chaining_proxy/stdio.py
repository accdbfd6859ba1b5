"""The proxy as a program that a client starts: one user, over stdin and stdout."""

import os
import signal
from typing import Any, Final

import anyio
from mcp.types import JSONRPCRequest

from tool_chaining_proxy.hosting.operator import finish_writing
from tool_chaining_proxy.hosting.stdio import client_on_stdio
from tool_chaining_proxy.link import OneUser
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.sdk import SessionMessage
from tool_chaining_proxy.server import proxy_server

AHEAD: Final = 100
"""The most messages that are read before the earlier ones are handled."""

FINISHING_SECONDS: Final = 30.0
"""Seconds that running requests may take after the end of the input."""

ENDING_SECONDS: Final = 5.0
"""Seconds that the server has to end after a signal."""

WRITING: Final = 0.3
"""Seconds after that to answer the requests that it cut off."""


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until the connection ends or a signal arrives."""
    async with anyio.create_task_group() as tasks:
        links = OneUser(options, tasks)
        tasks.start_soon(_end_on_signal, links)
        async with client_on_stdio(FINISHING_SECONDS) as (read, write):
            await serve_one_user(links, read, write)
        tasks.cancel_scope.cancel()


async def serve_one_user(links: OneUser, read: Any, write: Any) -> None:
    """Serve the client on the streams until it ends them, and then end its requests.

    The SDK reads the client's revision from the first request, even if it refuses that request. A
    client of both revisions asks for 2026-07-28, and then falls back to `initialize`: a new SDK
    server gets that. The SDK also reads no further message before `initialize` is answered. The
    answer waits for the server behind the proxy, so the messages are read ahead.
    """
    server = proxy_server(links.of)
    options = server.create_initialization_options()
    ahead = None
    async with write, anyio.create_task_group() as serving:
        async for message in read:
            if ahead is None or _is_initialize(message):
                if ahead is not None:
                    await ahead.aclose()
                ahead, incoming = anyio.create_memory_object_stream[Any](AHEAD)
                serving.start_soon(server.run, incoming, write.clone(), options)
            await ahead.send(message)
        if ahead is not None:
            await ahead.aclose()
    await links.close()


def _is_initialize(message: Any) -> bool:
    request = message.message if isinstance(message, SessionMessage) else None
    return isinstance(request, JSONRPCRequest) and request.method == "initialize"


async def _end_on_signal(links: OneUser) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            with anyio.move_on_after(ENDING_SECONDS):
                await links.close()
            await anyio.sleep(WRITING)
            finish_writing()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)
