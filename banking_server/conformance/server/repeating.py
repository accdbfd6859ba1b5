"""Makes a call again in every way that must not matter, and confirms each difference.

Servers answer by chance, by the hour, by a counter. So nobody is blamed for one difference: the
plain call and the varied one are made again in turn, in an order without a period. What is blamed
came every time with the variation and never without.
"""

from collections.abc import Callable, Sequence
from typing import Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.server.evidence import (
    Missing,
    Observation,
    RepeatedInExperimental,
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithMalformedSettings,
    Repetition,
    ResultInWords,
)
from banking_server.conformance.server.reading import PARTS, directive_of, ending, ending_of
from banking_server.conformance.server.variants import PLAIN, UNDECLARED, Variant
from banking_server.conformance.target.connection import ToolCall
from banking_server.conformance.target.era import Era

CONFIRMING: Final = "PVVPVPPVVPVV"
"""The calls that confirm a difference: P is the plain one, V the varied one."""

CONFIRMING_CALLS: Final = len(CONFIRMING)


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
        self._plain = [first]
        self._elsewhere = [first]
        self._undeclared: list[ToolCall] = []
        self._told_apart: bool | None = None
        """Whether a client that declared was told from one that did not, if that is known."""
        self._changes_by_itself: str | None = None

    def all(self, variants: Sequence[Variant]) -> None:
        """Make the call in each of these ways."""
        for number, variant in enumerate(variants):
            self._one(variant)
            if self._changes_by_itself is not None:
                left = dict.fromkeys(each.kind for each in variants[number + 1 :])
                words = [ResultInWords] if RepeatedUndeclared in left else []
                reason = self._changes_by_itself
                self._observe(Missing(self._step, [*left, *words], reason))
                return

    def _one(self, variant: Variant) -> None:
        again = self._make(variant, False)
        if variant is PLAIN:
            self._plain.append(again)
            self._look_for_change(self._plain)
            if self._changes_by_itself is None:
                self._tell(variant, self._first, again, frozenset())
            return
        if variant.kind is RepeatedWithMalformedSettings and self._undeclared:
            reference, plain = self._undeclared[:1], UNDECLARED
        elif variant.takes_a_connection(self._era):
            reference, plain = self._elsewhere, PLAIN
        else:
            reference, plain = self._plain, PLAIN
        differs = self._differing(variant, reference, [again])
        varied = [again]
        if differs:
            differs = self._confirmed(variant, plain, reference, varied)
        if variant is UNDECLARED:
            self._undeclared = varied
            words = "words" in ending_of(self._first).differing(ending_of(again), PARTS)
            self._told_apart = words
        if differs or "refusal" in self._steady(reference) & self._steady(varied):
            self._tell(variant, reference[0], again, differs)
        else:
            reason = f"the call ended differently by itself: {ending(again)}"
            self._observe(Missing(self._step, [variant.kind], reason, _messages(again)))

    def _confirmed(
        self, variant: Variant, plain: Variant, reference: list[ToolCall], varied: list[ToolCall]
    ) -> frozenset[str]:
        """Return the parts that differ every time; makes more calls of both kinds."""
        # Where a connection carries the declaration, another one may have another state.
        second = variant.takes_a_connection(self._era)
        differs: frozenset[str] = frozenset()
        for which in CONFIRMING:
            if which == "P":
                reference.append(self._make(plain, second))
            else:
                varied.append(self._make(variant, False))
            differs = self._differing(variant, reference, varied)
            if not differs:
                break
        self._look_for_change(varied)
        self._look_for_change(reference[1:] if second else reference)
        return differs

    def _differing(
        self, variant: Variant, reference: Sequence[ToolCall], varied: Sequence[ToolCall]
    ) -> frozenset[str]:
        """Return the parts in which every varied call differs from the steady plain one."""
        parts = variant.kind.compared & self._steady(reference)
        expected = ending_of(reference[0])
        for call in varied:
            parts = expected.differing(ending_of(call), parts)
        return parts

    def _steady(self, calls: Sequence[ToolCall]) -> frozenset[str]:
        """Return the parts in which calls that were made in one way ended alike every time."""
        first = ending_of(calls[0])
        return PARTS.difference(*(first.differing(ending_of(call), PARTS) for call in calls))

    def _look_for_change(self, calls: Sequence[ToolCall]) -> None:
        """Notice that calls made in one way, in one place, ended differently."""
        for call in calls[1:]:
            differs = ending_of(calls[0]).differing(ending_of(call), {"refusal", "tool"})
            if not differs or self._changes_by_itself is not None:
                continue
            self._changes_by_itself = (
                f"the very same call ended in {ending(calls[0])}, then in {ending(call)}"
            )
            if "refusal" in differs:
                # What fails now and then names no other tool: it names none because it failed.
                self._observe(
                    Missing(
                        self._step, [RepeatedUnchanged], self._changes_by_itself, _messages(call)
                    )
                )
            else:
                self._tell(PLAIN, calls[0], call, differs)

    def _tell(
        self, variant: Variant, first: ToolCall, again: ToolCall, differs: frozenset[str]
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

    @property
    def undeclared(self) -> ToolCall | None:
        """The call as a client that did not declare; one with a directive, if there was any."""
        with_directive = [call for call in self._undeclared if directive_of(call.final)]
        return next(iter([*with_directive, *self._undeclared]), None)


def _messages(call: ToolCall) -> Sequence[WireMessage]:
    return call.final.messages
