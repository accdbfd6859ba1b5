"""What the HTTP server says of its tokens as a resource server of OAuth: RFC 6750 and RFC 9728."""

from urllib.parse import parse_qs, urlsplit

from mcp.server.auth.middleware.auth_context import get_access_token
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.server.replies import challenge
from banking_server.server.sdk import resource_metadata_url
from banking_server.server.settings import PATH, Settings
from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE


def metadata_route(settings: Settings) -> Route:
    """Return the route to what clients need to know of the resource (RFC 9728).

    The SDK's own names an authorization server in any case; for a trial there is none.
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


class OneGoodToken:
    """Refuses a request to `/mcp` without a good token with 401, and with two tokens with 400.

    ASGI middleware, behind the one that reads the token. The SDK's route tells whoever sent none
    that theirs is invalid.
    """

    def __init__(self, app: ASGIApp, metadata_url: str) -> None:
        self._app = app
        self._metadata_url = metadata_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        status, words, error = 0, "", None
        query = scope["query_string"].decode("latin-1")
        if len(sent) + bool(query and "access_token" in parse_qs(query)) > 1:
            status, words, error = 400, "More than one token", "invalid_request"
        elif get_access_token() is None:
            status, words = 401, "Authentication required"
            if sent and sent[0].lower().split(b" ")[0] == b"bearer":
                error = "invalid_token"
        refusal = challenge(status, None, self._metadata_url, words, error) if status else None
        await (refusal or self._app)(scope, receive, send)
