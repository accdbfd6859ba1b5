"""What the server borrows from the inner parts of the MCP SDK, and of Starlette under it.

The SDK promises to keep what its documentation names. A minor release may move the rest, and all
of it that the server uses stands here. `tests/test_sdk_seam.py` asserts each piece, and that no
other module of the server imports any.

- `RequestBodyLimitMiddleware`: reads a whole request body within bounds, and refuses with 413
  beyond them, exactly as the SDK does further in.
- `TransportSecurityMiddleware`: the SDK's check of `Host` and `Origin`. The SDK makes it behind the
  authentication, where a refusal of ours would come first and be audited.
- `build_resource_metadata_url`: where the SDK serves the metadata of a protected resource. A
  refusal has to name the same place.
- `Starlette.user_middleware`: the public `add_middleware` puts a middleware outermost, where
  nobody has read the token yet.
"""

from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "KnownNames",
    "RequestBodyLimitMiddleware",
    "add_behind_authentication",
    "resource_metadata_url",
]


def resource_metadata_url(resource: str) -> str:
    """Return the URL at which the SDK serves the metadata of `resource` (RFC 9728)."""
    return str(build_resource_metadata_url(AnyHttpUrl(resource)))


def add_behind_authentication(app: Starlette, middleware: Middleware) -> None:
    """Let `middleware` see each request next to the routes, when its token has been read."""
    app.user_middleware.append(middleware)


class KnownNames:
    """Refuses a request under another `Host` or from another `Origin` than `names`.

    ASGI middleware against DNS rebinding. It answers as the SDK does: 421 and 403.
    """

    def __init__(self, app: ASGIApp, names: TransportSecuritySettings) -> None:
        self._app = app
        self._check = TransportSecurityMiddleware(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        refusal = None
        if scope["type"] == "http":
            refusal = await self._check.validate_request(Request(scope), is_post=False)
        await (refusal or self._app)(scope, receive, send)
