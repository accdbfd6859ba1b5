"""Makes a call again in every way that must not matter, and confirms each difference.

Servers answer by chance, by the hour, by a counter. So nobody is blamed for one difference: the
plain call and the varied one are made again in turn, in an order without a period. What is blamed
came every time with the variation and never without. Endings are compared member by member, so
that what varies by itself, such as the id of a record, hides nothing but itself.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.server.evidence import (
    Missing,
    NotCompared,
    Observation,
    RepeatedInExperimental,
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithMalformedSettings,
    Repetition,
    ResultInWords,
)
from banking_server.conformance.server.reading import (
    Ending,
    Member,
    directive_of,
    ending,
    how_refused,
    members_in_words,
)
from banking_server.conformance.server.variants import PLAIN, UNDECLARED, Variant
from banking_server.conformance.target.connection import ToolCall
from banking_server.conformance.target.era import Era

CONFIRMING: Final = "PVVPVPPVVPVV"
"""The calls that confirm a difference: P is the plain one, V the varied one."""

CONFIRMING_CALLS: Final = len(CONFIRMING)

REFUSAL: Final[Member] = ("refusal",)
TOOL: Final[Member] = ("tool",)


class Alike:
    """Calls that were made in one way, and what they have in common."""

    def __init__(self, *calls: ToolCall) -> None:
        self.calls: list[ToolCall] = []
        self.endings: list[Ending] = []
        self.varying: set[Member] = set()
        """The members in which they differ among themselves."""
        for call in calls:
            self.add(call)

    def add(self, call: ToolCall) -> None:
        """Add one more call of the kind."""
        self.calls.append(call)
        self.endings.append(Ending(call))
        self.varying |= self.endings[0].differing(self.endings[-1])

    def differing(self, others: "Alike", parts: Collection[str]) -> frozenset[Member]:
        """Return the members of `parts` that are alike in all these calls, and other in all of
        the others."""
        found: set[Member] | None = None
        for other in others.endings:
            differs = self.endings[0].differing(other) - self.varying
            found = differs if found is None else found & differs
        return frozenset(member for member in found or () if member[0] in parts)


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
        self._first = first
        self._make = make
        self._observe = observe
        self._plain = Alike(first)
        self._elsewhere = Alike(first)
        self._undeclared: list[ToolCall] = []
        self._told_apart: bool | None = None
        """Whether a client that declared was told from one that did not, if that is known."""
        self._changes_by_itself: str | None = None
        self._left_out: dict[type[Repetition], set[Member]] = {}
        """What was not compared, as plain calls differ in it."""

    def all(self, variants: Sequence[Variant]) -> None:
        """Make the call in each of these ways."""
        for number, variant in enumerate(variants):
            self._one(variant)
            if self._changes_by_itself is not None:
                left = dict.fromkeys(each.kind for each in variants[number + 1 :])
                words = [ResultInWords] if RepeatedUndeclared in left else []
                reason = self._changes_by_itself
                self._observe(Missing(self._step, [*left, *words], reason))
                break
        self._name_what_was_left_out()

    def _one(self, variant: Variant) -> None:
        again = self._make(variant, False)
        if variant is PLAIN:
            self._plain.add(again)
            self._look_for_change(PLAIN, self._plain.calls)
            if self._changes_by_itself is None:
                self._tell(variant, self._first, again, frozenset())
            return
        if variant.kind is RepeatedWithMalformedSettings and self._undeclared:
            reference, plain = Alike(self._undeclared[0]), UNDECLARED
        elif variant.takes_a_connection(self._era):
            reference, plain = self._elsewhere, PLAIN
        else:
            reference, plain = self._plain, PLAIN
        varied = Alike(again)
        differs = reference.differing(varied, variant.kind.compared)
        if differs:
            differs = self._confirmed(variant, plain, reference, varied)
        if variant is UNDECLARED:
            self._undeclared = varied.calls
            apart = Ending(self._first).differing(varied.endings[0])
            self._told_apart = ("words",) in apart
        by_itself = reference.varying | varied.varying
        if differs or not (self._changes_by_itself or REFUSAL in by_itself):
            self._tell(variant, reference.calls[0], again, differs)
            left_out = self._left_out.setdefault(variant.kind, set())
            left_out |= {each for each in reference.varying if each[0] in variant.kind.compared}
        else:
            reason = f"the call ended differently by itself: {ending(again)}"
            reason = self._changes_by_itself or reason
            self._observe(Missing(self._step, [variant.kind], reason, _messages(again)))

    def _confirmed(
        self, variant: Variant, plain: Variant, reference: Alike, varied: Alike
    ) -> frozenset[Member]:
        """Return the members that differ every time; makes more calls of both kinds."""
        # Where a connection carries the declaration, another one may have another state.
        second = variant.takes_a_connection(self._era)
        in_turn = [reference.calls[-1], *varied.calls]
        differs: frozenset[Member] = frozenset()
        for which in CONFIRMING:
            if which == "P":
                reference.add(self._make(plain, second))
                in_turn.append(reference.calls[-1])
            else:
                varied.add(self._make(variant, False))
                in_turn.append(varied.calls[-1])
            differs = reference.differing(varied, variant.kind.compared)
            if not differs:
                break
        if differs & {REFUSAL, TOOL} or second:
            # What the variation changes is no change by itself; nor is what tells connections.
            self._look_for_change(variant, varied.calls)
            self._look_for_change(plain, reference.calls[1:] if second else reference.calls, second)
        else:
            self._look_for_change(plain, in_turn)
        return differs

    def _look_for_change(
        self, variant: Variant, calls: Sequence[ToolCall], second: bool = False
    ) -> None:
        """Notice that calls made in one way, in one place, ended differently."""
        if self._changes_by_itself is not None:
            return
        alike = Alike(*calls)
        if REFUSAL in alike.varying:
            # What fails now and then names no other tool: it names none because it failed.
            call = next(each for each in calls if how_refused(each) != how_refused(calls[0]))
            reason = f"the very same call ended in {ending(calls[0])}, then in {ending(call)}"
        elif TOOL in alike.varying:
            for _ in range(CONFIRMING_CALLS if not _comes_back(alike) else 0):
                alike.add(self._make(variant, second))
                if _comes_back(alike):
                    break
            call = next(
                c
                for c, e in zip(alike.calls, alike.endings, strict=True)
                if _tool(e) != _tool(alike.endings[0])
            )
            if _comes_back(alike) and REFUSAL not in alike.varying:
                self._changes_by_itself = (
                    f"the tool that is named changes now and then: {ending(calls[0])}, "
                    f"then {ending(call)}"
                )
                self._tell(PLAIN, calls[0], call, frozenset({TOOL}))
                return
            reason = (
                f"the state of the server changed: the very same call ended in {ending(calls[0])}, "
                f"and from then on in {ending(call)}; a step with `repeatable: true` needs a call "
                "that may be made often"
            )
        else:
            return
        self._changes_by_itself = reason
        self._observe(Missing(self._step, [RepeatedUnchanged], reason, _messages(call)))

    def _tell(
        self, variant: Variant, first: ToolCall, again: ToolCall, differs: frozenset[Member]
    ) -> None:
        if variant.kind is RepeatedInExperimental and not (self._told_apart or differs):
            return  # Then it does not show where the server reads the declaration.
        if variant.kind is RepeatedWithMalformedSettings and not differs:
            # A server may leave out the directive for whoever did not declare, and it tells
            # something about malformed settings nevertheless: if others get one.
            ended = (call.final for call in (self._first, first, again))
            if all(directive_of(reply) is None for reply in ended):
                return
        messages = [*_messages(first), *_messages(again)]
        kind: type[Repetition] = variant.kind
        self._observe(kind(self._step, messages, first, again, variant.what, differs))

    def _name_what_was_left_out(self) -> None:
        """Say in which members nothing was compared, for kinds of repetition alike."""
        kinds: dict[str, list[type[Repetition]]] = {}
        for kind, members in self._left_out.items():
            if members:
                kinds.setdefault(members_in_words(members), []).append(kind)
        for named, some in kinds.items():
            reason = f"not compared, as plain calls differ in it: {named}"
            self._observe(NotCompared(self._step, some, reason))

    @property
    def undeclared(self) -> ToolCall | None:
        """The call as a client that did not declare; one with a directive, if there was any."""
        with_directive = [call for call in self._undeclared if directive_of(call.final)]
        return next(iter([*with_directive, *self._undeclared]), None)


def _tool(ending: Ending) -> str | None:
    return ending.members.get(TOOL)


def _comes_back(calls: Alike) -> bool:
    """Return whether the tool that calls name, one after the other, is one that it was before.

    What changes and stays is the state of the server. What comes back is chance, or a counter.
    """
    before: set[str | None] = set()
    last: str | None = None
    for number, named in enumerate(map(_tool, calls.endings)):
        if number and named != last:
            before.add(last)
            if named in before:
                return True
        last = named
    return False


def _messages(call: ToolCall) -> Sequence[WireMessage]:
    return call.final.messages
