"""The record of doubt: which follow-up calls could be made twice (TC-C-55, TC-C-57)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import anyio

from tool_chaining.values import canonical

REMEMBER_FOR: Final = 24 * 3600.0
"""How long a doubt lasts by default, in seconds."""

MAX_DOUBTS: Final = 1_000
"""The most doubts in one record; the oldest one goes first."""


@dataclass(frozen=True)
class CallKey:
    """What makes two calls equal: the tool and the canonical arguments."""

    tool: str
    arguments: str

    @classmethod
    def of(cls, tool: str, arguments: dict[str, Any]) -> "CallKey":
        """Return the key of a call.

        A call whose arguments RFC 8785 cannot write equals no other: a directive with the same
        arguments would be malformed.
        """
        try:
            return cls(tool, canonical(arguments))
        except (ValueError, RecursionError):
            return cls(tool, str(uuid4()))


@dataclass(frozen=True, eq=False)
class Doubt:
    """A call that a later chain might repeat."""

    call: CallKey
    first: CallKey
    """The first call of its chain."""
    everywhere: bool
    """Whether its tool is in doubt in every chain, or only in those with an equal first call."""
    since: float


@dataclass(eq=False)
class RunningCall:
    """A call that has started. Unless noted otherwise, its effect is unknown."""

    call: CallKey
    first: CallKey
    in_doubt: bool = True
    everywhere: bool = True
    """As `Doubt` has it, if the call ends in doubt."""
    refused: bool = False
    """Whether the server refused the call before it acted. Then nothing ends in doubt."""
    over: anyio.Event = field(default_factory=anyio.Event)


class Conversation:
    """What a host remembers of its conversation with a user, about one server.

    Keep one object per conversation, across reconnections and restarts of the server::

        follower = Follower(new_client, consent=policy, conversation=follower.conversation)
    """

    def __init__(
        self,
        *,
        remember_for: float = REMEMBER_FOR,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with an empty record.

        Args:
            remember_for: Seconds that a doubt lasts.
            shared: Whether several conversations that cannot be told apart use this record. Then a
                doubt concerns only chains with an equal first call, and no user's yes ends it.
            clock: Returns the time in seconds.
        """
        self._remember_for = remember_for
        self._shared = shared
        self._clock = clock
        self._doubts: list[Doubt] = []
        self._running: list[RunningCall] = []

    def doubts(self, tool: str, first: CallKey) -> frozenset[Doubt]:
        """Return the reasons why a tool is in doubt for a chain with this first call."""
        oldest = self._clock() - self._remember_for
        self._doubts = [doubt for doubt in self._doubts if doubt.since > oldest]
        return frozenset(
            doubt
            for doubt in self._doubts
            if doubt.call.tool == tool and (doubt.everywhere or doubt.first == first)
        )

    async def wait_for_equal(self, tool: str, first: CallKey) -> None:
        """Wait while a chain with an equal first call is calling the tool (TC-C-57)."""
        while running := [r for r in self._running if r.call.tool == tool and r.first == first]:
            await running[0].over.wait()

    @contextmanager
    def call(
        self, call: CallKey, first: CallKey, agreed: frozenset[Doubt] = frozenset()
    ) -> Iterator[RunningCall]:
        """Record a call that runs inside the block.

        `agreed` are the doubts that the user knew about when agreeing. They end unless the server
        refuses the call.
        """
        running = RunningCall(call, first)
        self._running.append(running)
        try:
            yield running
        finally:
            self._running.remove(running)
            running.over.set()
            if not running.refused and not self._shared:
                self._doubts = [doubt for doubt in self._doubts if doubt not in agreed]
            if not running.refused and running.in_doubt:
                self._add(call, first, everywhere=running.everywhere and not self._shared)

    def settle(self, call: CallKey) -> None:
        """End the doubts about a call: an equal one returned a result without `isError`."""
        self._doubts = [doubt for doubt in self._doubts if doubt.call != call]

    def not_delivered(self, first: CallKey, calls: list[CallKey]) -> None:
        """Record follow-up calls of a chain whose merged result did not reach the caller.

        A model that did not get the result begins again, so the calls are in doubt for chains with
        an equal first call.
        """
        for call in calls:
            self._add(call, first, everywhere=False)

    def _add(self, call: CallKey, first: CallKey, *, everywhere: bool) -> None:
        del self._doubts[: 1 - MAX_DOUBTS]
        self._doubts.append(Doubt(call, first, everywhere, self._clock()))
