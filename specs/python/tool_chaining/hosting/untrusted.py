"""For clients of the SDK: limits on what is read, and broken connections.

The SDK has no limit on the length of a response, of an event or of a line. So a server could send
an endless message, and its client would run out of memory. Over HTTP,
`ResilientHttpClient` reads at most `MESSAGE_BYTES` of a response, by `reading`::

    http = ResilientHttpClient(timeout=httpx2.Timeout(30, read=300))
    transport = streamable_http_client(url, http_client=http, max_sse_event_size=MESSAGE_BYTES)
    async with http, mcp.Client(transport, extensions=[CLIENT_EXTENSION]) as client:
        ...

Over stdio, the SDK reads with a configurable encoding. `BOUNDED_LINES` is UTF-8 with the same
limit on a line::

    StdioServerParameters(command="some-server", encoding=BOUNDED_LINES)

`answers` limits how many requests of its own a server has open.

If a connection breaks before the whole response has arrived, the SDK's HTTP transport ends and
cancels the task that opened it. The steps of a chain would be lost (TC-C-24). With this HTTP client
only the call raises, and the MCP client continues. Nothing is sent again.
"""

import codecs
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED

from tool_chaining.errors import ForPeople
from tool_chaining.hosting.reading import answer_in, read_answer, read_messages
from tool_chaining.hosting.refused import note_status
from tool_chaining.urls import is_loopback

MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message of a server that is read, in bytes: 4 MiB."""

TOO_LARGE: Final = (
    f"The server sent a message of more than {MESSAGE_BYTES // 1024**2} MiB, which was not read."
)

COMPRESSED: Final = "The server sent a compressed message, though the client accepts none."

CONNECTION_BROKE: Final = "the connection failed before the whole response had arrived"
"""The beginning of the error message of a call whose connection broke."""

BOUNDED_LINES: Final = "utf_8_bounded_lines"
"""The encoding for a server over stdio, with a limit on the length of a message."""

_CONNECTING: Final = ("server/discover", "initialize")
_COMPRESSIONS: Final = {"gzip", "x-gzip", "deflate", "br", "zstd"}
RECEIVED: Final = 30.0
"""Seconds until a notification or an answer of ours counts as received without a response."""
_END_SESSION: Final = 5.0
"""Seconds that a server may take to answer the end of a session."""
_PROXIES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")


class ResilientHttpClient(httpx2.AsyncClient):
    """An HTTP client that reads at most `MESSAGE_BYTES` of a response, or of one event.

    A longer or compressed one raises while it is read: `httpx2.StreamError`, or `httpx2.SSEError`
    in a stream of events. If the connection of an MCP request breaks or times out, the request gets
    an error response. All other requests, and those that connect an MCP client, raise as usual.
    """

    def __init__(self, *, url: str = "", **options: Any) -> None:
        """`options` are those of `httpx2.AsyncClient`; no redirect is followed. The SDK's transport
        itself follows 307 and 308 to the same origin.

        A proxy from the environment is used for https only, since it could read unencrypted
        requests, and never for a server on this computer. `url` is the server's.

        Raises `ForPeople` if the environment names a proxy that cannot be used.
        """
        parts = urlsplit(url)
        if parts.scheme == "http" or is_loopback(parts.hostname or ""):
            options = {"transport": httpx2.AsyncHTTPTransport(), **options}
        try:
            super().__init__(**{"mounts": {"http://": None}, **options, "follow_redirects": False})
        except (ValueError, ImportError, httpx2.InvalidURL):
            # The message could quote the proxy's password.
            named = [name for name in os.environ if name.upper() in _PROXIES and os.environ[name]]
            raise ForPeople(
                f"{' or '.join(named) or 'the environment'} names a proxy that cannot be used here."
                " Use an http or https proxy, or unset the variable."
            ) from None

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, as `httpx2.AsyncClient` does; few MCP requests raise `TransportError`.

        The SDK sends nothing else until a notification is answered. It counts as received after
        `RECEIVED` seconds.
        Raises `TimeoutError` if the server takes too long to end a session.
        """
        # The size of a compressed response is not known in advance.
        request.headers["Accept-Encoding"] = "identity"
        options["follow_redirects"] = False
        message = _message(request)
        method = message.get("method")
        resilient = method is not None and method not in _CONNECTING
        if method == "tools/call":
            note_status(None)
        limit = _END_SESSION if request.method == "DELETE" else None
        if "jsonrpc" in message and not message.keys() >= {"id", "method"}:
            limit = RECEIVED
        try:
            with anyio.fail_after(limit):
                response = await super().send(request, stream=True, **options)
        except TimeoutError:
            if limit != RECEIVED:
                raise
            return httpx2.Response(202, request=request)
        except httpx2.TransportError as error:
            if not resilient:
                raise
            problem = {"code": CONNECTION_CLOSED, "message": _description(error)}
            return httpx2.Response(
                502, json={"jsonrpc": "2.0", "id": None, "error": problem}, request=request
            )
        if method == "tools/call":
            note_status(response.status_code)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Body(response, message, resilient=resilient)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response


