"""One connection to the server behind the proxy, with raw JSON in both directions."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final

import anyio
import anyio.lowlevel
import httpx2
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp.types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from opentelemetry.propagate import inject
from opentelemetry.trace import SpanKind, get_tracer
from pydantic import ValidationError

from tool_chaining.errors import ForPeople
from tool_chaining.hosting.answers import TOO_MANY, assigned, bounded
from tool_chaining.hosting.reading import NOT_KNOWN, with_doubt
from tool_chaining.hosting.server_errors import ServerErrors, http_failure, server_ended
from tool_chaining.hosting.untrusted import BOUNDED_LINES, Body, ResilientHttpClient
from tool_chaining.operator import write_line
from tool_chaining.text import printable
from tool_chaining.urls import TOKEN_VARIABLE
from tool_chaining_proxy import NAME, __version__
from tool_chaining_proxy.eras import Declared, Json
from tool_chaining_proxy.options import START_TIMEOUT, Address, Command, Server
from tool_chaining_proxy.sdk import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    ClientMessageMetadata,
    SessionMessage,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

LIST_PAGES: Final = 100
"""The most pages of the tool list that are read for the headers of one call."""

logger = logging.getLogger(__name__)

_tracer: Final = get_tracer(__name__)
_TIMEOUT: Final = httpx2.Timeout(30, read=None)
_CANCELLING: Final = 5.0
"""Seconds to tell a server that a request is cancelled."""
_NOBODY: Final = {"name": NAME, "version": __version__}


class _Request:
    """One request to the server.

    The SDK's transport makes errors of its own in place of answers. The proxy recognizes them by
    the HTTP response, and not by their text.
    """

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.answer: JSONRPCResponse | JSONRPCError | None = None
        """The answer, from the server or from the transport; None if the connection ended."""
        self.response: httpx2.Response | None = None
        """The HTTP response to it."""
        self.body: Body | None = None
        """The body in which its answer was expected last."""


_REQUEST: Final[ContextVar[_Request]] = ContextVar("request")
"""The current request. The transport sends it in the context of its caller."""


class _RecordingHttpClient(ResilientHttpClient):
    """Records the HTTP response of each request."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, as `ResilientHttpClient` does."""
        response = await super().send(request, stream=stream, **options)
        ours = _REQUEST.get(None)
        if ours is not None:
            # The rest of an interrupted answer is fetched by GET: that is not the response itself.
            if request.method == "POST":
                ours.response = response
            if stream and response.is_success:
                ours.body = response.stream if isinstance(response.stream, Body) else None
        return response


class Refused(MCPError):
    """A refusal with an HTTP status, for a client over HTTP.

    `challenges` are `WWW-Authenticate` headers.
    """

    def __init__(self, message: str, status: int, challenges: Sequence[bytes] = ()) -> None:
        super().__init__(code=INTERNAL_ERROR, message=message)
        self.status, self.challenges = status, challenges


class NotAuthorized(Refused):
    """An HTTP server requires another `Authorization`. The challenges are the server's own.

    The message does not contain the server's text, which could quote the token.
    """


_WAS_REFUSED: Final = "It refuses the Authorization header that was sent"
_WAS_MISSING: Final = (
    "No Authorization header was sent: each caller sends one with --forward-authorization, and "
    f"without it {TOKEN_VARIABLE} holds one token for all"
)


class SessionForgotten(MCPError):
    """An HTTP server does not know the session, for example after a restart. It did nothing."""

    def __init__(self) -> None:
        super().__init__(code=CONNECTION_CLOSED, message="The server does not know this session.")


