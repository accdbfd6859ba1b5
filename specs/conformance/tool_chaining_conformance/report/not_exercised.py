"""The checks that a run did not make. The verdict does not cover them, so reports list them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tool_chaining_conformance.report.judgement import Judgement, Status, collapse
from tool_chaining_conformance.requirements import Check, Side, checks_of
from tool_chaining_conformance.target.era import Era


@dataclass(frozen=True)
class NotExercised:
    """A check that was not made in some revisions or at some places, with the reason."""

    check: Check
    eras: tuple[Era, ...]
    reason: str
    untestable: bool
    """Whether it applies, but the run had nothing that it could judge."""
    places: tuple[str, ...] = ()
    """The scenario and step or case where it was not made, if it was made elsewhere; empty if it
    was not made at all."""


NOT_CHOSEN: Final = "it was not chosen"


def find_not_exercised(side: Side, judgements: Sequence[Judgement]) -> tuple[NotExercised, ...]:
    """Return every check of `side` that was not made, in the specification's order.

    A check that does not apply at some places is included, with these places.
    """
    results = {(result.check.id, result.era): result for result in collapse(judgements)}
    skipped: dict[tuple[str, Era], dict[str, dict[str, None]]] = {}
    for each in judgements:
        if each.status is Status.SKIPPED and not each.untestable and each.step:
            places = skipped.setdefault((each.check.id, each.era), {})
            places.setdefault(each.seen, {})[each.at] = None
    found: list[NotExercised] = []
    for check in checks_of(side):
        reasons: dict[tuple[str, bool, tuple[str, ...]], list[Era]] = {}
        for era in check.eras:
            result = results.get((check.id, era))
            if result is None:
                reasons.setdefault((NOT_CHOSEN, False, ()), []).append(era)
            elif result.status is Status.SKIPPED:
                reason = result.seen.removeprefix("Not testable: ")
                reasons.setdefault((reason, result.untestable, ()), []).append(era)
            else:
                for reason, at in skipped.get((check.id, era), {}).items():
                    reasons.setdefault((reason, False, tuple(at)), []).append(era)
        found += [
            NotExercised(check, tuple(eras), reason, untestable, at)
            for (reason, untestable, at), eras in reasons.items()
        ]
    return tuple(found)


def by_reason(rows: Iterable[NotExercised]) -> dict[str, str]:
    """Return, for each reason, the sentences that it kept from being exercised, as text.

    For sentences that the user did not choose, perhaps nearly all, only the number is given.
    """
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        mark = "not testable: " if row.untestable else ""
        named = reasons.setdefault(f"{mark}{row.reason}", {})
        named.update((one.id, None) for one in row.check.requirements)
    return {
        reason: f"{len(named)} sentences" if reason == NOT_CHOSEN else ", ".join(named)
        for reason, named in reasons.items()
    }
