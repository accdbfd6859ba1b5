"""A request over HTTP gets an answer with its own id, whatever the id is.

The SDK takes a request whose id is null or 1.5 for a notification, and answers a body that it
cannot read with id null.
"""

import json
from typing import Any

from mcp.types import INVALID_REQUEST
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tool_chaining.text import is_json
from tool_chaining_proxy.hosting.reading import whole


class AnyId:
    """Passes a request to `app`, and corrects an answer that lacks the id of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        parts: list[bytes] = []
        head: Message | None = None
        answered = b""

        async def receive_and_note() -> Message:
            message = await receive()
            parts.append(message.get("body", b""))
            return message

        async def send_corrected(message: Message) -> None:
            nonlocal head, answered
            if message["type"] == "http.response.start" and message["status"] in (202, 400):
                head = message
            elif head is None:
                await send(message)
            else:
                answered += message.get("body", b"")
                if not message.get("more_body"):
                    if (error := _with_id(_object(b"".join(parts)), answered)) is not None:
                        return await JSONResponse(error, 400)(scope, receive, send)
                    await send(head)
                    await send({"type": "http.response.body", "body": answered})

        await self._app(scope, receive_and_note, send_corrected)


def _with_id(request: Any, answered: bytes) -> Any:
    """Return the error with the id of the request; None if the answer is as it should be."""
    if not (isinstance(request, dict) and {"id", "method"} <= request.keys()):
        return None
    words = "The id of a request is a string or an integer."
    error = {"jsonrpc": "2.0", "error": {"code": INVALID_REQUEST, "message": words}}
    answer = _object(answered) if answered else error
    if not isinstance(answer, dict) or answer.get("id") is not None:
        return None
    number = whole(request["id"])
    return {**answer, "id": number if is_json(number) else None}


def _object(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
