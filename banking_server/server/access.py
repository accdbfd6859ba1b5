"""Access control over HTTP: the one layer that accepts or refuses a request before MCP reads it.

It reads only the headers. A request of 2026-07-28 names its method and tool there (`Mcp-Method`,
`Mcp-Name`), and the SDK checks that the body agrees. A request of 2025-11-25 has no such headers:
there the tool itself checks the scope (`tools/scopes.py`). While a call that needs the scope for
transfers runs in a session, every request of the session needs it, since it may answer that call's
question.
"""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.datastructures import Headers, QueryParams
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from banking_server.bank.storage import BankBusy
from banking_server.server.sdk import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    AuthContextMiddleware,
    AuthenticatedUser,
    SessionManager,
    resource_metadata_url,
)
from banking_server.server.settings import Settings
from banking_server.server.tokens import CustomerTokens, KeysUnavailable
from banking_server.tools import required_scope
from banking_server.tools.calling import (
    QUESTION_SECONDS,
    SESSION_HEADER,
    UNKNOWN_TOOL,
    record_scope_missing,
)
from banking_server.tools.limits import MOST_OPEN, OpenCalls
from banking_server.tools.results import BUSY, incident_message, log_incident, too_fast_message
from banking_server.tools.scopes import READ_SCOPE, TRANSFER_SCOPE

MOST_REQUESTS: Final = 2 * MOST_OPEN
"""The most requests of one customer that may run at once, in each server process.

It is twice `MOST_OPEN`: calls that wait for the customer must leave room for the answers.
"""

REQUEST_SECONDS: Final = QUESTION_SECONDS + 30
"""Seconds that a request may run, with its body and all questions to the customer."""

_RETRY_SECONDS: Final = 1
_METHODS: Final = ("POST", "DELETE")


