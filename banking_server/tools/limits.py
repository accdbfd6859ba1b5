"""Limits one customer's calls per second and at once, so that nobody overloads the bank.

Each server process counts its own calls: several processes allow several times as many.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

BURST_SECONDS: Final = 2
"""After a pause, a customer may make the calls of this number of seconds at once."""

MOST_OPEN: Final = 32
"""The most calls of one customer that may run at once. Many of them wait for an answer."""

_MANY: Final = 10_000


class RateLimiter:
    """A token bucket for each customer, stored as the time at which it is full again."""

    def __init__(
        self, calls_per_second: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow `calls_per_second`; 0 means no limit. `monotonic` returns seconds."""
        self._gap = 1 / calls_per_second if calls_per_second else 0.0
        self._monotonic = monotonic
        self._full_at: dict[str, float] = {}

    def wait(self, customer: str) -> float:
        """Count one call of `customer` and return 0, or return the seconds until one is allowed.

        A call that has to wait is not counted.
        """
        if not self._gap:
            return 0.0
        now = self._monotonic()
        full_at = max(self._full_at.get(customer, now), now) + self._gap
        too_early = full_at - now - max(BURST_SECONDS, self._gap)
        if too_early > 0:
            return too_early
        if len(self._full_at) >= _MANY:
            # A full bucket need not be stored. The others had a call within the last seconds.
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        self._full_at[customer] = full_at
        return 0.0


class OpenCalls:
    """Counts the running calls of each customer, or of each session."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    def any_of(self, customer: str) -> bool:
        """Return whether a call of `customer` is running."""
        return customer in self._running

    @contextmanager
    def running_call(self, customer: str, most: int) -> Iterator[bool]:
        """Count a call of `customer` until the end of the block; false if `most` are running."""
        if self._running[customer] >= most:
            yield False
            return
        self._running[customer] += 1
        try:
            yield True
        finally:
            self._running[customer] -= 1
            if not self._running[customer]:
                del self._running[customer]
