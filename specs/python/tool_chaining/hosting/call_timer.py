"""Time limits for calls, without the time in which a person answers the server's questions."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import anyio


class CallTimer:
    """The time limits of the calls on one connection. All pause while a person is being asked."""

    def __init__(self) -> None:
        self.asking = 0
        """Questions that the person has not answered yet."""
        self._left: dict[anyio.CancelScope, float] = {}
        """The seconds that each running call has left, as of the last question or its answer."""

    @contextmanager
    def limited(self, seconds: float | None) -> Iterator[None]:
        """Limit the block to so many seconds; None means no limit. Raises TimeoutError."""
        with anyio.CancelScope() as scope:
            if seconds is not None:
                self._left[scope] = seconds
                self._set(scope)
            try:
                yield
            finally:
                self._left.pop(scope, None)
        if scope.cancelled_caught:
            raise TimeoutError

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the limits inside the block, which asks a person."""
        if not self.asking:
            now = anyio.current_time()
            self._left = {scope: scope.deadline - now for scope in self._left}
        self.asking += 1
        for scope in self._left:
            self._set(scope)
        try:
            yield
        finally:
            self.asking -= 1
            for scope in self._left:
                self._set(scope)

    def _set(self, scope: anyio.CancelScope) -> None:
        scope.deadline = inf if self.asking else anyio.current_time() + self._left[scope]
