"""`GET /health`: can this server be used? For load balancers and the like.

It takes no token, since whoever asks is no customer, and answers under any `Host`, since a load
balancer calls by address: there is nothing here that a web page could be tricked into fetching, and
nothing to be done. All that can be learned is one word, which anybody with a token could find out.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

logger = logging.getLogger(__name__)

PATH: Final = "/health"

EVERY_SECONDS: Final = 1.0
"""The bank is asked at most so often, however many ask here."""

TIME_LIMIT_SECONDS: Final = 2.0
"""A bank that says nothing for so long is not available."""


class Health:
    """Answers for the server, to whoever asks."""

    def __init__(
        self, ask: Callable[[], Awaitable[object]], monotonic: Callable[[], float]
    ) -> None:
        """`ask` asks the bank for something, and raises if it cannot answer."""
        self._ask = ask
        self._monotonic = monotonic
        self._asking = anyio.Lock()
        self._good = False
        self._holds_until = monotonic()

    async def answer(self, _: Request) -> Response:
        """Return the response to one request."""
        good = await self._is_good()
        return JSONResponse(
            {"status": "ok" if good else "unavailable"},
            status_code=200 if good else 503,
            headers={"Cache-Control": "no-store"},
        )

    async def _is_good(self) -> bool:
        """Return the answer of the last second, or a new one; all who wait get the same."""
        async with self._asking:
            if self._monotonic() >= self._holds_until:
                self._good = await self._can_serve()
                self._holds_until = self._monotonic() + EVERY_SECONDS
            return self._good

    async def _can_serve(self) -> bool:
        try:
            with anyio.fail_after(TIME_LIMIT_SECONDS):
                await self._ask()
        except Exception as error:
            logger.warning("The bank cannot serve (%s)", type(error).__name__)
            return False
        return True
