"""Calls whose effect is unknown, kept so that no later chain makes one again unasked (TC-C-55)."""

from typing import Final
from weakref import finalize

KEPT: Final = 1_000
"""Calls that are kept; of more, the oldest are forgotten."""

CallKey = tuple[str, str]
"""A tool, and its canonical arguments."""


class CallsInDoubt:
    """The calls to one server, by one principal, that were started and brought no result.

    It lives as long as the session does. Chains that run side by side share it: while a call is
    under way, nobody knows its effect either.
    """

    def __init__(self) -> None:
        self._calls: dict[CallKey, int] = {}

    def __contains__(self, call: CallKey) -> bool:
        return call in self._calls

    def add(self, call: CallKey) -> None:
        """Keep a call that is started now."""
        self._calls[call] = self._calls.pop(call, 0) + 1
        if len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def discard(self, call: CallKey) -> None:
        """Forget a call whose effect is known by now, and none of those that equal it."""
        if (left := self._calls.pop(call, 0) - 1) > 0:
            self._calls[call] = left


_OF_CLIENT: Final[dict[int, CallsInDoubt]] = {}
"""By the identity of a client, since an `mcp.Client` has no hash."""


def calls_in_doubt(client: object) -> CallsInDoubt:
    """Return those of a connected client: the same ones for as long as the object is there."""
    kept = _OF_CLIENT.get(id(client))
    if kept is None:
        finalize(client, _OF_CLIENT.pop, id(client), None)
        kept = _OF_CLIENT[id(client)] = CallsInDoubt()
    return kept
