"""Connecting to any MCP server, as a client that follows chains."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, Implementation

from banking_server import __version__
from banking_server.client.plain import LINE
from banking_server.client.timeouts import TimeoutClient
from tool_chaining import CLIENT_EXTENSION
from tool_chaining.errors import ForPeople
from tool_chaining.hosting.answers import assigned
from tool_chaining.hosting.server_errors import ServerErrors, http_failure, server_ended
from tool_chaining.hosting.untrusted import BOUNDED_LINES, MESSAGE_BYTES, ResilientHttpClient
from tool_chaining.negotiation import NEGOTIATED_FROM
from tool_chaining.text import one_line
from tool_chaining.urls import TOKEN_VARIABLE, checked_url, token_of_environment

_TIMEOUT: Final = httpx2.Timeout(30, read=300)

SECONDS: Final = 60.0
"""Seconds for a server to start and answer, and for it to list its tools."""

_OTHER_TOKEN: Final = (
    f"The server does not accept the token in {TOKEN_VARIABLE}: set it to a new one"
)
_NO_TOKEN: Final = (
    f"Set {TOKEN_VARIABLE} to a token for that server (for your own bank: `banking-server token`)"
)


def this_server(database: Path) -> StdioServerParameters:
    """Return how to start this server over stdio, for the demo's first customer, on `database`."""
    # The SDK passes hardly any environment on to the child. It needs the path to this package,
    # but must not get the settings of the person who started this.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "banking_server", "--database", str(database), "--customer", "CUST001"],
        env={"PYTHONPATH": path},
    )


class ConnectionFailed(ForPeople):
    """There is no connection to the server; the message is one line for people."""


class Failures:
    """Remembers what the SDK's errors leave out: a refusal over HTTP, or a server's output."""

    def __init__(self, *, advice: str = "", errors: ServerErrors | None = None) -> None:
        """`advice`: what to do if the server requires a token, or another one."""
        self.last: str | None = None
        self._advice = advice
        self._errors = errors

    def more_of(self, error: BaseException) -> str | None:
        """Say why a request failed, if we know more than the error says."""
        if self.last is not None:
            return f"the server answered {self.last}"
        closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        if closed and self._errors is not None:
            return server_ended(self._errors.last_line())
        return None

    def reason(self, error: BaseException) -> str:
        """Say why a connection failed, in a few words."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, FileNotFoundError):
            return "there is no such command; write the server's command after `--`"
        words = error.message if isinstance(error, MCPError) else http_failure(error)
        return self.more_of(error) or one_line(words or type(error).__name__, LINE)

    async def note(self, response: httpx2.Response) -> None:
        """Note whether a response is a refusal; an event hook of the HTTP client."""
        if response.status_code < 400:
            self.last = None
            return
        challenge = response.headers.get("www-authenticate", "")
        reason = re.search(r'error_description="([^"]*)"', challenge)
        words = f": {reason[1]}" if reason else ""
        advice = f". {self._advice}" if response.status_code == 401 else ""
        answer = one_line(f"HTTP {response.status_code} {response.reason_phrase}{words}", LINE)
        self.last = f"{answer}{advice}"


@asynccontextmanager
async def connected(
    server: str | StdioServerParameters,
    *,
    insecure: bool = False,
    elicitation: ElicitationFnT | None = None,
) -> AsyncIterator[tuple[Client, Failures]]:
    """Connect to a server by its URL, or by the command that starts it, and declare the extension.

    A URL gets the token of the environment, on this computer or over TLS, unless `insecure` is set.
    `elicitation` answers the server's questions; without it, the server cannot ask any. Raises
    ConnectionFailed, but only while connecting: a connection that breaks later fails the running
    call, and the client goes on.
    """
    failure: Exception | None = None
    errors = None
    async with AsyncExitStack() as stack:
        if isinstance(server, str):
            name, token = _checked(server, insecure=insecure)
            failures = Failures(advice=_OTHER_TOKEN if token else _NO_TOKEN)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            http = ResilientHttpClient(
                url=server,
                headers=headers,
                timeout=_TIMEOUT,
                event_hooks={"response": [failures.note]},
            )
            transport = streamable_http_client(
                server,
                http_client=await stack.enter_async_context(http),
                max_sse_event_size=MESSAGE_BYTES,
            )
        else:
            is_own = server.args[:2] == ["-m", "banking_server"]
            name = "banking-server" if is_own else server.command
            errors = _Errors()
            stack.callback(errors.close)
            failures = Failures(errors=errors)
            # Invalid UTF-8 is not a message, and must not end anything.
            readable = {"encoding": BOUNDED_LINES, "encoding_error_handler": "replace"}
            transport = assigned(stdio_client(server.model_copy(update=readable), errors.stream))
        client = TimeoutClient(
            transport,
            elicitation_callback=elicitation,
            extensions=[CLIENT_EXTENSION],
            client_info=Implementation(name="banking-server call", version=__version__),
        )
        try:
            # Not anyio's: its scopes could not end before those that the client opens in them.
            async with asyncio.timeout(SECONDS) as waiting:
                await stack.enter_async_context(client)
        except Exception as error:
            late = f"it did not answer within {SECONDS:g} s" if waiting.expired() else None
            reason = late or failures.reason(error)
            raise ConnectionFailed(f"Cannot talk to {name}: {reason}") from error
        if errors and errors.complains and client.protocol_version < NEGOTIATED_FROM:
            sys.stderr.write(
                "The server's errors about server/discover are harmless: it does not know MCP "
                f"{NEGOTIATED_FROM}, and is called by {client.protocol_version}.\n"
            )
        try:
            yield client, failures
        except Exception as error:
            failure = error
    if failure is not None:
        # Raised here, since the client's task groups would wrap it.
        raise failure


class _Errors(ServerErrors):
    """The standard error of a server, shown on ours, each line marked as the server's."""

    def __init__(self) -> None:
        self.complains = False
        """Whether it wrote about `server/discover`, of a revision that it may not know."""
        super().__init__(self._show)

    def _show(self, line: str) -> None:
        self.complains = self.complains or "server/discover" in line
        sys.stderr.write(f"[server] {one_line(line)}\n")


def _checked(url: str, *, insecure: bool) -> tuple[str, str | None]:
    """Return a URL as it may be shown, and the token for it.

    Raises ConnectionFailed if the token may not go there.
    """
    try:
        token = token_of_environment()
        return checked_url(url, has_secret=token is not None, insecure=insecure), token
    except ValueError as error:
        raise ConnectionFailed(str(error)) from None
