"""What reading borrows from the inner parts of the MCP SDK.

The SDK promises to keep what its documentation names. A minor release may move the rest.
`tests/test_sdk_seam.py` asserts each piece.

- `RequestBodyLimitMiddleware`: reads a whole request body within bounds, and refuses with 413
  beyond them, exactly as the SDK does further in.
- `SessionMessage`: a message on the streams of a connection.
"""

from collections.abc import Awaitable, Callable

from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.message import SessionMessage
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SessionMessage", "once_more", "with_body"]


def with_body(
    serve: Callable[[bytes, Scope, Receive, Send], Awaitable[None]], most_bytes: int
) -> ASGIApp:
    """Return the application that reads a request's whole body before it is served.

    `serve` is given the body, and beside it a `receive` that gives the body once more. A body of
    more than `most_bytes` is refused with 413.
    """

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        await serve(first.get("body", b""), scope, once_more(first, receive), send)

    bounded = RequestBodyLimitMiddleware(whole, most_bytes)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        body = first.get("body", b"")
        again = once_more(first, receive)
        # Most come in one piece, and there is nothing to collect.
        if first.get("more_body") or len(body) > most_bytes:
            await bounded(scope, again, send)
        else:
            await serve(body, scope, again, send)

    return app


def once_more(first: Message, receive: Receive) -> Receive:
    """Return the `receive` that begins with what has been received."""
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return first

    return again
