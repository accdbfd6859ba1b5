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


def in_brief(rows: Iterable[NotExercised]) -> str:
    """Return the sentences of rows as text, each once."""
    left_out = "what was not chosen"
    return ", ".join(
        dict.fromkeys(
            left_out if row.reason == NOT_CHOSEN else one.id
            for row in rows
            for one in row.check.requirements
        )
    )


def by_reason(rows: Iterable[NotExercised]) -> dict[str, str]:
    """Return for each reason the sentences that were not exercised because of it, as text."""
    reasons: dict[str, list[NotExercised]] = {}
    for row in rows:
        mark = "not testable: " if row.untestable else ""
        reasons.setdefault(f"{mark}{row.reason}", []).append(row)
    return {reason: _sentences(rows) for reason, rows in reasons.items()}


def _sentences(rows: Sequence[NotExercised]) -> str:
    """Return the sentences of rows with one reason, with their places and revisions."""
    if rows[0].reason == NOT_CHOSEN:
        # The user left them out, and they may be nearly all. So only their number is given.
        count = len({one.id for row in rows for one in row.check.requirements})
        return f"{count} {'sentence' if count == 1 else 'sentences'}"
    every = checks_of(rows[0].check.side)
    whole = [
        era
        for era in Era
        if sum(era in row.eras and not row.places for row in rows)
        == sum(era in check.eras for check in every)
    ]
    words = [f"everything on {era}" for era in whole]
    groups: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.places or not set(row.eras) <= set(whole):
            at = f" at {', '.join(f'`{place}`' for place in row.places)}" if row.places else ""
            on = "" if row.eras == row.check.eras else f" on {', '.join(row.eras)}"
            groups.setdefault(at + on, {}).update((one.id, None) for one in row.check.requirements)
    words += [f"{', '.join(sentences)}{where}" for where, sentences in groups.items()]
    return "; ".join(words)
