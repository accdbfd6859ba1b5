"""A judgement: what one check found in one era, at one place of a scenario."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tool_chaining_conformance.message import WireMessage
from tool_chaining_conformance.requirements import Check, Level, load_checks
from tool_chaining_conformance.target.era import Era

MESSAGES: Final = 60
"""The most messages to keep for one judgement: the last ones."""


class Status(StrEnum):
    """The result of a check, in the official suite's words."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    """The target violated a MUST."""
    WARNING = "WARNING"
    """The target violated a SHOULD."""
    SKIPPED = "SKIPPED"
    """No judgement: the check does not apply, or could not be made (`untestable`)."""


@dataclass(frozen=True)
class Finding:
    """What a check compared, and whether the target met the sentence."""

    holds: bool
    expected: str
    seen: str
    advice: str | None = None
    """What to change, if that is more than the check says about every failure."""


@dataclass(frozen=True)
class Untestable:
    """The check applies, but the run had nothing that it could judge."""

    reason: str


@dataclass(frozen=True)
class NotApplicable:
    """The check does not apply to this target."""

    reason: str


Judged = Finding | Untestable | NotApplicable
"""The possible results of a check."""


@dataclass(frozen=True)
class Judgement:
    """What was expected and what was seen."""

    check: Check
    era: Era
    scenario: str
    step: str
    """The step of a server scenario, or the case of a client script."""
    status: Status
    expected: str
    seen: str
    untestable: bool = False
    """The check applies, but the run had nothing that it could judge."""
    crashed: bool = False
    """It is untestable because the target crashed, hung, or did not talk at all."""
    messages: Sequence[WireMessage] = ()
    """The messages that show a violation, as far as they are kept; otherwise empty."""
    advice: str | None = None
    """What to change, in place of what the check says."""

    @property
    def at(self) -> str:
        """The scenario and its step or case, for people."""
        return "/".join(part for part in (self.scenario, self.step) if part)

    @property
    def is_violation(self) -> bool:
        """Whether the target violated the sentence, MUST or SHOULD."""
        return self.status in (Status.FAILURE, Status.WARNING)

    @property
    def at_fault(self) -> WireMessage | None:
        """The last message with the member that the check is about, or where it is missing."""
        if self.check.at is None:
            return None
        first = self.check.at.split("/")[1]
        return next((each for each in reversed(self.messages) if first in each.body), None)

    @property
    def severity(self) -> int:
        """The rank of the status: the worst judgement on a check is its result.

        Untestable ranks above a success: a check must not pass with half of its evidence.
        """
        rank = {Status.FAILURE: 4, Status.WARNING: 3, Status.SUCCESS: 1}
        return rank.get(self.status, 2 if self.untestable else 0)


@dataclass
class Judge:
    """Collects judgements in one scenario and one era.

    It ignores a check that does not apply in this era.
    """

    scenario: str
    era: Era
    judgements: list[Judgement] = field(default_factory=list[Judgement])

    def wants(self, check_id: str) -> bool:
        """Return whether the check applies in this era."""
        return self.era in load_checks()[check_id].eras

    def record(
        self,
        check_id: str,
        judged: Judged,
        *,
        step: str = "",
        crashed: bool = False,
        messages: Iterable[WireMessage] = (),
    ) -> None:
        """Record what a check found in `step`, with the `messages` that show it.

        `crashed`: it is untestable because the target crashed, hung, or did not talk.
        """
        if not self.wants(check_id):
            return
        check = load_checks()[check_id]
        match judged:
            case Finding(holds, expected, seen):
                failed = Status.FAILURE if check.level is Level.MUST else Status.WARNING
                status = Status.SUCCESS if holds else failed
            case Untestable(reason):
                status, expected, seen = Status.SKIPPED, check.judges, f"Not testable: {reason}"
            case NotApplicable(reason):
                status, expected, seen = Status.SKIPPED, check.judges, reason
        untestable = isinstance(judged, Untestable)
        is_violation = status in (Status.FAILURE, Status.WARNING)
        judgement = Judgement(
            check=check,
            era=self.era,
            scenario=self.scenario,
            step=step,
            status=status,
            expected=expected,
            seen=seen,
            untestable=untestable,
            crashed=crashed and untestable,
            messages=tuple(messages)[-MESSAGES:] if is_violation else (),
            advice=judged.advice if isinstance(judged, Finding) and is_violation else None,
        )
        self.judgements.append(judgement)

    def reached(self, check_id: str) -> bool:
        """Return whether there is a judgement on the check already."""
        return any(judgement.check.id == check_id for judgement in self.judgements)


def grouped(
    judgements: Iterable[Judgement], key: Callable[[Judgement], Hashable]
) -> list[list[Judgement]]:
    """Return the judgements in groups with equal keys, in the order of the first of each."""
    groups: dict[Hashable, list[Judgement]] = {}
    for each in judgements:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def eras_of(judgements: Iterable[Judgement]) -> str:
    """Return the eras of judgements, for people."""
    return ", ".join(dict.fromkeys(each.era for each in judgements))


def collapse(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return the worst judgement on each check in each era, in the specification's order."""
    worst: dict[tuple[str, Era], Judgement] = {}
    for judgement in judgements:
        key = (judgement.check.id, judgement.era)
        if key not in worst or judgement.severity > worst[key].severity:
            worst[key] = judgement
    checks = {check_id: number for number, check_id in enumerate(load_checks())}
    eras = list(Era)
    return [
        worst[key] for key in sorted(worst, key=lambda key: (checks[key[0]], eras.index(key[1])))
    ]
