"""HTTP for a client of the SDK: a connection that breaks fails one call, and not the client.

The SDK's Streamable HTTP transport ends, and cancels whoever entered it, when a connection breaks
before the whole answer to a request is there. A chain could then not say what it has done
(TC-C-25). `SteadyHttpClient` lets the call raise instead, and the client go on::

    http = SteadyHttpClient(timeout=httpx2.Timeout(30, read=300))
    transport = streamable_http_client(url, http_client=http)
    async with http, mcp.Client(transport, extensions=[CLIENT_EXTENSION]) as client:
        ...

Nothing is sent again. No answer is read beyond `MESSAGE_BYTES`, and none that is compressed: it
could become anything. The events of a stream are bounded by the transport (`max_sse_event_size`).
"""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
from mcp_types import CONNECTION_CLOSED

from banking_server.chaining.message_size import COMPRESSED, MESSAGE_BYTES, TOO_LARGE

_CONNECTING: Final = ("server/discover", "initialize")


class SteadyHttpClient(httpx2.AsyncClient):
    """An HTTP client whose MCP requests are answered with an error if their connection breaks.

    The same holds for a time limit of HTTP's own. While the MCP client connects, what goes wrong
    is raised as ever.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, as `httpx2.AsyncClient` does; a POST raises no `TransportError`."""
        request.headers["Accept-Encoding"] = "identity"
        steady = request.method == "POST" and _method(request) not in _CONNECTING
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if not steady:
                raise
            problem = {"code": CONNECTION_CLOSED, "message": _in_words(error)}
            return httpx2.Response(
                502, json={"jsonrpc": "2.0", "id": None, "error": problem}, request=request
            )
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Body(response.stream, response.headers, steady=steady)
        return response


class _Body(httpx2.AsyncByteStream):
    """The body of an answer: bounded, unless it is a stream.

    What is wrong with it is raised as what the SDK's transport can deal with; so is, if it is
    `steady`, that it breaks off.
    """

    def __init__(
        self, body: httpx2.AsyncByteStream, headers: httpx2.Headers, *, steady: bool
    ) -> None:
        self._body = body
        self._compressed = headers.get("content-encoding", "identity").strip().lower() != "identity"
        self._bounded = not headers.get("content-type", "").startswith("text/event-stream")
        self._steady = steady

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._compressed:
            raise httpx2.StreamError(COMPRESSED)
        size = 0
        try:
            async for part in self._body:
                size += len(part)
                if self._bounded and size > MESSAGE_BYTES:
                    raise httpx2.StreamError(TOO_LARGE)
                yield part
        except httpx2.TransportError as error:
            if not self._steady:
                raise
            raise httpx2.StreamError(_in_words(error)) from error

    async def aclose(self) -> None:
        await self._body.aclose()


def _method(request: httpx2.Request) -> object:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    return message.get("method") if isinstance(message, dict) else None


def _in_words(error: httpx2.TransportError) -> str:
    # What could not be sent is quoted in such a text, and may be a token.
    quotes = isinstance(error, httpx2.LocalProtocolError)
    reason = type(error).__name__ if quotes else str(error) or type(error).__name__
    return f"the connection failed before the whole answer was there: {reason}"
