"""Which tools a bearer token is good for: a call that lacks its scope is refused with HTTP 403."""

import json
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE, required_scope

PATH: Final = "/mcp"
"""Where the HTTP server has its endpoint."""

MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""The largest HTTP request body: room for an argument of a megabyte to be refused by name."""


class ToolScopes:
    """Answers 403 to a `tools/call` whose tool needs a scope that the token lacks (RFC 6750).

    ASGI middleware. A request without a good token passes: the route refuses it. So does what is
    not for `/mcp`.
    """

    def __init__(self, app: ASGIApp, metadata_url: str) -> None:
        self._app = app
        self._metadata_url = metadata_url
        self._bounded = RequestBodyLimitMiddleware(self._check, MAX_REQUEST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if (
            scope["type"] != "http"
            or scope["path"] != PATH
            or not isinstance(scope.get("user"), AuthenticatedUser)
        ):
            await self._app(scope, receive, send)
        elif scope["method"] == "POST":
            await self._bounded(scope, receive, send)
        else:
            # Without sessions there is no stream to open with GET, and none to end with DELETE.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        try:
            body = json.loads(first.get("body", b""))
        except (ValueError, RecursionError):
            # Whatever cannot be read here must not be read any differently further in.
            error = {"code": PARSE_ERROR, "message": "The request body is not JSON"}
            await _reply(400, None, error)(scope, receive, send)
            return
        missing = self._missing_scope(body, scope["user"].scopes)
        if missing is not None:
            await self._refuse(missing, body.get("id"))(scope, receive, send)
            return
        delivered = False

        async def again() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return first

        await self._app(scope, again, send)

    @staticmethod
    def _missing_scope(body: Any, granted: list[str]) -> str | None:
        """Return the scope that the call lacks. Only a single message can be a call at all."""
        if not isinstance(body, dict) or body.get("method") != "tools/call":
            return None
        params = body.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        if not isinstance(tool, str):
            return None
        needed = required_scope(tool)
        return None if needed in granted else needed

    def _refuse(self, needed: str, request_id: Any) -> JSONResponse:
        words = f"Required scope: {needed}"
        response = _reply(403, request_id, {"code": INVALID_REQUEST, "message": words})
        response.headers["WWW-Authenticate"] = (
            f'Bearer error="insufficient_scope", error_description="{words}", '
            f'scope="{READ_SCOPE} {TRANSFER_SCOPE}", resource_metadata="{self._metadata_url}"'
        )
        return response


def _reply(status: int, request_id: Any, error: dict[str, Any]) -> JSONResponse:
    body = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return JSONResponse(body, status_code=status)
