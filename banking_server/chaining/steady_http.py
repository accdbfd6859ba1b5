"""HTTP for a client of the SDK: an answer that breaks off, or has no end, fails one call alone.

The SDK's Streamable HTTP transport ends, and cancels whoever entered it, when a connection breaks
before the whole answer to a request is there. A chain could then not say what it has done
(TC-C-25). `SteadyHttpClient` lets the call raise instead, and the client go on::

    http = SteadyHttpClient(timeout=httpx2.Timeout(30, read=300))
    transport = streamable_http_client(url, http_client=http)
    async with http, mcp.Client(transport, extensions=[CLIENT_EXTENSION]) as client:
        ...

Nothing is sent again. No answer, and no event of a stream, is read beyond what `message_size`
allows, decompressed. No redirect is followed here: the SDK follows those that stay at the server's
origin.
"""

import json
import re
import zlib
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, Final

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED

from banking_server.chaining.bearer import without_token
from banking_server.chaining.message_size import (
    COMPRESSED,
    MESSAGE_BYTES,
    NOT_THE_ANSWER,
    TOO_LARGE,
    answers,
    problem_of,
)
from banking_server.chaining.refused import note_answer

_CONNECTING: Final = ("server/discover", "initialize")

_ENDING: Final = 5.0
"""Seconds in which a server takes note of the end of a session."""

_PIECE: Final = 64 * 1024
"""Bytes that are decompressed at a time."""

_DATA: Final = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)

_END_OF_EVENT: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class BoundedHttpClient(httpx2.AsyncClient):
    """An HTTP client that reads no more of an answer than `message_size` allows.

    What is longer, or compressed by other means than gzip, raises while it is read:
    `httpx2.StreamError`, or in a stream of events `httpx2.SSEError`. In an error, the token that
    the request brought is replaced by `***`.
    """

    def __init__(self, **options: Any) -> None:
        """`options` are those of `httpx2.AsyncClient`; no redirect is followed.

        A proxy of the environment is used for https alone: another could read what is sent, also
        to this computer.
        """
        hooks = options.get("event_hooks") or {}
        hooks = {**hooks, "response": [_hide_token, *hooks.get("response", ())]}
        fixed = {"follow_redirects": False, "event_hooks": hooks}
        super().__init__(**{"mounts": {"http://": None}, **options, **fixed})

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, as `httpx2.AsyncClient` does."""
        request.headers["Accept-Encoding"] = "gzip"
        made = _message(request)
        if made.get("method") == "tools/call":
            note_answer(None)
        response = await super().send(
            request, stream=True, **{**options, "follow_redirects": False}
        )
        if isinstance(response.stream, httpx2.AsyncByteStream):
            answers_to = made.get("id") if response.is_success else None
            response.stream = _Body(
                response.stream, response.headers, answers_to, request, steady=self._steady(request)
            )
        if made.get("method") == "tools/call":
            note_answer(response.status_code)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response

    def _steady(self, request: httpx2.Request) -> bool:
        """Whether an answer that breaks off raises what the SDK's transport can deal with."""
        return False


