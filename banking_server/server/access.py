"""Access control over HTTP: the SDK's bearer middleware, and the scope that a request needs.

It reads only the headers. A request of 2026-07-28 names its method and tool there (`Mcp-Method`,
`Mcp-Name`), and the SDK checks that the body agrees. A request of 2025-11-25 has no such headers:
there the tool itself checks the scope (`tools/scopes.py`). While a call that needs the scope for
transfers runs in a session, every request of the session needs it, since it may answer that call's
question.
"""

from urllib.parse import urlsplit

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import TokenVerifier
from starlette.datastructures import Headers
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.server.sdk import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    AuthContextMiddleware,
    BearerAuthBackend,
    RequireAuthMiddleware,
    SessionManager,
    resource_metadata_url,
)
from banking_server.server.settings import Settings
from banking_server.tools import required_scope
from banking_server.tools.calling import SESSION_HEADER, UNKNOWN_TOOL, record_scope_missing
from banking_server.tools.scopes import READ_SCOPE, TRANSFER_SCOPE


def for_customers(manager: SessionManager, tokens: TokenVerifier, settings: Settings) -> ASGIApp:
    """Return the MCP endpoint for requests with a valid token: the others get HTTP 401 or 403."""
    by_scope = AuthContextMiddleware(_Scopes(manager, settings))
    return AuthenticationMiddleware(by_scope, backend=BearerAuthBackend(tokens))


class _Scopes:
    """Requires the scopes of a request, and records a tool call that is refused."""

    def __init__(self, manager: SessionManager, settings: Settings) -> None:
        self._manager = manager
        url = resource_metadata_url(settings.resource)
        serve = manager.handle_request
        self._to_read = RequireAuthMiddleware(serve, [READ_SCOPE], url)
        self._to_transfer = RequireAuthMiddleware(serve, [READ_SCOPE, TRANSFER_SCOPE], url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # httptools leaves the spaces around a value, which do not belong to it (RFC 9110, 5.5).
        stripped = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope = {**scope, "headers": stripped}
        token, headers = get_access_token(), Headers(scope=scope)
        required = self._to_read
        if token is not None and not {READ_SCOPE, TRANSFER_SCOPE} <= {*token.scopes}:
            is_call = headers.get(MCP_METHOD_HEADER) == "tools/call"
            tool = headers.get(MCP_NAME_HEADER, "")
            needed = required_scope(tool) if is_call else None
            asks = self._manager.opened.transfers[headers.get(SESSION_HEADER, "")]
            if needed == TRANSFER_SCOPE or asks:
                required = self._to_transfer
            if is_call and not {*required.required_scopes} <= {*token.scopes}:
                await record_scope_missing(self._manager.opened, tool if needed else UNKNOWN_TOOL)
        await required(scope, receive, send)


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
    path = urlsplit(str(resource_metadata_url(settings.resource))).path
    return Route(path, CORSMiddleware(answer, allow_origins=["*"]), methods=["GET", "OPTIONS"])
