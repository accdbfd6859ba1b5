"""Which tools a bearer token is good for: a call that lacks its scope is refused with HTTP 403."""

import json
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.messages.reading import MAX_BYTES, id_of
from banking_server.messages.replies import RequestId
from banking_server.messages.sdk import with_body
from banking_server.server.replies import challenge, failed
from banking_server.server.running import Running
from banking_server.server.settings import PATH
from banking_server.tools import READ_SCOPE, TRANSFER_SCOPE, required_scope
from banking_server.tools.calling import UNKNOWN_TOOL, record_scope_missing


@dataclass(frozen=True)
class _ToolCall:
    """What a request body says of the call that it makes, for all that can be read of it here."""

    request_id: RequestId
    tool: str
    meta: object


class ToolScopes:
    """Refuses with 403 a `tools/call` whose tool needs a scope that the token lacks (RFC 6750).

    The refused call leaves an audit event, `scope_missing`. ASGI middleware, behind the one that
    reads the token. So is whatever else is asked with a token that is not good for reading. Paths
    other than `/mcp` pass.
    """

    def __init__(self, app: ASGIApp, running: Running, metadata_url: str) -> None:
        self._app = app
        self._running = running
        self._metadata_url = metadata_url
        self._checked = with_body(self._check, MAX_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        token = get_access_token()
        if scope["type"] != "http" or scope["path"] != PATH or token is None:
            await self._app(scope, receive, send)
        elif READ_SCOPE in token.scopes and (
            scope["method"] != "POST" or TRANSFER_SCOPE in token.scopes
        ):
            # Good for every tool, so that it does not matter here what the request asks for.
            await self._app(scope, receive, send)
        elif scope["method"] != "POST":
            await self._refusal(READ_SCOPE, None)(scope, receive, send)
        else:
            await self._checked(scope, receive, send)

    async def _check(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            # Nor can it be read further in: `Bodies` refuses it.
            message = None
        token = get_access_token()
        granted = token.scopes if token is not None else []
        call = _call_in(message)
        refused: Response | None = None
        if call is not None:
            refused = await self._refused(call, granted)
        elif READ_SCOPE not in granted:
            refused = self._refusal(READ_SCOPE, None)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, call: _ToolCall, granted: list[str]) -> Response | None:
        """Audit a call that lacks a scope, and return the response; None if it lacks none."""
        known = required_scope(call.tool)
        needed = known or READ_SCOPE
        if needed in granted and READ_SCOPE in granted:
            return None
        tool = UNKNOWN_TOOL if known is None else call.tool
        try:
            await record_scope_missing(self._running.app, tool, call.meta)
        except Exception as failure:
            return failed(tool, failure, call.request_id)
        # Every request needs the scope for reading.
        missing = READ_SCOPE if needed in granted else needed
        return self._refusal(missing, call.request_id)

    def _refusal(self, needed: str, request_id: RequestId) -> Response:
        words = f"Required scope: {needed}"
        return challenge(403, request_id, self._metadata_url, words, "insufficient_scope")


def _call_in(message: Any) -> _ToolCall | None:
    """Return the call that a body makes. Only a single message can be a call at all."""
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return None
    params = message.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("name"), str):
        return None
    return _ToolCall(id_of(message), params["name"], params.get("_meta"))