class Upstream:
    """A connection to the server, in the revision of the client that needed it first."""

    def __init__(
        self,
        server: Server,
        declared: Declared,
        *,
        on_request: Callable[[str, Json | None], Awaitable[Json]],
        on_notification: Callable[[str, Json | None], Awaitable[None]],
        patience: float = START_TIMEOUT,
    ) -> None:
        """`on_request` answers a request of the server; `on_notification` passes one on."""
        self._server = server
        self._patience = patience
        self._declared = declared
        self._on_request = on_request
        self._on_notification = on_notification
        self._write: Any = None
        """The stream of messages to the server, while it is connected."""
        self._headers_of: dict[str, dict[tuple[str, ...], str]] = {}
        self._requests: dict[str, _Request] = {}
        self._answering: dict[str, anyio.CancelScope] = {}
        """The server's own requests, by their ids."""
        self._last_id = 0
        self._scope = anyio.CancelScope()
        self._connected = anyio.Event()
        self._ended = anyio.Event()
        self._failure: MCPError | None = None
        self._reason = ""
        """Why the proxy ended the connection."""
        self._errors = ServerErrors(_pass_on) if isinstance(server, Command) else None
        self.revision = ""
        """The protocol revision that was agreed on."""
        self.greeting: Json = {}
        """The server's result of `initialize` or `server/discover`."""

    @property
    def modern(self) -> bool:
        """Whether the connection uses 2026-07-28."""
        return self.revision in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> Json:
        """The capabilities that the server declared."""
        capabilities = self.greeting.get("capabilities")
        return capabilities if isinstance(capabilities, dict) else {}

    @property
    def ended(self) -> bool:
        """Whether the connection has ended, or is ending."""
        is_over = self._connected.is_set() and self._write is None
        return is_over or self._ended.is_set() or self._scope.cancel_called

    async def connected(self) -> None:
        """Wait until the server has answered. Raises MCPError with one line if it does not."""
        await self._connected.wait()
        if (failure := self._failure) is not None:
            message = f"Cannot talk to {self._server.name}: {failure.message}"
            if isinstance(failure, NotAuthorized):
                raise NotAuthorized(message, failure.status, failure.challenges)
            raise MCPError(code=failure.code, message=message, data=failure.error.data)

    async def run(self) -> None:
        """Keep the connection, until the server ends it or `end` is called. Never raises."""
        try:
            async with _streams(self._server, self._errors) as (read, write):
                with self._scope:
                    await self._talk(read, write)
        except Exception as error:
            self._failure = _as_mcp_error(error)
        finally:
            if not self._connected.is_set():
                await self._note_end()
            self._ended.set()
            self._connected.set()

    async def _note_end(self) -> None:
        """Record that the server ended before connecting, and its last output."""
        if self._failure is None or self._failure.code == CONNECTION_CLOSED:
            message = server_ended(await self._last_line())
            self._failure = MCPError(code=INTERNAL_ERROR, message=message)

    async def _last_line(self) -> str:
        """Return the last line that a server over stdio wrote to its standard error, or ''."""
        said = ""
        if self._errors is not None:
            with anyio.CancelScope(shield=True):
                said = await anyio.to_thread.run_sync(self._errors.last_line)
        return said

    async def _talk(self, read: Any, write: Any) -> None:
        self._write = write
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, read, tasks)
                with anyio.move_on_after(self._patience) as waiting:
                    await (self._discover() if self._declared.modern else self._initialize())
                if waiting.cancelled_caught:
                    late = f"it did not answer within {self._patience:g} s"
                    raise MCPError(code=REQUEST_TIMEOUT, message=late)
                self._connected.set()
                if not isinstance(self.greeting.get("capabilities"), dict):
                    logger.warning("The server's capabilities cannot be read, and count as none.")
        finally:
            self._end_requests()

    async def _listen(self, read: Any, tasks: TaskGroup) -> None:
        """Take each message of the server, in order, until the connection ends."""
        async for received in read:
            message = received.message if isinstance(received, SessionMessage) else None
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                if (request := self._requests.get(str(message.id))) is not None:
                    request.answer = request.answer or message
                    request.ended.set()
            elif isinstance(message, JSONRPCRequest):
                tasks.start_soon(self._answer, message)
            elif isinstance(message, JSONRPCNotification):
                await self._note(message)
        if read.flooded:
            self.end(TOO_MANY)
        self._end_requests()
        tasks.cancel_scope.cancel()

    def _end_requests(self) -> None:
        self._write = None
        for request in self._requests.values():
            request.ended.set()

    def end(self, reason: str = "The connection to the server was ended.") -> None:
        """Begin to end the connection, and the process of the server."""
        self._reason = reason
        self._scope.cancel()

    async def close(self) -> None:
        """End the connection, and wait until it has ended."""
        self.end()
        await self._ended.wait()

    async def request(
        self, method: str, params: Json, declared: Declared, *, request_id: str | None = None
    ) -> Json:
        """Make one request, and return its result after all notifications before it are passed on.

        A modern server also gets what the client has `declared`. Raises MCPError: the server's own
        error, unchanged, or one line if the server is gone.
        """
        try:
            result = await self._request(method, params, declared, request_id)
        except MCPError as error:
            if method != "tools/call" or error.code != HEADER_MISMATCH or not self.modern:
                raise
            # The server refused before it acted: the headers need a newer schema of the tool.
            await self._learn_headers(str(params.get("name")), declared)
            result = await self._request(method, params, declared, request_id)
        if method == "tools/list" and self.modern:
            self._note_headers(result)
        return result

    async def notify(self, method: str, params: Json | None) -> None:
        """Send a notification. If the server is gone, it is lost."""
        given: Any = {} if params is None else {"params": params}
        message = JSONRPCNotification(jsonrpc="2.0", method=method, **given)
        await self._send(message, {MCP_PROTOCOL_VERSION_HEADER: self.revision})

    # --- agreeing on a revision -------------------------------------------------------------------

    async def _initialize(self) -> None:
        asked_for = self._declared.revision
        greeting = await self._raw(
            "initialize",
            {
                "protocolVersion": asked_for
                if asked_for in HANDSHAKE_PROTOCOL_VERSIONS
                else LATEST_HANDSHAKE_VERSION,
                "capabilities": self._declared.upstream_capabilities,
                "clientInfo": self._declared.client_info or _NOBODY,
            },
        )
        revision = greeting.get("protocolVersion")
        if revision not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise MCPError(code=INVALID_REQUEST, message=f"it uses protocol revision {revision!r}")
        self.greeting, self.revision = greeting, str(revision)
        await self.notify("notifications/initialized", None)

    async def _discover(self) -> None:
        params, headers = self._enveloped(
            "server/discover", {}, self._declared, LATEST_MODERN_VERSION
        )
        greeting = await self._raw("server/discover", params, headers)
        offered = greeting.get("supportedVersions")
        if not isinstance(offered, list) or LATEST_MODERN_VERSION not in offered:
            raise MCPError(
                code=INVALID_REQUEST, message=f"it does not support {LATEST_MODERN_VERSION}"
            )
        self.greeting, self.revision = greeting, LATEST_MODERN_VERSION

    # --- requests ---------------------------------------------------------------------------------

    async def _request(
        self, method: str, params: Json, declared: Declared, request_id: str | None
    ) -> Json:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.revision}
        if self.modern:
            params, headers = self._enveloped(method, params, declared, self.revision)
        return await self._raw(method, params, headers, request_id)

    async def _raw(
        self,
        method: str,
        params: Json,
        headers: dict[str, str] | None = None,
        request_id: str | None = None,
    ) -> Json:
        """Send one request, and return its result. If nobody waits any more, cancel it."""
        self._last_id += 1
        number = request_id or self._last_id
        request = self._requests[str(number)] = _Request()
        outside = _REQUEST.set(request)
        try:
            with _tracer.start_as_current_span(f"MCP send {method}", kind=SpanKind.CLIENT):
                inject(meta := dict(params.get("_meta") or {}))
                params = {**params, "_meta": meta} if meta else params
                given: Any = {"params": params} if params else {}
                message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, **given)
                await self._send(message, headers)
                if not self.ended:
                    await request.ended.wait()
        except anyio.get_cancelled_exc_class():
            if method not in ("initialize", "server/discover"):
                with anyio.move_on_after(_CANCELLING, shield=True):
                    why = {"requestId": number, "reason": "the client does not wait any more"}
                    await self.notify("notifications/cancelled", why)
            raise
        finally:
            _REQUEST.reset(outside)
            del self._requests[str(number)]
        if request.answer is None:
            raise await self._gone()
        if isinstance(request.answer, JSONRPCResponse):
            return request.answer.result
        error = request.answer.error
        found = MCPError(code=error.code, message=error.message, data=error.data)
        raise self._explained(found, request)

    async def _send(self, message: Any, headers: dict[str, str] | None = None) -> None:
        """Send a message. If the server is gone, it is lost."""
        if self._write is None:
            return
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._write.send(SessionMessage(message, metadata))

    def _enveloped(
        self, method: str, params: Json, declared: Declared, revision: str
    ) -> tuple[Json, dict[str, str]]:
        """Return a request of 2026-07-28: with the declaration in `_meta`, and the HTTP headers."""
        headers = {MCP_PROTOCOL_VERSION_HEADER: revision, MCP_METHOD_HEADER: method}
        # The methods of the tasks extension are named by their task.
        name = params.get(NAME_BEARING_METHODS.get(method, "taskId"))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        arguments = params.get("arguments")
        if method == "tools/call" and isinstance(name, str) and isinstance(arguments, Mapping):
            headers |= mcp_param_headers(self._headers_of.get(name, {}), arguments)
        return declared.enveloped(params, revision), headers

    def _note_headers(self, listed: Json) -> None:
        """Record the arguments of each tool that headers repeat (`x-mcp-header`)."""
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                schema = tool.get("inputSchema")
                valid = find_invalid_x_mcp_header(schema) is None
                self._headers_of[name] = x_mcp_header_map(schema) if valid else {}

    async def _learn_headers(self, tool: str, declared: Declared) -> None:
        self._headers_of.pop(tool, None)
        cursor: Any = None
        for _ in range(LIST_PAGES):
            params = {"cursor": cursor} if cursor is not None else {}
            page = await self.request("tools/list", params, declared)
            cursor = page.get("nextCursor")
            if cursor is None or tool in self._headers_of:
                return

    async def _gone(self) -> MCPError:
        if self._scope.cancel_called:
            return MCPError(code=CONNECTION_CLOSED, message=f"{self._reason} {NOT_KNOWN}")
        ended = server_ended(await self._last_line()).rstrip(".")
        message = f"T{ended[1:]}. {NOT_KNOWN} The next request starts the server again."
        return MCPError(code=CONNECTION_CLOSED, message=message)

    def _explained(self, error: MCPError, request: _Request) -> MCPError:
        """Return the server's own error unchanged, or one line in place of the SDK's error."""
        response, body = request.response, request.body
        if response is None:
            return error
        if not response.is_success:
            return self._refused(response, error)
        if body is not None and body.failure is not None:
            cause = body.failure.__cause__
            if isinstance(cause, httpx2.TransportError):
                return self._lost(str(body.failure))
            return MCPError(code=INTERNAL_ERROR, message=with_doubt(str(body.failure)))
        if _says_error(response):
            return error
        if body is not None and body.ended and error.code == CONNECTION_CLOSED:
            return self._lost("the stream ended without an answer")
        kind = response.headers.get("content-type", "")
        if not kind.startswith(("application/json", "text/event-stream")):
            return MCPError(code=INTERNAL_ERROR, message=with_doubt(error.message))
        return error

    def _refused(self, response: httpx2.Response, error: MCPError) -> MCPError:
        """Return the error for an HTTP response with an error status."""
        status = response.status_code
        challenges = [v for k, v in response.headers.raw if k.lower() == b"www-authenticate"]
        narrow = status == 403 and any(b"insufficient_scope" in one for one in challenges)
        if status == 401 or narrow:
            why = f"{HTTPStatus(status).phrase}{' (insufficient_scope)' if narrow else ''}"
            if status == 401:
                was_sent = "authorization" in response.request.headers
                why += f". {_WAS_REFUSED if was_sent else _WAS_MISSING}"
            return NotAuthorized(f"the server answered HTTP {status} {why}", status, challenges)
        in_session = "mcp-session-id" in response.request.headers
        if status == HTTPStatus.NOT_FOUND and in_session and error.code != METHOD_NOT_FOUND:
            self.end()
            return SessionForgotten()
        if status == HTTPStatus.BAD_GATEWAY and error.code == CONNECTION_CLOSED:
            return self._lost(error.message)  # The text is that of `ResilientHttpClient`.
        if _says_error(response):
            return error
        message = f"the server answered HTTP {status} {response.reason_phrase}"
        return MCPError(code=error.code, message=message)

    def _lost(self, how: str) -> MCPError:
        return MCPError(
            code=CONNECTION_CLOSED,
            message=f"The server's answer was lost: {how.rstrip('.')}. {NOT_KNOWN}",
        )

    # --- messages of the server -------------------------------------------------------------------

    async def _note(self, message: JSONRPCNotification) -> None:
        """Pass a notification on before the next message is read."""
        if message.method == "notifications/cancelled":
            withdrawn = self._answering.get(str((message.params or {}).get("requestId")))
            if withdrawn is not None:
                withdrawn.cancel()
            return
        try:
            await self._on_notification(message.method, message.params)
        except Exception:
            # The client is gone, or the notification is malformed. No request fails for it.
            logger.debug("dropped %s", message.method, exc_info=True)

    async def _answer(self, message: JSONRPCRequest) -> None:
        """Answer a request of the server, unless the server withdraws it."""
        number = str(message.id)
        with anyio.CancelScope() as self._answering[number]:
            answer: JSONRPCResponse | JSONRPCError
            try:
                result = await self._on_request(message.method, message.params)
                answer = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
            except MCPError as error:
                answer = JSONRPCError(jsonrpc="2.0", id=message.id, error=error.error)
            await self._send(answer)
        self._answering.pop(number, None)


