"""Repeats a call in every way that must not change its result, and confirms each difference.

A server's results can vary by chance, with the time, or with a counter, so one difference is not
a failure. The suite repeats the plain call and the varied call in an irregular order. A difference
is a failure only if it occurs in every varied call and in no plain call. Results are compared
member by member, so a member that varies by itself, such as the id of a record, does not hide a
difference in another member.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from tool_chaining_conformance.server.evidence import (
    Missing,
    Observation,
    RepeatedInExperimental,
    RepeatedWithMalformedSettings,
)
from tool_chaining_conformance.server.reading import (
    Member,
    differing,
    directive_of,
    ending,
    members_of,
)
from tool_chaining_conformance.server.variants import PLAIN, UNDECLARED, Variant
from tool_chaining_conformance.target.connection import ORDINARY, ToolCall
from tool_chaining_conformance.target.era import Era

CONFIRMING: Final = "PVVPVPPVVPVV"
"""The order of the confirming calls: P is the plain call, V the varied call."""

UNSTEADY: Final[frozenset[Member]] = frozenset({("refusal", ""), ("tool", "")})
"""The members that must be equal in all plain calls, or else nothing is compared."""


class CallGroup:
    """Calls made in the same way, with their endings."""

    def __init__(self, *calls: ToolCall) -> None:
        self.calls: list[ToolCall] = []
        self.endings: list[dict[Member, str]] = []
        self.varying: set[Member] = set()
        """The members that differ among these calls."""
        for call in calls:
            self.add(call)

    def add(self, call: ToolCall) -> None:
        """Add one more such call."""
        self.calls.append(call)
        self.endings.append(members_of(call))
        self.varying |= differing(self.endings[0], self.endings[-1])

    def differing(self, others: "CallGroup", parts: Collection[str]) -> frozenset[Member]:
        """Return the members of `parts` that are equal in all these calls and different in all
        `others`."""
        found = set.intersection(*(differing(self.endings[0], each) for each in others.endings))
        return frozenset(member for member in found - self.varying if member[0] in parts)

    def change(self) -> str | None:
        """Return a text about equal calls that ended differently, or None if they did not."""
        for call, each in zip(self.calls, self.endings, strict=True):
            if UNSTEADY & differing(self.endings[0], each):
                return (
                    f"the same call ended in {ending(self.calls[0])}, then in {ending(call)}; "
                    "`repeatable: true` is for a call that always has the same result"
                )
        return None


def _differing(plain: CallGroup, varied: CallGroup, variant: Variant) -> frozenset[Member]:
    """Return the members in which all varied calls differ from all plain calls.

    A member may vary by itself in one group and not in the other.
    """
    parts = variant.kind.compared
    found = plain.differing(varied, parts)
    return found | varied.differing(plain, parts) if len(varied.calls) > 1 else found


class Repeating:
    """One call that is repeated; its evidence is passed to `observe`."""

    def __init__(
        self,
        step: str,
        era: Era,
        first: ToolCall,
        make: Callable[[Variant, bool], ToolCall],
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
        self._plain = CallGroup(first)
        self._elsewhere = CallGroup(first)
        """The plain call, and more on a second connection, which may have another state."""
        self._undeclared: ToolCall | None = None

    def all(self, variants: Sequence[Variant]) -> None:
        """Make the plain call once more, and then the call in each of these ways."""
        self._plain.add(self._make(PLAIN, False))
        change = self._plain.change()
        for number, variant in enumerate(variants):
            change = change or self._one(variant)
            if change is not None:
                kinds = list(dict.fromkeys(each.kind for each in variants[number:]))
                last = self._plain.calls[-1].final.messages
                self._observe(Missing(self._step, kinds, change, last))
                break

    def _one(self, variant: Variant) -> str | None:
        """Make the call in one way. Return why nothing more can be compared, or None."""
        # In the legacy era another declaration needs another connection, with its own state.
        elsewhere = self._era is Era.LEGACY and variant.declares != ORDINARY
        plain, reference = PLAIN, self._elsewhere if elsewhere else self._plain
        if variant.kind is RepeatedWithMalformedSettings and self._undeclared is not None:
            plain, reference = UNDECLARED, CallGroup(self._undeclared)
        varied = CallGroup(*(self._make(variant, False) for _ in range(1 + variant.twice)))
        differs = _differing(reference, varied, variant)
        for which in CONFIRMING if differs else "":
            if which == "P":
                reference.add(self._make(plain, elsewhere))
            else:
                varied.add(self._make(variant, False))
            differs = _differing(reference, varied, variant)
            if not differs:
                break
        if variant is UNDECLARED:
            self._undeclared = varied.calls[0]
        change = reference.change() or varied.change()
        if change is None or differs:
            self._report(variant, reference, varied, differs)
        elif elsewhere:
            self._observe(Missing(self._step, [variant.kind], change))
        else:
            return change
        return None

    def _report(
        self, variant: Variant, reference: CallGroup, varied: CallGroup, differs: frozenset[Member]
    ) -> None:
        first, again = reference.calls[0], varied.calls[0]
        if variant.kind is RepeatedInExperimental and not (differs or self._sees_declaration()):
            return  # The calls do not show where the server reads the declaration.
        calls = (self._plain.calls[0], first, again)
        has_directive = any(directive_of(call.final) is not None for call in calls)
        if variant.kind is RepeatedWithMalformedSettings and not (differs or has_directive):
            return  # Calls without a directive show nothing about settings.
        messages = [*first.final.messages, *again.final.messages]
        self._observe(variant.kind(self._step, messages, first, again, variant.what, differs))

    def _sees_declaration(self) -> bool:
        """Return whether the server's results depend on the declaration."""
        if self._undeclared is None:
            return False
        return ("words", "") in differing(self._plain.endings[0], members_of(self._undeclared))