class AccessControl:
    """Passes the requests of customers to MCP, and refuses all others.

    - 401: no valid token; 400: more than one token (RFC 6750);
    - 403: the token lacks the scope; if it was a tool call, there is an audit event;
    - 405: GET, which has no stream to open: a question is sent with the call that it belongs to;
    - 415: a compressed body;
    - 429: the customer sends too many requests, or `MOST_REQUESTS` of them are running;
    - 503: the token or the scope cannot be checked now.
    """

    def __init__(self, manager: SessionManager, tokens: CustomerTokens, settings: Settings) -> None:
        self._manager = manager
        self._tokens = tokens
        self._metadata_url = resource_metadata_url(settings.resource)
        self._of_customer = AuthContextMiddleware(self._authorize)
        self._running = OpenCalls()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        token = await self._authenticate(scope)
        if isinstance(token, Response):
            await token(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(token)
        await self._of_customer(scope, receive, send)

    async def _authenticate(self, scope: Scope) -> AccessToken | Response:
        sent = _values(scope, b"authorization")
        in_url = scope["query_string"] and "access_token" in QueryParams(scope["query_string"])
        if len(sent) + bool(in_url) > 1:
            return self._challenge(400, "More than one token", "invalid_request")
        kind, _, bearer = (sent or [""])[0].partition(" ")
        if kind.lower() != "bearer":
            return self._challenge(401, "Authentication required")
        try:
            token = await self._tokens.verify_token(bearer.strip())
        except KeysUnavailable as unavailable:
            words = "Access tokens cannot be checked at the moment. Please try again later."
            return _error(503, words, retry_seconds=unavailable.retry_seconds)
        except Exception as failure:
            return _unavailable("the check of a token", failure)
        return token or self._challenge(401, "Authentication required", "invalid_token")

    async def _authorize(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that has a valid token."""
        token = get_access_token()
        if token is None or token.subject is None:
            raise RuntimeError("A customer's token was verified.")
        customer = token.subject
        with self._running.running_call(customer, MOST_REQUESTS) as has_room:
            refusal = self._too_many(customer, has_room) or await self._scope_missing(scope, token)
            if refusal is None and scope["method"] not in _METHODS:
                refusal = Response(status_code=405, headers={"Allow": ", ".join(_METHODS)})
            encoding = _values(scope, b"content-encoding")
            if refusal is None and encoding not in ([], ["identity"]):
                refusal = _error(415, "Send the body uncompressed, without Content-Encoding.")
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._manager.handle_request(scope, receive, send)

    def _too_many(self, customer: str, has_room: bool) -> Response | None:
        # The request itself is not read, so that a refusal costs very little.
        seconds = self._manager.opened.rate.wait(customer)
        if seconds:
            return _error(429, too_fast_message(seconds), retry_seconds=seconds)
        if not has_room:
            words = f"{MOST_REQUESTS} of your requests are running. Wait until one of them ends."
            return _error(429, words, retry_seconds=_RETRY_SECONDS)
        return None

    async def _scope_missing(self, scope: Scope, token: AccessToken) -> Response | None:
        """Return the refusal of a request whose token lacks a scope; a tool call is audited."""
        if READ_SCOPE in token.scopes and TRANSFER_SCOPE in token.scopes:
            return None
        # Every request needs the scope for reading.
        missing = None if READ_SCOPE in token.scopes else READ_SCOPE
        headers = Headers(scope=scope)
        if self._manager.opened.transfers.any_of(headers.get(SESSION_HEADER, "")):
            missing = missing or TRANSFER_SCOPE
        if headers.get(MCP_METHOD_HEADER) == "tools/call":
            needed = required_scope(headers.get(MCP_NAME_HEADER, ""))
            if needed is not None and needed not in token.scopes:
                missing = needed
            if missing is not None:
                tool = UNKNOWN_TOOL if needed is None else headers[MCP_NAME_HEADER]
                try:
                    await record_scope_missing(self._manager.opened, tool)
                except Exception as failure:
                    return _unavailable(tool, failure)
        if missing is None:
            return None
        return self._challenge(403, f"Required scope: {missing}", "insufficient_scope")

    def _challenge(self, status: int, words: str, error: str | None = None) -> Response:
        """Return a refusal that names the place to get a valid token (RFC 9728).

        `error` is the code of RFC 6750, or None if the request had no token.
        """
        code = "" if error is None else f'error="{error}", error_description="{words}", '
        where = f'scope="{READ_SCOPE} {TRANSFER_SCOPE}", resource_metadata="{self._metadata_url}"'
        return _error(status, words, {"WWW-Authenticate": f"Bearer {code}{where}"})


def _values(scope: Scope, header: bytes) -> list[str]:
    """Return the values of a header; ASGI's names are in lower case."""
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def metadata_route(settings: Settings) -> Route:
    """Return the route to the metadata of the protected resource (RFC 9728).

    The SDK's own route always names an authorization server; a trial has none.
    """
    document = {
        "resource": settings.resource,
        **({} if settings.issuer is None else {"authorization_servers": [settings.issuer]}),
        "scopes_supported": [READ_SCOPE, TRANSFER_SCOPE],
        "bearer_methods_supported": ["header"],
    }
    answer = JSONResponse(document, headers={"Cache-Control": "public, max-age=3600"})
    path = urlsplit(resource_metadata_url(settings.resource)).path
    return Route(path, CORSMiddleware(answer, allow_origins=["*"]), methods=["GET", "OPTIONS"])


def _error(
    status: int,
    words: str,
    headers: Mapping[str, str] | None = None,
    *,
    retry_seconds: float | None = None,
) -> Response:
    """Return an HTTP error with a JSON-RPC error; its id is null: the body was not read."""
    code = INVALID_REQUEST if status < 429 else INTERNAL_ERROR
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    retry = {} if retry_seconds is None else {"Retry-After": str(max(1, math.ceil(retry_seconds)))}
    return JSONResponse(body, status_code=status, headers={**(headers or {}), **retry})


def _unavailable(called: str, failure: BaseException) -> Response:
    """Return the response for a bank that cannot answer. If it is not busy, log an incident."""
    if isinstance(failure, BankBusy):
        return _error(503, BUSY, retry_seconds=_RETRY_SECONDS)
    return _error(503, incident_message(log_incident(called, failure)))
