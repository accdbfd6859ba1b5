"""The record of doubt: which follow-up calls another chain could repeat (TC-C-55).

A chain that did not end well may have paid all the same. Whoever asked for it begins again, and a
new chain with an equal first call would pay a second time. So the host keeps each follow-up call
until its chain ends well. Until then, the tool of the call is in doubt for other chains.

This module is the model of it: it sends nothing, waits for nothing, and asks nobody.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tool_chaining.values import CallKey

MAX_ENTRIES: Final = 1_000
MAX_RECALLED: Final = 100
RECALL_FOR: Final = 60.0  # Seconds after its end in which a chain can still be cancelled.


class Answer(Enum):
    """What a call brought."""

    RUNNING = "running"
    REFUSED = "refused"
    """The server refused it before it acted."""
    NONE = "none"
    """It ended unanswered."""
    FAILURE = "failure"
    """It was answered without success: with `isError`, a task, or the error -32602."""
    SUCCESS = "success"
    """It brought a complete result without `isError`."""


EVERYWHERE: Final = {Answer.NONE}
"""In doubt for all chains, and not only for those with an equal first call."""
ENDED_BY_AN_EQUAL_CALL: Final = {Answer.NONE, Answer.FAILURE}
"""Over when an equal call succeeds."""
ENDED_BY_A_GOOD_CHAIN: Final = {Answer.FAILURE, Answer.SUCCESS}
"""Over when a later chain with an equal first call ends well."""


@dataclass(eq=False)
class Chain:
    """A chain, as the record knows it. `began` and `ended` number the events of the record."""

    id: str
    first: CallKey
    began: int
    ended: float = float("inf")
    ended_at: float = float("inf")


@dataclass(eq=False)
class Entry:
    """A call that was sent."""

    chain: Chain
    call: CallKey
    sent: int
    answer: Answer = Answer.RUNNING
    repeatable_for: set[CallKey] = field(default_factory=set[CallKey])
    """The first calls for whose chains the user agreed to a repetition."""


class Record:
    """The calls that another chain of the conversation must not repeat unasked."""

    def __init__(
        self, *, shared: bool, success: float, other: float, clock: Callable[[], float]
    ) -> None:
        """`success` and `other` are seconds that an entry lasts after the end of its chain."""
        self.shared = shared
        self._lifetimes = dict.fromkeys(Answer, other) | {Answer.SUCCESS: success}
        self._clock = clock
        self._event = itertools.count(1).__next__
        self._entries: list[Entry] = []
        self._ended_well: deque[tuple[Chain, list[Entry]]] = deque(maxlen=MAX_RECALLED)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is lost if this record is forgotten."""
        return not self._entries and not self._ended_well

    def begin(self, chain_id: str, first: CallKey) -> Chain:
        """Return a new chain."""
        return Chain(chain_id, first, self._event())

    def send(self, chain: Chain, call: CallKey, accepted: Iterable[Entry], *, keep: bool) -> Entry:
        """Note that a call is sent. The user knew of the entries `accepted` when agreeing to it."""
        entry = Entry(chain, call, self._event())
        if not self.shared:
            for known in accepted:
                known.repeatable_for.add(chain.first)
        if keep and call != chain.first:
            self._keep(entry)
        return entry

    def answered(self, entry: Entry, answer: Answer) -> None:
        """Note how a call ended. A first call enters the record if it ended unanswered."""
        entry.answer, is_first = answer, entry.call == entry.chain.first
        if answer is Answer.REFUSED:
            self._end_where(lambda known: known is entry)
        if is_first and answer is Answer.NONE:
            self._keep(entry)
        if answer is Answer.SUCCESS and not self.shared:
            self._end_where(
                lambda known: (
                    known.answer in ENDED_BY_AN_EQUAL_CALL
                    and known.call == entry.call
                    and (is_first or known.chain.first == entry.chain.first)
                    and known.chain.ended < entry.sent
                )
            )

    def end(self, chain: Chain, *, well: bool) -> None:
        """Note that a chain ended. After a good end, none of its calls is in doubt any more."""
        chain.ended, chain.ended_at = self._event(), self._clock()
        own = [entry for entry in self._entries if entry.chain is chain]
        if well:
            self._ended_well.append((chain, own))
            self._end_where(lambda known: known.chain is chain)
        if well and not self.shared:
            self._end_where(
                lambda known: (
                    known.answer in ENDED_BY_A_GOOD_CHAIN
                    and known.chain.first == chain.first
                    and known.chain.ended < chain.began
                )
            )

    def recall(self, chain_id: str) -> None:
        """Note that a chain was cancelled after its good end. If that was recent, it ended now."""
        for chain, own in [*self._ended_well]:
            if chain.id == chain_id and self._clock() - chain.ended_at <= RECALL_FOR:
                self._ended_well.remove((chain, own))
                self.end(chain, well=False)
                for entry in own:
                    self._keep(entry)

    def doubts(self, chain: Chain, call: CallKey, *, idempotent: bool) -> frozenset[Entry]:
        """Return the entries that put the tool of a call in doubt for a chain.

        A call that trusted hints mark as `idempotent` may repeat those that it equals.
        """
        now = self._clock()
        self._end_where(lambda known: now - known.chain.ended_at > self._lifetimes[known.answer])
        return frozenset(
            entry
            for entry in self._entries
            if entry.chain is not chain
            and entry.call.tool == call.tool
            and chain.first not in entry.repeatable_for
            and not (idempotent and entry.call == call)
            and (
                entry.chain.first == chain.first or (entry.answer in EVERYWHERE and not self.shared)
            )
        )

    def _keep(self, entry: Entry) -> None:
        """Add an entry. A full record drops its oldest answered entry, or else its oldest one."""
        if len(self._entries) == MAX_ENTRIES:
            answered = (e for e in self._entries if e.answer in ENDED_BY_A_GOOD_CHAIN)
            self._entries.remove(next(answered, self._entries[0]))
        self._entries.append(entry)

    def _end_where(self, is_over: Callable[[Entry], bool]) -> None:
        self._entries = [entry for entry in self._entries if not is_over(entry)]
