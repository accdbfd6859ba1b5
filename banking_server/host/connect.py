"""Connecting to any MCP server, as a client that follows chains."""

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from banking_server import __version__
from banking_server.chaining import CLIENT_EXTENSION, SteadyHttpClient

_TIMEOUT = httpx2.Timeout(30, read=300)


def this_server(database: Path) -> StdioServerParameters:
    """Return how to start this server over stdio, for the demo's first customer, on `database`."""
    # The SDK passes hardly any environment on to the child. The way to this package must reach
    # it; the settings of the person who started this must not.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "banking_server", "--database", str(database), "--customer", "CUST001"],
        env={"PYTHONPATH": path},
    )


class ConnectionFailed(Exception):
    """There is no connection to the server; the message is one line for people."""


class HttpRefusals:
    """Remembers how the server last refused a request, since the SDK's errors do not say it."""

    def __init__(self, advice: str = "") -> None:
        """`advice`: what to do where the server wants another token, or one at all."""
        self.last: str | None = None
        self._advice = advice

    async def note(self, response: httpx2.Response) -> None:
        """Note whether a response is a refusal; an event hook of the HTTP client."""
        if response.status_code < 400:
            self.last = None
            return
        challenge = response.headers.get("www-authenticate", "")
        reason = re.search(r'error_description="([^"]*)"', challenge)
        words = f": {reason[1]}" if reason else ""
        advice = f". {self._advice}" if self._advice and response.status_code == 401 else ""
        self.last = f"HTTP {response.status_code} {response.reason_phrase}{words}{advice}"


@asynccontextmanager
async def connected(
    server: str | StdioServerParameters,
    *,
    token: str | None = None,
    token_advice: str = "",
    elicitation: ElicitationFnT | None = None,
) -> AsyncIterator[tuple[Client, HttpRefusals]]:
    """Connect to a server by its URL, or by the command that starts it, and declare the extension.

    `token` is the bearer token for a URL; `token_advice` is said where it is not accepted, or none
    was given. `elicitation` answers the server's questions; without it,
    the server is told that it cannot ask any. Raises ConnectionFailed, but only while connecting: a
    connection that breaks later fails the call that it breaks in, and the client goes on.
    """
    refusals = HttpRefusals(token_advice)
    async with AsyncExitStack() as stack:
        if isinstance(server, str):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            http = SteadyHttpClient(
                headers=headers, timeout=_TIMEOUT, event_hooks={"response": [refusals.note]}
            )
            transport = streamable_http_client(
                server, http_client=await stack.enter_async_context(http)
            )
            name = server
        else:
            transport = stdio_client(server)
            name = server.command
        client = Client(
            transport,
            elicitation_callback=elicitation,
            extensions=[CLIENT_EXTENSION],
            client_info=Implementation(name="banking-server call", version=__version__),
        )
        try:
            await stack.enter_async_context(client)
        except Exception as error:
            reason = refusals.last or _reason(error)
            raise ConnectionFailed(f"Cannot talk to {name}: {reason}") from error
        yield client, refusals


def _reason(error: BaseException) -> str:
    """Return the cause of a failure in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return error.message
    if isinstance(error, FileNotFoundError):
        return "there is no such command"
    return (str(error) or type(error).__name__).split("\n")[0]
