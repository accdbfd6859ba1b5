"""A conversation: its record of doubt, and the turns of its chains (TC-C-55, TC-C-57)."""

import time
from collections.abc import Callable
from typing import Final

import anyio

from tool_chaining.record import Record
from tool_chaining.values import CallKey

HOUR: Final = 3600.0


class Turn:
    """The turn of a chain among those with an equal first call."""

    def __init__(self, first: CallKey) -> None:
        self.first = first
        self.over = anyio.Event()


class Conversation(Record):
    """What a host remembers of its conversation with a user, about one server.

    Keep one object per conversation, across reconnections and restarts of the server::

        follower = Follower(new_client, consent=policy, conversation=follower.conversation)
    """

    def __init__(
        self,
        *,
        remember_for: float = 24 * HOUR,
        remember_success_for: float = HOUR,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with an empty record.

        Args:
            remember_for: Seconds that a call stays in doubt after the end of its chain.
            remember_success_for: The same for a call that succeeded, in a chain that did not end
                well.
            shared: Whether several users who cannot be told apart use this record. Then a call is
                in doubt for chains with an equal first call only. The doubt ends with time, or
                when the call's own chain ends well, and never because a user agreed.
            clock: Returns the time in seconds.
        """
        super().__init__(
            shared=shared, success=remember_success_for, other=remember_for, clock=clock
        )
        self._turns: list[Turn] = []

    async def take_turn(self, first: CallKey, patience: float | None) -> Turn:
        """Wait for the chains with an equal first call that came before, then return a turn.

        It waits at most `patience` seconds for each of them. After that, the record of doubt alone
        decides (TC-C-57).
        """
        ahead = [turn for turn in self._turns if turn.first == first]
        turn = Turn(first)
        self._turns.append(turn)
        try:
            for other in ahead:
                with anyio.move_on_after(patience):
                    await other.over.wait()
        except BaseException:
            self.give_up_turn(turn)
            raise
        return turn

    def give_up_turn(self, turn: Turn) -> None:
        """Let the next chain with an equal first call go on."""
        self._turns.remove(turn)
        turn.over.set()

    def resume_turn(self, turn: Turn) -> None:
        """Let chains that come from now on wait for one that gave up its turn."""
        turn.over = anyio.Event()
        self._turns.append(turn)
