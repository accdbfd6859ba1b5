"""Calls whose effect is unknown: no later chain makes one again without asking (TC-C-55)."""

from typing import Final

KEPT: Final = 1_000
"""Calls that are remembered at most; the oldest are forgotten first."""

CallKey = tuple[str, str]
"""A tool, and its canonical arguments."""


class CallsInDoubt:
    """The calls to one server, by one principal, that were started and returned no result.

    Keep one object for each session. Chains that run at the same time share it: the effect of a
    running call is unknown too.
    """

    def __init__(self) -> None:
        self._calls: dict[CallKey, int] = {}

    def __contains__(self, call: CallKey) -> bool:
        return call in self._calls

    def add(self, call: CallKey) -> None:
        """Remember a call that starts now."""
        self._calls[call] = self._calls.pop(call, 0) + 1
        if len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def discard(self, call: CallKey) -> None:
        """Forget one call whose effect is known now; equal calls that still run are kept."""
        if (left := self._calls.pop(call, 0) - 1) > 0:
            self._calls[call] = left
