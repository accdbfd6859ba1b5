"""The server over standard input and output, which answers every request before it ends.

Scripts and smoke tests end their input at once: `printf '...' | banking-server`.
"""

from typing import Any, Final

from mcp.server import MCPServer

from banking_server.server.sdk import run_server
from tool_chaining_proxy.hosting.stdio import client_on_stdio

FINISHING_SECONDS: Final = 5.0
"""Seconds that running requests may take after the end of the input."""


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve one client on standard input and output, until the input ends."""
    async with client_on_stdio(FINISHING_SECONDS) as (lines, client):
        await run_server(server, lines, client)
