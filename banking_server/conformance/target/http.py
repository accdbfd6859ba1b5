"""A server behind a URL, speaking Streamable HTTP."""

import contextlib
import functools
import json
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx2

from banking_server.conformance.message import Json
from banking_server.conformance.target.channel import (
    MESSAGE_BYTES,
    Ask,
    NotServed,
    Received,
    Record,
    Target,
    TargetFailure,
    no_reply,
    read,
    response_to,
    too_much,
)
from banking_server.conformance.target.headers import mirrored

EVENT_STREAM: Final = "text/event-stream"


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates that are trusted: read once, as that takes longer than a call."""
    return httpx2.create_ssl_context()


class Http:
    """The channel to a server over Streamable HTTP."""

    def __init__(self, target: Target, record: Record) -> None:
        self._target = target
        self._record = record
        self._url = target.url or ""
        self._session: str | None = None
        self._version: str | None = None
        local = urlsplit(self._url).hostname in ("127.0.0.1", "localhost", "::1")
        try:
            self._client = httpx2.Client(
                headers=dict(target.headers),
                timeout=target.timeout,
                trust_env=not local,
                verify=_certificates(),
            )
        except ValueError as error:
            raise TargetFailure(f"a header cannot be sent to {self._url}: {error}") from error
        self._listener: threading.Thread | None = None
        self._answer: Ask | None = None

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        # Compressed, a few bytes could be any number of bytes.
        headers = {
            "accept": f"application/json, {EVENT_STREAM}",
            "accept-encoding": "identity",
            **more,
        }
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> Received:
        """Send a request and return the response to it, answering the server's requests meanwhile.

        A server that says "too fast" (429) and when to come back gets the request again then, if it
        is within the time for one reply. Raises TargetFailure.
        """
        self._record.sent(message)
        self._answer = answer
        deadline = time.monotonic() + self._target.timeout
        while True:
            answered = self._once(message, answer, input_schema, deadline)
            if isinstance(answered, Received):
                return answered
            time.sleep(answered)

    def _once(
        self, message: Json, answer: Ask, input_schema: object, deadline: float
    ) -> Received | float:
        """Send a request once; return the response, or the seconds after which to send it again."""
        method = message["method"]
        others = size = 0
        headers = {"content-type": "application/json", **mirrored(message, input_schema)}
        try:
            with self._client.stream(
                "POST", self._url, content=json.dumps(message), headers=self._headers(headers)
            ) as response:
                if method == "initialize":
                    self._session = response.headers.get("mcp-session-id")
                pause = _pause(response)
                if pause is not None and time.monotonic() + pause < deadline:
                    return pause
                for received in _messages(response, time.monotonic() + self._target.timeout):
                    body = received.body
                    # A request that was rejected before its id was read is answered with null.
                    ends = "method" not in body and body.get("id") in (message["id"], None)
                    self._record.received(body, received.size, response=ends)
                    if ends:
                        return received
                    others, size = others + 1, size + received.size
                    if "method" in body and "id" in body:
                        self._post(response_to(body, answer))
        except httpx2.TimeoutException as error:
            seconds = self._target.timeout
            raise TargetFailure(no_reply(method, seconds, others, size)) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise TargetFailure(f"{method} to {self._url} failed: {error}") from error
        status = f"HTTP {response.status_code}"
        self._record.received({"notJsonRpc": f"{status} without a JSON-RPC response"})
        if response.is_redirect:
            status += f" (a redirect to {response.headers.get('location')}; not followed)"
        reason = f"{method} was answered with {status} and no JSON-RPC response"
        if response.status_code in (401, 403):
            raise NotServed(reason, response.status_code)
        raise TargetFailure(reason)

    def _post(self, message: Json) -> None:
        self._record.sent(message)
        headers = self._headers({"content-type": "application/json"})
        try:
            # What the server answers is of no use, and may have no end.
            with self._client.stream(
                "POST", self._url, content=json.dumps(message), headers=headers
            ):
                pass
        except httpx2.HTTPError as error:
            raise TargetFailure(f"posting to {self._url} failed: {error}") from error

    def notify(self, message: Json) -> None:
        """Send a notification. Raises TargetFailure."""
        self._post(message)

    def adopt(self, version: str) -> None:
        """Name the negotiated revision from now on, and listen to the session's own stream."""
        self._version = version
        if self._session is not None:
            self._listener = threading.Thread(target=self._listen, daemon=True)
            self._listener.start()

    def _listen(self) -> None:
        # Some servers put their questions on the session's GET stream, not on the call's.
        with (
            contextlib.suppress(httpx2.HTTPError, httpx2.StreamError, TargetFailure),
            self._client.stream(
                "GET",
                self._url,
                headers=self._headers({"accept": EVENT_STREAM}),
                timeout=httpx2.Timeout(self._target.timeout, read=None),
            ) as response,
        ):
            if response.status_code != 200:
                return
            for text in _events(response, deadline=float("inf")):
                received = read(text)
                if received is not None and "method" in received.body:
                    self._record.received(received.body, received.size)
                    if "id" in received.body and self._answer is not None:
                        self._post(response_to(received.body, self._answer))

    def new_errors(self) -> str:
        """Return nothing: the standard error of such a server is not the suite's to read."""
        return ""

    def close(self) -> None:
        """End the session, and close the connections."""
        if self._session is not None:
            with (
                contextlib.suppress(httpx2.HTTPError),
                self._client.stream("DELETE", self._url, headers=self._headers({})),
            ):
                pass
        self._client.close()


def _pause(response: httpx2.Response) -> float | None:
    """Return after how many seconds a request that was too fast may come again, if that is said."""
    after = response.headers.get("retry-after", "")
    return (
        float(after)
        if response.status_code == 429 and after.isascii() and after.isdigit()
        else None
    )


def _messages(response: httpx2.Response, deadline: float) -> Iterator[Received]:
    """Yield the JSON-RPC messages of a response body, whether it is JSON or an event stream."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise TargetFailure("the server compressed its reply, which the suite does not accept")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    streamed = kind == EVENT_STREAM
    texts = _events(response, deadline) if streamed else iter([_body(response, deadline)])
    for text in texts:
        received = read(text)
        if received is not None and received.body.get("jsonrpc") == "2.0":
            yield received


def _body(response: httpx2.Response, deadline: float) -> str:
    parts: list[str] = []
    size = 0
    for part in response.iter_text():
        parts.append(part)
        size += len(part)
        if size > MESSAGE_BYTES:
            raise too_much(MESSAGE_BYTES, "")
        _in_time(deadline)
    return "".join(parts)


def _events(response: httpx2.Response, deadline: float) -> Iterator[str]:
    """Yield the data of each server-sent event."""
    # The library looks at no clock, so it is given a response whose chunks are timed: also a
    # stream that never comes to an event has to end. Event streams are UTF-8, whatever the
    # header says, and may begin with a byte order mark.
    timed = httpx2.Response(
        response.status_code,
        headers=response.headers,
        request=response.request,
        stream=_Timed(response.iter_raw(), deadline),
    )
    timed.encoding = "utf-8-sig"
    try:
        for event in httpx2.EventSource(timed, max_event_size=MESSAGE_BYTES):
            yield event.data
    except httpx2.SSEError as error:
        raise too_much(MESSAGE_BYTES, "") from error


class _Timed(httpx2.SyncByteStream):
    """The chunks of a body, until the deadline has passed."""

    def __init__(self, chunks: Iterable[bytes], deadline: float) -> None:
        self._chunks = chunks
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            _in_time(self._deadline)
            yield chunk


def _in_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise httpx2.ReadTimeout("the reply did not end in time")
