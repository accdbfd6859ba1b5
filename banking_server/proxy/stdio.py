"""The proxy as a program that a client starts: one user, over stdin and stdout."""

import os
import signal
from typing import Any, Final

import anyio
from mcp.types import JSONRPCRequest

from banking_server.proxy.link import OneUser
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.sdk import SessionMessage
from banking_server.proxy.server import proxy_server
from banking_server.stdio import client_on_stdio

AHEAD: Final = 100
"""Messages that are read before those that came earlier are dealt with."""

LAST_WORDS: Final = 1.0
"""Seconds in which a client that sends nothing more can still have its answer."""


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until it ends the connection or a signal comes."""
    async with anyio.create_task_group() as tasks:
        links = OneUser(options, tasks)
        tasks.start_soon(_end_on_signal, links)
        async with client_on_stdio() as (read, write):
            await serve_one_user(links, read, write, parked_for=options.parked_for)
        tasks.cancel_scope.cancel()


async def serve_one_user(links: OneUser, read: Any, write: Any, *, parked_for: float) -> None:
    """Serve the client on the streams, until it ends them, and end what it leaves.

    The SDK takes the first request for the client's revision, even one that it refuses. A client
    that speaks both revisions asks for 2026-07-28, and then falls back to `initialize`: that begins
    anew. The SDK also reads no further than `initialize` before it is answered; the answer waits
    for the server behind, which may never come, so the messages are read ahead.
    """
    server = proxy_server(links, parked_for=parked_for)
    options = server.create_initialization_options()
    ahead = None
    async with write, anyio.create_task_group() as ending:
        async with anyio.create_task_group() as serving:
            async for message in read:
                if ahead is None or _is_initialize(message):
                    if ahead is not None:
                        await ahead.aclose()
                    ahead, incoming = anyio.create_memory_object_stream[Any](AHEAD)
                    serving.start_soon(server.run, incoming, write.clone(), options)
                await ahead.send(message)
            if ahead is not None:
                await ahead.aclose()
            ending.start_soon(_close_soon, links)
        ending.cancel_scope.cancel()
    await links.close()


def _is_initialize(message: Any) -> bool:
    request = message.message if isinstance(message, SessionMessage) else None
    return isinstance(request, JSONRPCRequest) and request.method == "initialize"


async def _close_soon(links: OneUser) -> None:
    await anyio.sleep(LAST_WORDS)
    await links.close()


async def _end_on_signal(links: OneUser) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            await links.close()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)
