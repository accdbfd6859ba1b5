"""`GET /health`: can this server be used? For load balancers and the like.

It takes no token, since whoever asks is no customer, and answers under any `Host`, since a load
balancer calls by address: there is nothing here that a web page could be tricked into fetching, and
nothing to be done. All that can be learned is one word, which anybody with a token could find out.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from banking_server.server.running import Running

PATH: Final = "/health"

EVERY_SECONDS: Final = 1.0
"""The bank is asked at most so often, however many ask here."""

TIME_LIMIT_SECONDS: Final = 2.0
"""A bank that says nothing for so long is not available."""


class Health:
    """ASGI middleware that answers for one path, outside of everything else."""

    def __init__(
        self,
        app: ASGIApp,
        running: Running,
        monotonic: Callable[[], float],
    ) -> None:
        self._app = app
        self._running = running
        self._monotonic = monotonic
        self._asked: asyncio.Task[bool] | None = None
        self._asked_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD"):
            await (await self._answer())(scope, receive, send)
        else:
            await Response(status_code=405, headers={"Allow": "GET, HEAD"})(scope, receive, send)

    async def _answer(self) -> Response:
        good = await self._is_good()
        return JSONResponse(
            {"status": "ok" if good else "unavailable"},
            status_code=200 if good else 503,
            headers={"Cache-Control": "no-store"},
        )

    async def _is_good(self) -> bool:
        """Return the answer of the last second, or a new one; all who wait wait for the same."""
        now = self._monotonic()
        asked = self._asked
        if asked is None or (asked.done() and now - self._asked_at >= EVERY_SECONDS):
            asked = self._asked = asyncio.create_task(self._running.can_be_read())
            self._asked_at = now
        left = max(0.0, self._asked_at + TIME_LIMIT_SECONDS - now)
        # A question that is stuck is left alone: a second one would be stuck behind it.
        done, _ = await asyncio.wait({asked}, timeout=left)
        return bool(done) and asked.result()
