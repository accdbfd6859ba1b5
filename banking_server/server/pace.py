"""How fast a customer may go over HTTP: a request too many is refused with 429."""

from mcp.server.auth.middleware.auth_context import get_access_token
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.server.replies import too_fast
from banking_server.server.running import Running
from banking_server.tools.results import too_fast_words


class RequestPace:
    """Counts each authenticated request, whatever it asks for, and leaves no audit event.

    ASGI middleware, behind the one that reads the token. What a refused request asks for is not
    read: refusing has to cost next to nothing.
    """

    def __init__(self, app: ASGIApp, running: Running) -> None:
        self._app = app
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        token = get_access_token() if scope["type"] == "http" else None
        if token is not None and token.subject is not None:
            seconds = self._running.app.pace.wait(token.subject)
            if seconds:
                await too_fast(seconds, too_fast_words(seconds))(scope, receive, send)
                return
        await self._app(scope, receive, send)
