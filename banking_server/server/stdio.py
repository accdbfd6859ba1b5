"""The server over stdio: one customer's client."""

from typing import Any

from mcp.server import MCPServer

from banking_server.server.sdk import serve_streams
from banking_server.stdio import client_on_stdio


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve the client on standard input and output, until the input ends."""
    async with client_on_stdio() as (messages, outgoing):
        await serve_streams(server, messages, outgoing)
