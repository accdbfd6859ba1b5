"""The proxy as a program that a client starts: one user, over stdin and stdout."""

import os
import signal
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from banking_server.proxy.link import OneUser
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.server import proxy_server
from banking_server.proxy.signals import end_when_the_terminal_is_gone
from banking_server.stdio import client_on_stdio

AHEAD: Final = 100
"""Messages that are read before those that came earlier are dealt with."""

LAST_WORDS: Final = 1.0
"""Seconds in which a client that sends nothing more can still have its answer."""


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until it ends the connection or a signal comes."""
    end_when_the_terminal_is_gone()
    async with anyio.create_task_group() as tasks:
        links = OneUser(options, tasks)
        tasks.start_soon(_end_on_signal, links)
        server = proxy_server(links, parked_for=options.parked_for)
        async with client_on_stdio() as (read, write):
            ahead, read_ahead = anyio.create_memory_object_stream[Any](AHEAD)
            tasks.start_soon(_read, read, ahead, links)
            await server.run(read_ahead, write, server.create_initialization_options())
        await links.close()
        tasks.cancel_scope.cancel()


async def _read(read: Any, ahead: MemoryObjectSendStream[Any], links: OneUser) -> None:
    """Read ahead of the SDK, and end what a client that is gone has left.

    The SDK reads no further than `initialize` before that is answered. The answer waits for the
    server behind, which may never come.
    """
    async with ahead:
        async for message in read:
            await ahead.send(message)
    await anyio.sleep(LAST_WORDS)
    await links.close()


async def _end_on_signal(links: OneUser) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            await links.close()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)
