"""What a run did not look at: a verdict says nothing about it, so every report names it."""

from collections.abc import Sequence
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

    @property
    def everywhere(self) -> bool:
        """Whether it was exercised in no revision in which it can be made."""
        return set(self.eras) == set(self.check.eras)


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


@dataclass(frozen=True)
class Gap:
    """Checks that were not exercised for one reason, in the same revisions and places."""

    checks: tuple[Check, ...]
    eras: tuple[Era, ...]
    """Empty: in every revision in which they can be made."""
    reason: str
    untestable: bool
    places: tuple[str, ...]
    """Empty: everywhere."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The ids of what the checks test."""
        return tuple(dict.fromkeys(one.id for check in self.checks for one in check.requirements))

    @property
    def everything_on(self) -> Era | None:
        """The revision of which nothing at all was exercised, if there is such a one."""
        if len(self.eras) != 1:
            return None
        (era,) = self.eras
        all_of_it = [check for check in checks_of(self.checks[0].side) if era in check.eras]
        return era if len(self.checks) == len(all_of_it) else None


def gaps(all_of_it: Sequence[NotExercised]) -> list[Gap]:
    """Put together what has one reason; what concerns a whole revision comes last."""
    groups: dict[tuple[str, bool, tuple[Era, ...], tuple[str, ...]], list[Check]] = {}
    whole = {
        (each.reason, era)
        for each in all_of_it
        for era in each.eras
        if sum(era in other.eras and other.reason == each.reason for other in all_of_it)
        == sum(era in check.eras for check in checks_of(each.check.side))
    }
    for each in all_of_it:
        # A whole revision is one gap, also for checks that can be made in no other.
        is_whole = len(each.eras) == 1 and (each.reason, each.eras[0]) in whole
        eras = each.eras if is_whole or not each.everywhere else ()
        key = each.reason, each.untestable, eras, each.places
        groups.setdefault(key, []).append(each.check)
    found = [
        Gap(tuple(checks), eras, reason, untestable, places)
        for (reason, untestable, eras, places), checks in groups.items()
    ]
    return sorted(found, key=lambda gap: gap.everything_on is not None)


def in_one_line(all_of_it: Sequence[NotExercised], *, said_above: bool) -> str:
    """Return the sentences that were not exercised, those with one reason together.

    `said_above`: why something was not testable stands there already.
    """
    found = gaps(all_of_it)
    left_out = [gap for gap in found if gap.reason == NOT_ASKED_FOR and gap.everything_on is None]
    words = [_in_words(gap, said_above) for gap in found if gap not in left_out]
    if left_out:
        # Whoever left it out knows, and may have left out nearly all.
        count = len({sentence for gap in left_out for sentence in gap.sentences})
        noun = "sentence" if count == 1 else "sentences"
        words.insert(0, f"{count} {noun} ({NOT_ASKED_FOR})")
    return "; ".join(words)


def _in_words(gap: Gap, said_above: bool) -> str:
    reason = gap.reason
    if gap.untestable:
        reason = "not testable, as said above" if said_above else f"not testable: {reason}"
    if (era := gap.everything_on) is not None:
        return f"everything on {era} ({reason})"
    at = f" at {', '.join(f'`{place}`' for place in gap.places)}" if gap.places else ""
    where = f" on {gap.eras[0]}" if gap.eras else ""
    return f"{', '.join(gap.sentences)}{at}{where} ({reason})"
