"""The body of an HTTP request is read here first: what is no message is refused with 400."""

import json
from typing import Any, Final

from mcp.server.auth.middleware.auth_context import get_access_token
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.messages.reading import MAX_BYTES, Refusal, read
from banking_server.messages.replies import reply
from banking_server.messages.sdk import once_more, with_body
from banking_server.server.answers import drop_odd_yes
from banking_server.server.settings import PATH

_MESSAGE: Final = "banking_server.message"


class Bodies:
    """Refuses a request whose body is no JSON-RPC message of MCP, before the SDK reads it.

    ASGI middleware, behind the one that reads the token. Requests without a good token pass, and
    the route refuses them. Paths other than `/mcp` pass too. An answer to a question that is no
    message leaves it open: its sender hears of the refusal, as nobody can over stdio, and can
    answer again.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._with_body = with_body(self._read, MAX_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        is_message = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == PATH
        served = self._app if not is_message or get_access_token() is None else self._with_body
        await served(scope, receive, send)

    async def _read(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        message = read(body)
        if isinstance(message, Refusal):
            refusal = reply(400, message.request_id, message.code, message.message)
            await refusal(scope, receive, send)
        else:
            if drop_odd_yes(message):
                changed = {"type": "http.request", "body": json.dumps(message).encode()}
                receive = once_more(changed, receive)
            scope[_MESSAGE] = message
            await self._app(scope, receive, send)


def message_of(scope: Scope) -> dict[str, Any]:
    """Return the message that a request brings, if it brings one; else nothing."""
    message: dict[str, Any] = scope.get(_MESSAGE, {})
    return message