def _pass_on(line: str) -> None:
    """Write a line of the server's standard error to our own. No line begins with its text."""
    write_line(f"[server] {printable(line)}")


@asynccontextmanager
async def _streams(server: Server, errors: ServerErrors | None) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(server, Command) and errors is not None:
        command, *arguments = server.argv
        parameters = StdioServerParameters(
            command=command,
            args=arguments,
            env=server.environment,
            encoding=BOUNDED_LINES,
            encoding_error_handler="replace",  # The SDK would hang.
        )
        with errors.stream:
            async with assigned(stdio_client(parameters, errors.stream)) as streams:
                yield streams
    elif isinstance(server, Address):
        headers = {"Authorization": server.authorization} if server.authorization else {}
        http = _RecordingHttpClient(url=server.url, headers=headers, timeout=_TIMEOUT)
        # Only this HTTP client limits the size of an event.
        transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=None)
        async with http, bounded(transport) as streams:
            yield streams


def _says_error(response: httpx2.Response) -> bool:
    """Return whether a response that was read completely is a JSON-RPC error."""
    try:
        JSONRPCError.model_validate_json(response.content, by_name=False)
    except (httpx2.ResponseNotRead, ValidationError):
        return False
    return True


def _as_mcp_error(error: BaseException) -> MCPError:
    """Return why there is no connection, without any text of the request."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return error
    return MCPError(code=INTERNAL_ERROR, message=_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such command"
    if isinstance(error, ForPeople):
        return str(error)
    if isinstance(error, httpx2.ConnectError):
        return (http_failure(error) or "the connection failed").split("\n")[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    # Texts of libraries can quote a header, and so a token.
    return f"it failed ({type(error).__name__})"
