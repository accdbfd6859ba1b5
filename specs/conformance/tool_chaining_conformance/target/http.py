"""A server behind a URL, speaking Streamable HTTP."""

import contextlib
import functools
import json
import os
import re
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx2

from tool_chaining_conformance.message import Json, WireMessage
from tool_chaining_conformance.names import TOKEN_VARIABLE
from tool_chaining_conformance.target.channel import (
    MESSAGE_BYTES,
    Ask,
    NotServed,
    Record,
    Target,
    TargetFailure,
    read,
    response_to,
    silence,
    too_long,
)
from tool_chaining_conformance.target.headers import mirrored_headers
from tool_chaining_conformance.values import quote

EVENT_STREAM: Final = "text/event-stream"
SIGN_IN: Final = f"the token in {TOKEN_VARIABLE}, or --header NAME=VARIABLE, signs in"
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
REFUSED: Final = f"the Authorization that was sent ({TOKEN_VARIABLE}, --header) was refused"


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return the trusted certificates. They are read once, since that takes longer than a call."""
    return httpx2.create_ssl_context()


class Http:
    """The channel to a server over Streamable HTTP."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.record = Record()
        self._url = target.url or ""
        self._session: dict[str, str] = {}
        """The headers of the session, once there is one."""
        local = urlsplit(self._url).hostname in ("127.0.0.1", "localhost", "::1")
        accept = f"application/json, {EVENT_STREAM}"
        try:
            headers = httpx2.Headers({**target.headers, "accept": accept})
        except ValueError as error:
            raise TargetFailure(f"a header cannot be sent to {self._url}: {error}") from error
        try:
            self._client = httpx2.Client(
                headers=headers,
                timeout=target.timeout,
                trust_env=not local,
                verify=_certificates(),
            )
        except (ValueError, ImportError, httpx2.InvalidURL):
            # The message could quote the proxy's password.
            named = [name for name in os.environ if name.upper() in _PROXIES]
            raise TargetFailure(
                f"{' or '.join(named)} names a proxy that cannot be used here. Use an http or "
                "https proxy, or unset the variable"
            ) from None
        self._answer: Ask | None = None

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> WireMessage:
        """Send a request, answer the server's requests, and return the response.

        Raises TargetFailure.
        """
        self.record.add(WireMessage("client", message))
        self._answer = answer
        method = message["method"]
        try:
            with self._posting(message, mirrored_headers(message, input_schema)) as response:
                if method == "initialize" and "mcp-session-id" in response.headers:
                    self._session["mcp-session-id"] = response.headers["mcp-session-id"]
                for received in _messages(response, time.monotonic() + self._target.timeout):
                    body = received.body
                    # A server that rejects a request before reading its id answers with null.
                    ends = "method" not in body and body.get("id") in (message["id"], None)
                    self.record.add(received, ends=ends)
                    if response.status_code == 401 and method in ("initialize", "server/discover"):
                        raise NotServed(_unauthorized(response), 401)
                    if ends:
                        return received
                    if "method" in body and "id" in body:
                        self.notify(response_to(body, answer))
        except httpx2.TimeoutException as error:
            raise TargetFailure(silence(method, self._target.timeout)) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise TargetFailure(f"cannot talk to {self._url}: {error}") from error
        status = f"HTTP {response.status_code}"
        silent = {"notJsonRpc": f"{status} without a JSON-RPC response"}
        self.record.add(WireMessage("server", silent))
        if response.is_redirect:
            status += f" (a redirect to {response.headers.get('location')}; not followed)"
        reason = f"{method} was answered with {status} and no JSON-RPC response"
        if response.status_code in (401, 403):
            why = _unauthorized(response) if response.status_code == 401 else reason
            raise NotServed(why, response.status_code)
        raise TargetFailure(reason)

    def _posting(
        self, message: Json, headers: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[httpx2.Response]:
        headers = {"content-type": "application/json", **self._session, **headers}
        return self._client.stream("POST", self._url, content=json.dumps(message), headers=headers)

    def notify(self, message: Json) -> None:
        """Send a notification, or the answer to a question. Raises TargetFailure."""
        self.record.add(WireMessage("client", message))
        try:
            with self._posting(message, {}):
                pass  # The response is not needed, and may be endless.
        except httpx2.HTTPError as error:
            raise TargetFailure(f"posting to {self._url} failed: {error}") from error

    def adopt(self, version: str) -> None:
        """Send the negotiated revision in all later requests, and read the session's GET stream."""
        has_session = bool(self._session)
        self._session["mcp-protocol-version"] = version
        if has_session:
            threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        # Some servers send their questions on the session's GET stream, not on the call's stream.
        with (
            contextlib.suppress(httpx2.HTTPError, httpx2.StreamError, TargetFailure),
            self._client.stream(
                "GET",
                self._url,
                headers={**self._session, "accept": EVENT_STREAM},
                timeout=httpx2.Timeout(self._target.timeout, read=None),
            ) as response,
        ):
            for received in _messages(response, float("inf")):
                if "method" in received.body:
                    self.record.add(received)
                    if "id" in received.body and self._answer is not None:
                        self.notify(response_to(received.body, self._answer))

    def new_errors(self) -> str:
        """Return an empty text: the suite cannot read the standard error of such a server."""
        return ""

    def close(self) -> None:
        """End the session, and close the connections."""
        if "mcp-session-id" in self._session:
            with (
                contextlib.suppress(httpx2.HTTPError),
                self._client.stream("DELETE", self._url, headers=self._session),
            ):
                pass
        self._client.close()


def _unauthorized(response: httpx2.Response) -> str:
    """Return why the server answered HTTP 401, with its own reason if it gives one."""
    said = re.search(r'error_description="([^"]*)"', response.headers.get("www-authenticate", ""))
    why = REFUSED if "authorization" in response.request.headers else SIGN_IN
    return f"HTTP 401; {why}" + (f"; the server says {quote(said[1])}" if said else "")


def _messages(response: httpx2.Response, deadline: float) -> Iterator[WireMessage]:
    """Yield the JSON-RPC messages of a response body, whether it is JSON or an event stream."""
    chunks = _in_time(response.iter_bytes(), deadline)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    for text in _events(response.request, chunks) if kind == EVENT_STREAM else [b"".join(chunks)]:
        received = read(text)
        if received is not None and received.body.get("jsonrpc") == "2.0":
            yield received


def _in_time(chunks: Iterable[bytes], deadline: float) -> Iterator[bytes]:
    """Yield the chunks of a body. Raises ReadTimeout after the deadline."""
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("the reply did not end in time")
        yield chunk


def _events(request: httpx2.Request, chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each server-sent event. Raises TargetFailure if one is too long."""
    response = httpx2.Response(
        200, headers={"content-type": EVENT_STREAM}, content=chunks, request=request
    )
    # Event streams are UTF-8, whatever the header says, and may begin with a byte order mark.
    response.encoding = "utf-8-sig"
    try:
        for event in httpx2.EventSource(response, max_event_size=MESSAGE_BYTES):
            yield event.data
    except httpx2.SSEError as error:
        raise too_long() from error
