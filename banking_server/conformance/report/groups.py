"""Judgements in the groups in which people read them: by check, and what is said alike once."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.requirements import Check
from banking_server.conformance.target.era import Era


@dataclass(frozen=True)
class Alike:
    """Judgements at one place of a scenario that differ in nothing but the era."""

    judgements: Sequence[Judgement]

    @property
    def first(self) -> Judgement:
        """The one that stands for all."""
        return self.judgements[0]

    @property
    def eras(self) -> str:
        """The eras, for people."""
        return ", ".join(dict.fromkeys(each.era for each in self.judgements))

    @property
    def place(self) -> str:
        """The scenario and its step or case, for people."""
        return self.first.at


@dataclass(frozen=True)
class NotKept:
    """A check that failed, and every place where it did."""

    check: Check
    status: Status
    places: Sequence[Alike]

    @property
    def eras(self) -> str:
        """The eras in which it failed, for people."""
        return ", ".join(
            dict.fromkeys(each.era for place in self.places for each in place.judgements)
        )

    @property
    def expected(self) -> bool:
        """Whether every one of its failures is expected."""
        return all(place.first.expected_failure for place in self.places)


@dataclass(frozen=True)
class Unseen:
    """Checks that could not be made for one reason."""

    reason: str
    checks: Sequence[tuple[Check, Sequence[Era], bool]]
    """Each with its eras, and whether that was expected."""


def alike(judgements: Sequence[Judgement]) -> list[Alike]:
    """Put judgements on one check together that are told in the same words."""
    groups: dict[Hashable, list[Judgement]] = {}
    for each in judgements:
        words = each.scenario, each.step, each.status, each.expected, each.seen
        groups.setdefault((words, each.untestable, each.expected_failure), []).append(each)
    return [Alike(group) for group in groups.values()]


def not_kept(judgements: Sequence[Judgement]) -> list[NotKept]:
    """Return every check that failed, in the order in which the judgements come."""
    by_check: dict[str, list[Judgement]] = {}
    for each in judgements:
        if each.not_kept:
            by_check.setdefault(each.check.id, []).append(each)
    return [NotKept(group[0].check, group[0].status, alike(group)) for group in by_check.values()]


def unseen(results: Sequence[Judgement]) -> list[Unseen]:
    """Return the results that are untestable, by their reason."""
    by_reason: dict[str, dict[str, list[Judgement]]] = {}
    for each in results:
        if each.untestable:
            reason = each.seen.removeprefix("Not testable: ")
            by_reason.setdefault(reason, {}).setdefault(each.check.id, []).append(each)
    return [
        Unseen(
            reason,
            [
                (
                    group[0].check,
                    [each.era for each in group],
                    all(each.expected_failure for each in group),
                )
                for group in checks.values()
            ],
        )
        for reason, checks in by_reason.items()
    ]
