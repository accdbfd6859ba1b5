"""Tools whose last call has an unknown effect: none is called again without asking (TC-C-55)."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tool_chaining.result import FollowUpStatus


@dataclass
class RunningCall:
    """A call that has started. Its effect is unknown until the caller sets `status`."""

    status: FollowUpStatus = FollowUpStatus.UNKNOWN


class CallsInDoubt:
    """The tools of one server, for one principal, whose last call has an unknown effect.

    `name in calls` says whether the tool is one of them. The effect of a running call is unknown
    too. The record belongs to the host's conversation with its user: keep one object for it, and
    give it to each chain, also after a new connection or a new start of the server.
    """

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._lost: dict[str, RunningCall] = {}
        """By tool: the newest call that ended with an unknown effect."""

    def __contains__(self, tool: str) -> bool:
        return self._running[tool] > 0 or tool in self._lost

    @contextmanager
    def call(self, tool: str) -> Iterator[RunningCall]:
        """Record a call of a tool, which lasts as long as the block.

        A result settles the doubt about calls that were lost before this one started.
        """
        call, lost = RunningCall(), self._lost.get(tool)
        self._running[tool] += 1
        try:
            yield call
        finally:
            self._running[tool] -= 1
            if call.status is FollowUpStatus.UNKNOWN:
                self._lost[tool] = call
            elif call.status is FollowUpStatus.MADE and self._lost.get(tool) is lost:
                self._lost.pop(tool, None)
