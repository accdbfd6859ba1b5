"""Repeats a call in every way that must not change its result, and confirms each difference.

A server's results can vary by chance, with the time, or with a counter, so one difference is not
a failure. The suite repeats the plain call and the varied call in an irregular order. A difference
is a failure only if it occurs in every varied call and in no plain call. Results are compared
member by member, so a member that varies by itself, such as the id of a record, does not hide a
difference in another member.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from tool_chaining_conformance.report.judgement import Untestable
from tool_chaining_conformance.server.evidence import Missing, Observation, Repetition
from tool_chaining_conformance.server.reading import Member, directive_of, ending, members_of
from tool_chaining_conformance.server.ways import (
    EXPERIMENTAL,
    MALFORMED,
    PLAIN,
    UNDECLARED,
    Way,
)
from tool_chaining_conformance.target.connection import ORDINARY, ToolCall
from tool_chaining_conformance.target.era import Era

CONFIRMING: Final = "PVVPVPPVVPVV"
"""The order of the confirming calls: P is the plain call, V the varied call."""

UNSTEADY: Final[Collection[Member]] = (("refusal", ""), ("tool", ""))
"""The members that must be equal in all plain calls, or else nothing is compared."""


def differing(plain: Sequence[ToolCall], varied: Sequence[ToolCall]) -> frozenset[Member]:
    """Return the members in which each varied call differs from each plain one.

    A member counts that is the same in all plain calls, or in all of two or more varied calls.
    """
    one, two = ([members_of(call) for call in calls] for calls in (plain, varied))
    found = set[Member]()
    for member in {name for members in (*one, *two) for name in members}:
        here, there = ({each.get(member) for each in group} for group in (one, two))
        steady = len(here) == 1 or (len(there) == 1 and len(two) > 1)
        if steady and here.isdisjoint(there):
            found.add(member)
    return frozenset(found)


def change(calls: Sequence[ToolCall]) -> str | None:
    """Return a text about equal calls that ended differently, or None if they did not."""
    for call in calls[1:]:
        if any(member in differing(calls[:1], [call]) for member in UNSTEADY):
            return (
                f"the same call ended in {ending(calls[0])}, then in {ending(call)}; "
                "`repeatable: true` is for a call that always has the same result"
            )
    return None


class Repeating:
    """One call that is repeated; its evidence is passed to `observe`."""

    def __init__(
        self,
        step: str,
        era: Era,
        first: ToolCall,
        make: Callable[[Way, bool], ToolCall],
        observe: Callable[[Observation], None],
    ) -> None:
        """
        Args:
            step: The step, as reports name it.
            era: The era.
            first: The plain call.
            make: Makes the call in one way; with True on a second connection of the same kind.
            observe: Receives the evidence.
        """
        self._step = step
        self._era = era
        self._make = make
        self._observe = observe
        self._plain = [first]
        self._elsewhere = [first]
        """The plain call, and more on a second connection, which may have another state."""
        self._undeclared: ToolCall | None = None

    def all(self, ways: Sequence[Way]) -> None:
        """Make the plain call once more, and then the call in each of these ways."""
        self._plain.append(self._make(PLAIN, False))
        changed = change(self._plain)
        for number, way in enumerate(ways):
            changed = changed or self._one(way)
            if changed is not None:
                checks = list(dict.fromkeys(each.check for each in ways[number:]))
                self._observe(Missing(self._step, checks, Untestable(changed)))
                break

    def _one(self, way: Way) -> str | None:
        """Make the call in one way. Return why nothing more can be compared, or None."""
        # In the legacy era another declaration needs another connection, with its own state.
        elsewhere = way.anew or (self._era is Era.LEGACY and way.declares != ORDINARY)
        plain, reference = PLAIN, self._elsewhere if elsewhere else self._plain
        if way.check == MALFORMED and self._undeclared is not None:
            plain, reference = UNDECLARED, [self._undeclared]
        varied = [self._make(way, False) for _ in range(1 + way.twice)]
        for which in CONFIRMING:
            if not (differs := self._differing(way, reference, varied)):
                break
            if which == "P":
                reference.append(self._make(plain, elsewhere))
            else:
                varied.append(self._make(way, False))
        differs = self._differing(way, reference, varied)
        if way is UNDECLARED:
            self._undeclared = varied[0]
        changed = change(reference) or change(varied)
        if changed is None or differs:
            self._report(way, reference[0], varied[0], differs)
        elif elsewhere:
            self._observe(Missing(self._step, [way.check], Untestable(changed)))
        else:
            return changed
        return None

    def _differing(
        self, way: Way, reference: Sequence[ToolCall], varied: Sequence[ToolCall]
    ) -> frozenset[Member]:
        parts = Repetition.compared(way.check)
        return frozenset(each for each in differing(reference, varied) if each[0] in parts)

    def _report(
        self, way: Way, first: ToolCall, again: ToolCall, differs: frozenset[Member]
    ) -> None:
        if way.check == EXPERIMENTAL and not (differs or self._sees_declaration()):
            return  # The calls do not show where the server reads the declaration.
        calls = (self._plain[0], first, again)
        has_directive = any(directive_of(call.final) is not None for call in calls)
        if way.check == MALFORMED and not (differs or has_directive):
            return  # Calls without a directive show nothing about settings.
        messages = [*first.final.messages, *again.final.messages]
        self._observe(Repetition(self._step, messages, way, first, again, differs))

    def _sees_declaration(self) -> bool:
        """Return whether the server's results depend on the declaration."""
        seen = self._undeclared
        return seen is not None and ("words", "") in differing(self._plain[:1], [seen])