class SteadyHttpClient(BoundedHttpClient):
    """An HTTP client whose MCP requests are answered with an error if their connection breaks.

    The same holds for a time limit of HTTP's own. While the MCP client connects, what goes wrong
    is raised as ever.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, as `httpx2.AsyncClient` does; a POST raises no `TransportError`.

        The end of a session is told in some seconds, or not at all: that raises `TimeoutError`.
        """
        if request.method == "DELETE":
            with anyio.fail_after(_ENDING):
                return await super().send(request, **{**options, "stream": False})
        try:
            return await super().send(request, **options)
        except httpx2.TransportError as error:
            if not self._steady(request):
                raise
            problem = {"code": CONNECTION_CLOSED, "message": _in_words(error)}
            return httpx2.Response(
                502, json={"jsonrpc": "2.0", "id": None, "error": problem}, request=request
            )

    def _steady(self, request: httpx2.Request) -> bool:
        return request.method == "POST" and _message(request).get("method") not in _CONNECTING


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, decompressed, and not too much.

    What is wrong with it is raised as what the SDK's transport can deal with; so is, if it is
    `steady`, that it breaks off.
    """

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        headers: httpx2.Headers,
        answers_to: object,
        request: httpx2.Request,
        *,
        steady: bool,
    ) -> None:
        self._body = body
        self._answers_to = answers_to
        self._authorization = request.headers.get("authorization")
        self._events = headers.get("content-type", "").lower().startswith("text/event-stream")
        # What is decompressed here is not to be decompressed once more.
        self._encoding = headers.pop("content-encoding", "identity").strip().lower()
        self._steady = steady

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._by_event() if self._events else self._whole():
                yield part
        except zlib.error as error:
            raise httpx2.StreamError(f"The server sent broken gzip: {error}") from error
        except httpx2.SSEError:
            raise
        except httpx2.TransportError as error:
            if not self._steady:
                raise
            raise httpx2.StreamError(_in_words(error)) from error

    async def _whole(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        length = 0
        async for part in self._decompressed():
            parts.append(part)
            length += len(part)
            if length > MESSAGE_BYTES:
                raise httpx2.StreamError(TOO_LARGE)
        body = b"".join(parts)
        if (problem := problem_of(body)) is not None:
            raise httpx2.StreamError(problem)
        if self._answers_to is not None and not answers(body, self._answers_to):
            raise httpx2.StreamError(NOT_THE_ANSWER)
        yield self._without_token(body)

    async def _by_event(self) -> AsyncIterator[bytes]:
        """Yield events as they come, the last of a part perhaps with its next part."""
        waiting: list[bytes] = []
        length = 0
        async for part in self._decompressed():
            waiting.append(part)
            length += len(part)
            if b"\n" in part or b"\r" in part:
                came = b"".join(waiting)
                ends = [found.end() for found in _END_OF_EVENT.finditer(came)]
                for begin, end in pairwise([0, *ends]):
                    self._check_event(came[begin:end])
                if ends:
                    yield self._without_token(came[: ends[-1]])
                    came = came[ends[-1] :]
                waiting, length = [came], len(came)
            if length > MESSAGE_BYTES:
                raise httpx2.SSEError(TOO_LARGE)
        yield b"".join(waiting)

    def _without_token(self, said: bytes) -> bytes:
        return without_token(said, self._authorization) if b'"error"' in said else said

    def _check_event(self, event: bytes) -> None:
        if (problem := problem_of(event)) is not None:
            raise httpx2.SSEError(problem)
        data = b"\n".join(_DATA.findall(event))
        # The SDK would take any answer for the one that it waits for.
        if self._answers_to is not None and not answers(data, self._answers_to):
            raise httpx2.SSEError(NOT_THE_ANSWER)

    async def _decompressed(self) -> AsyncIterator[bytes]:
        if self._encoding in ("identity", ""):
            async for part in self._body:
                yield part
            return
        if self._encoding not in ("gzip", "x-gzip"):
            raise httpx2.StreamError(COMPRESSED)
        gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        async for part in self._body:
            while part:
                yield gzip.decompress(part, _PIECE)
                part = gzip.unconsumed_tail

    async def aclose(self) -> None:
        await self._body.aclose()


async def _hide_token(response: httpx2.Response) -> None:
    """Take the token out of what an HTTP error says beside its body; an event hook."""
    authorization = response.request.headers.get("authorization")
    if not response.is_error or authorization is None:
        return
    said = response.extensions.get("reason_phrase", b"")
    response.extensions["reason_phrase"] = without_token(said, authorization)
    response.headers = httpx2.Headers(
        [
            (
                name,
                without_token(value, authorization)
                if name.lower() == b"www-authenticate"
                else value,
            )
            for name, value in response.headers.raw
        ]
    )


def _message(request: httpx2.Request) -> dict[str, Any]:
    """Return the message that a request brings, if it brings one; else nothing."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return {}
    return message if isinstance(message, dict) else {}


def _in_words(error: httpx2.TransportError) -> str:
    # What could not be sent is quoted in such a text, and may be a token.
    quotes = isinstance(error, httpx2.LocalProtocolError)
    reason = type(error).__name__ if quotes else str(error) or type(error).__name__
    return f"the connection failed before the whole answer was there: {reason}"
