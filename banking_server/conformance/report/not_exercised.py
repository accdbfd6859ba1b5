"""What a run did not look at: a verdict says nothing about it, so every report names it."""

from collections.abc import Sequence
from dataclasses import dataclass

from banking_server.conformance.report.judgement import Judgement, Status, collapse
from banking_server.conformance.requirements import Check, Requirement, Side, checks_of
from banking_server.conformance.target.era import Era


@dataclass(frozen=True)
class NotExercised:
    """A check on which nothing was judged, in one revision or more, and why."""

    check: Check
    eras: tuple[Era, ...]
    reason: str
    untestable: bool
    """It applies, and nothing was reached that it could judge."""

    @property
    def everywhere(self) -> bool:
        """Whether it was exercised in no revision in which it can be made."""
        return set(self.eras) == set(self.check.eras)


def find_not_exercised(side: Side, judgements: Sequence[Judgement]) -> tuple[NotExercised, ...]:
    """Return every check of `side` on which nothing was judged, in the specification's order."""
    results = {(result.check.id, result.era): result for result in collapse(judgements)}
    found: list[NotExercised] = []
    for check in checks_of(side):
        reasons: dict[tuple[str, bool], list[Era]] = {}
        for era in check.eras:
            result = results.get((check.id, era))
            if result is None:
                reasons.setdefault(("it was not asked for", False), []).append(era)
            elif result.status is Status.SKIPPED:
                reason = result.seen.removeprefix("Not testable: ")
                reasons.setdefault((reason, result.untestable), []).append(era)
        found += [
            NotExercised(check, tuple(eras), reason, untestable)
            for (reason, untestable), eras in reasons.items()
        ]
    return tuple(found)


def in_one_line(all_of_it: Sequence[NotExercised]) -> str:
    """Return the sentences that were not exercised, those with one reason together."""
    groups: dict[tuple[str, tuple[Era, ...]], list[Requirement]] = {}
    for each in all_of_it:
        reason = "not testable, as said above" if each.untestable else each.reason
        eras = () if each.everywhere else each.eras
        sentences = groups.setdefault((reason, eras), [])
        sentences += [one for one in each.check.requirements if one not in sentences]
    return "; ".join(
        f"{', '.join(sentence.id for sentence in sentences)} ("
        + "".join(f"{era}: " for era in eras[:1])
        + f"{reason})"
        for (reason, eras), sentences in groups.items()
    )