class Body(httpx2.AsyncByteStream):
    """The body of a response, which raises if it is too long or compressed.

    A message of an MCP server in it is as `read_messages` reads it.
    """

    def __init__(self, response: httpx2.Response, message: Any, *, resilient: bool) -> None:
        """`message` is the one that the response answers."""
        self._body: Any = response.stream
        kind = response.headers.get("content-type", "").lower()
        self._events = kind.startswith("text/event-stream")
        encodings = response.headers.get("content-encoding", "").lower().split(",")
        self._compressed = any(one.strip() in _COMPRESSIONS for one in encodings)
        self._resilient = resilient
        of_mcp = "method" in message or response.request.method == "GET"
        self._read = (
            response.is_success
            and of_mcp
            and kind.startswith(("text/event-stream", "application/json"))
        )
        self._own = message.get("id")
        self._rest, self._after_return = bytearray(), False
        self._data: list[bytes] = []
        """The data of the current event."""
        self.ended = False
        """Whether it was read to its end. An event stream is left after the answer."""
        self.failure: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._bounded():
                if not self._read:
                    yield part
                elif self._events:
                    yield b"".join(self._lines(part))
                else:
                    self._rest += part
            if self._read and not self._events:
                yield "".join(self._messages(bytes(self._rest), alone=True)).encode()
            elif self._read:
                # Some servers end the last event with the stream.
                yield b"".join(self._lines(b"\n\n"))
            self.ended = True
        except Exception as error:
            self.failure = error
            raise

    async def _bounded(self) -> AsyncIterator[bytes]:
        length, end = 0, b""
        if self._compressed:
            raise httpx2.StreamError(COMPRESSED)
        try:
            async for part in self._body:
                length += len(part)
                if self._events:
                    # The parts of one event count together, until the event ends.
                    end = (end + part)[-len(part) - 3 :]
                    ended = max(end.rfind(sign) for sign in (b"\n\n", b"\r\r", b"\n\r\n"))
                    length = min(length, len(end) - ended) if ended >= 0 else length
                if length > MESSAGE_BYTES:
                    raise (httpx2.SSEError if self._events else httpx2.StreamError)(TOO_LARGE)
                yield part
        except httpx2.SSEError:
            raise
        except httpx2.TransportError as error:
            if not self._resilient:
                raise
            raise httpx2.StreamError(_description(error)) from error

    def _lines(self, part: bytes) -> Iterator[bytes]:
        """Give the complete lines of a stream of events, with each event's message in one line."""
        if self._after_return and part.startswith(b"\n"):
            part = part[1:]
        self._after_return = part.endswith(b"\r")
        self._rest += part
        if not (b"\n" in part or b"\r" in part):
            return
        lines, self._rest = bytes(self._rest).splitlines(keepends=True), bytearray()
        for line in lines:
            if not line.endswith((b"\n", b"\r")):
                self._rest += line
            elif line.removeprefix(codecs.BOM_UTF8).startswith(b"data:"):
                self._data.append(line.partition(b":")[2].strip(b" \r\n"))
            elif line.strip() or not self._data:
                yield line
            else:
                data, self._data = b"\n".join(self._data), []
                messages = self._messages(data, alone=False)
                yield ("".join(f"data: {one}\n\n" for one in messages) or "\n").encode()

    def _messages(self, raw: bytes, *, alone: bool) -> list[str]:
        """Return the messages in a body or an event; a body has one `alone`."""
        if self._own is not None:
            return read_answer(raw, self._own, alone=alone)
        return read_messages(raw)[: 1 if alone else None]

    async def aclose(self) -> None:
        """Close the body, read or not."""
        await self._body.aclose()


def _message(request: httpx2.Request) -> dict[str, Any]:
    """Return the JSON object that a request sends; an empty one if there is none."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return {}
    return message if isinstance(message, dict) else {}


def _description(error: httpx2.TransportError) -> str:
    # The message of a LocalProtocolError quotes the request, which can contain a token.
    has_secret = isinstance(error, httpx2.LocalProtocolError)
    reason = type(error).__name__ if has_secret else str(error) or type(error).__name__
    return f"{CONNECTION_BROKE}: {reason}"


_KEPT: Final = 200
"""Bytes at a long line's beginning and end that are searched for the id of its request."""


class _BoundedLines(codecs.IncrementalDecoder):
    """UTF-8 lines, each as `read_messages` reads it. One that is too long becomes an error."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._line, self._size, self._beginning = bytearray(), 0, b""

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        """Return the lines that are complete."""
        *ends, rest = bytes(data).split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines.append(self._ended())
        self._add(rest)
        return "".join(lines)

    def _add(self, piece: bytes) -> None:
        self._line += piece
        self._size += len(piece)
        if self._size > MESSAGE_BYTES:
            self._beginning = self._beginning or bytes(self._line[:_KEPT])
            del self._line[:-_KEPT]

    def _ended(self) -> str:
        line, too_large, beginning = bytes(self._line), self._beginning != b"", self._beginning
        self._line, self._size, self._beginning = bytearray(), 0, b""
        if not too_large:
            return "".join(f"{message}\n" for message in read_messages(line))
        error = answer_in((beginning + line).decode("utf-8", "replace").strip(), TOO_LARGE)
        return f"{error}\n" if error else ""


def _find(name: str) -> codecs.CodecInfo | None:
    if name != BOUNDED_LINES:
        return None
    utf_8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        utf_8.encode, utf_8.decode, incrementaldecoder=_BoundedLines, name=BOUNDED_LINES
    )


codecs.register(_find)
