"""The proxy as a program that a client starts: one user, over stdin and stdout."""

import anyio
from mcp.server.stdio import stdio_server

from banking_server.proxy.link import OneUser
from banking_server.proxy.options import ProxyOptions
from banking_server.proxy.server import proxy_server


async def serve_stdio(options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout, until it ends the connection."""
    async with anyio.create_task_group() as tasks:
        links = OneUser(options, tasks)
        server = proxy_server(links, parked_for=options.parked_for)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        await links.close()
        tasks.cancel_scope.cancel()
