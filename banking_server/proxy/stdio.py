"""The proxy as a program that a client starts: one user, over stdin and stdout."""

import os
import signal

import anyio
from mcp.server.stdio import stdio_server

from banking_server.proxy.link import OneUser
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.server import proxy_server


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until it ends the connection or a signal comes."""
    async with anyio.create_task_group() as tasks:
        links = OneUser(options, tasks)
        tasks.start_soon(_end_on_signal, links)
        server = proxy_server(links, parked_for=options.parked_for)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        await links.close()
        tasks.cancel_scope.cancel()


async def _end_on_signal(links: OneUser) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            await links.close()
            # A thread waits for the next line on stdin, and cannot be interrupted.
            os._exit(0)
