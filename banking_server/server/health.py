"""`GET /health`, for load balancers: whether this server can serve calls.

It needs no token, because a load balancer is not a customer. It accepts any `Host`, because a load
balancer uses the IP address. Its response is one word, and it changes nothing.
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
"""The bank is checked at most once in this number of seconds."""

TIME_LIMIT_SECONDS: Final = 2.0
"""A bank that does not answer in this number of seconds is not available."""


class Health:
    """The endpoint `/health`."""

    def __init__(
        self, ask: Callable[[], Awaitable[object]], monotonic: Callable[[], float]
    ) -> None:
        """`ask` checks the bank, and raises if it cannot serve calls."""
        self._ask = ask
        self._monotonic = monotonic
        self._asking = anyio.Lock()
        self._good = False
        self._valid_until = monotonic()

    async def answer(self, _: Request) -> Response:
        """Return the response to one request."""
        good = await self._is_good()
        return JSONResponse(
            {"status": "ok" if good else "unavailable"},
            status_code=200 if good else 503,
            headers={"Cache-Control": "no-store"},
        )

    async def _is_good(self) -> bool:
        """Return the result of the last second's check, or of a new one."""
        async with self._asking:
            if self._monotonic() >= self._valid_until:
                self._good = await self._can_serve()
                self._valid_until = self._monotonic() + EVERY_SECONDS
            return self._good

    async def _can_serve(self) -> bool:
        try:
            with anyio.fail_after(TIME_LIMIT_SECONDS):
                await self._ask()
        except Exception as error:
            logger.warning("The bank cannot serve (%s)", type(error).__name__)
            return False
        return True
