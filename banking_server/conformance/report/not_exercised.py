"""What a run did not look at: a verdict says nothing about it, so every report names it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from banking_server.conformance.report.judgement import Judgement, Status, collapse
from banking_server.conformance.requirements import Check, Side, checks_of
from banking_server.conformance.target.era import Era


@dataclass(frozen=True)
class NotExercised:
    """A check on which nothing was judged, in one revision or more, or at some places; and why."""

    check: Check
    eras: tuple[Era, ...]
    reason: str
    untestable: bool
    """It applies, and nothing was reached that it could judge."""
    places: tuple[str, ...] = ()
    """Where nothing was judged on it, by scenario and step or case, though it was elsewhere;
    empty: nowhere was anything judged on it."""


NOT_ASKED_FOR: Final = "it was not asked for"


def find_not_exercised(side: Side, judgements: Sequence[Judgement]) -> tuple[NotExercised, ...]:
    """Return every check of `side` on which nothing was judged, in the specification's order.

    One that does not apply at some places is there too, with these.
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
                reasons.setdefault((NOT_ASKED_FOR, False, ()), []).append(era)
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
    """Return for each reason, in words, the sentences that were not exercised on account of it."""
    reasons: dict[str, list[NotExercised]] = {}
    for row in rows:
        mark = "not testable: " if row.untestable else ""
        reasons.setdefault(f"{mark}{row.reason}", []).append(row)
    return {reason: _sentences(rows) for reason, rows in reasons.items()}


def _sentences(rows: Sequence[NotExercised]) -> str:
    """Name the sentences of rows with one reason, with the places and revisions they lack."""
    if rows[0].reason == NOT_ASKED_FOR:
        # Whoever left it out knows, and may have left out nearly all.
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
