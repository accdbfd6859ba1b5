"""Makes a call again in every way that must not matter, and confirms each difference.

Servers answer by chance, by the hour, by a counter. So nobody is blamed for one difference: the
plain call and the varied one are made again in turn, in an order without a period. What is blamed
came every time with the variation and never without. Endings are compared member by member, so
that what varies by itself, such as the id of a record, hides nothing but itself.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from banking_server.conformance.server.evidence import (
    Missing,
    Observation,
    RepeatedInExperimental,
    RepeatedWithMalformedSettings,
)
from banking_server.conformance.server.reading import (
    Member,
    differing,
    directive_of,
    ending,
    members_of,
)
from banking_server.conformance.server.variants import PLAIN, UNDECLARED, Variant
from banking_server.conformance.target.connection import ORDINARY, ToolCall
from banking_server.conformance.target.era import Era

CONFIRMING: Final = "PVVPVPPVVPVV"
"""The calls that confirm a difference: P is the plain one, V the varied one."""

UNSTEADY: Final[frozenset[Member]] = frozenset({("refusal", ""), ("tool", "")})
"""The members that have to be alike in plain calls for anything to be compared."""


class Alike:
    """Calls that were made in one way, and what they have in common."""

    def __init__(self, *calls: ToolCall) -> None:
        self.calls: list[ToolCall] = []
        self.endings: list[dict[Member, str]] = []
        self.varying: set[Member] = set()
        """The members in which they differ among themselves."""
        for call in calls:
            self.add(call)

    def add(self, call: ToolCall) -> None:
        """Add one more call of the kind."""
        self.calls.append(call)
        self.endings.append(members_of(call))
        self.varying |= differing(self.endings[0], self.endings[-1])

    def differing(self, others: "Alike", parts: Collection[str]) -> frozenset[Member]:
        """Return the members of `parts` that are alike in all these calls, and other in all of
        the others."""
        found = set.intersection(*(differing(self.endings[0], each) for each in others.endings))
        return frozenset(member for member in found - self.varying if member[0] in parts)

    def change(self) -> str | None:
        """Say how the very same call came to end differently; None if it did not."""
        for call, each in zip(self.calls, self.endings, strict=True):
            if UNSTEADY & differing(self.endings[0], each):
                return (
                    f"the very same call ended in {ending(self.calls[0])}, then in {ending(call)}; "
                    "a step with `repeatable: true` needs a call that may be made often, in the "
                    "same state"
                )
        return None


class Repeating:
    """One call that is made again; what comes of it goes to `observe`."""

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
            make: Makes the call in one way; True: on a second connection of the same kind.
            observe: Takes what is seen.
        """
        self._step = step
        self._era = era
        self._make = make
        self._observe = observe
        self._plain = Alike(first)
        self._elsewhere = Alike(first)
        """The plain call, and further ones on a second connection, which may have another state."""
        self._undeclared: ToolCall | None = None

    def all(self, variants: Sequence[Variant]) -> None:
        """Make the call once more as it was, and then in each of these ways."""
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
        """Make the call in one way; return why nothing can be compared any longer, if so."""
        # Where a connection carries the declaration, another one may have another state.
        second = self._era is Era.LEGACY and variant.declares != ORDINARY
        plain, reference = PLAIN, self._elsewhere if second else self._plain
        if variant.kind is RepeatedWithMalformedSettings and self._undeclared is not None:
            plain, reference = UNDECLARED, Alike(self._undeclared)
        varied = Alike(self._make(variant, False))
        differs = reference.differing(varied, variant.kind.compared)
        for which in CONFIRMING if differs else "":
            if which == "P":
                reference.add(self._make(plain, second))
            else:
                varied.add(self._make(variant, False))
            differs = reference.differing(varied, variant.kind.compared)
            if not differs:
                break
        if variant is UNDECLARED:
            self._undeclared = varied.calls[0]
        change = reference.change() or varied.change()
        if change is None or differs:
            self._tell(variant, reference, varied, differs)
        elif second:
            self._observe(Missing(self._step, [variant.kind], change))
        else:
            return change
        return None

    def _tell(
        self, variant: Variant, reference: Alike, varied: Alike, differs: frozenset[Member]
    ) -> None:
        first, again = reference.calls[0], varied.calls[0]
        if variant.kind is RepeatedInExperimental and not (differs or self._tells_apart()):
            return  # Then it does not show where the server reads the declaration.
        calls = (self._plain.calls[0], first, again)
        shown = any(directive_of(call.final) is not None for call in calls)
        if variant.kind is RepeatedWithMalformedSettings and not (differs or shown):
            return  # Calls that bring nobody a directive tell nothing about settings.
        messages = [*first.final.messages, *again.final.messages]
        self._observe(variant.kind(self._step, messages, first, again, variant.what, differs))

    def _tells_apart(self) -> bool:
        """Return whether a client that declared is told from one that did not."""
        if self._undeclared is None:
            return False
        return ("words", "") in differing(self._plain.endings[0], members_of(self._undeclared))
