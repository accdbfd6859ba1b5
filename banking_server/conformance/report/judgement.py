"""What a check found: one judgement on one check, in one era, at one place of a scenario."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from banking_server.conformance.message import WireMessage
from banking_server.conformance.requirements import Check, Level, load_checks
from banking_server.conformance.target.era import Era

MESSAGES: Final = 60
"""Messages that are kept for one judgement: the last ones."""


class Status(StrEnum):
    """What became of a check, in the official suite's words."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    """A MUST was not kept."""
    WARNING = "WARNING"
    """A SHOULD was not kept."""
    SKIPPED = "SKIPPED"
    """Nothing was judged: the check does not apply, or could not be made (`untestable`)."""


@dataclass(frozen=True)
class Finding:
    """What a check compared, and whether the sentence is kept."""

    holds: bool
    expected: str
    seen: str


@dataclass(frozen=True)
class Untestable:
    """The check applies, but nothing was seen that it could judge."""

    reason: str


@dataclass(frozen=True)
class NotApplicable:
    """The check does not apply to this target."""

    reason: str


Judged = Finding | Untestable | NotApplicable
"""What a check can say."""


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
    """The check applies, but nothing was reached that could be judged."""
    refused: bool = False
    """It is untestable because the target crashed, hung, or did not talk at all."""
    messages: Sequence[WireMessage] = ()
    """What shows that a sentence was not kept, as far as it is held; empty for anything else."""

    @property
    def at(self) -> str:
        """The scenario and its step or case, for people."""
        return "/".join(part for part in (self.scenario, self.step) if part)

    @property
    def not_kept(self) -> bool:
        """Whether the sentence was not kept, MUST or SHOULD."""
        return self.status in (Status.FAILURE, Status.WARNING)

    @property
    def at_fault(self) -> WireMessage | None:
        """The last message that has the member which the check is about, or should have it."""
        if self.check.at is None:
            return None
        first = self.check.at.split("/")[1]
        return next((each for each in reversed(self.messages) if first in each.body), None)

    @property
    def severity(self) -> int:
        """How bad it is: of several judgements on a check, the worst one is the result.

        Something untestable outranks a success, so that a check is not called passed on the
        strength of half its evidence.
        """
        rank = {Status.FAILURE: 4, Status.WARNING: 3, Status.SUCCESS: 1}
        return rank.get(self.status, 2 if self.untestable else 0)


@dataclass
class Judge:
    """Collects judgements on the chosen checks, in one scenario and one era.

    A check that is not chosen, or cannot be made in this era, is passed over in silence.
    """

    scenario: str
    era: Era
    chosen: frozenset[str]
    """Ids of the checks that the user wants."""
    judgements: list[Judgement] = field(default_factory=list[Judgement])

    def wants(self, check_id: str) -> bool:
        """Say whether the check is chosen and can be made in this era."""
        return check_id in self.chosen and self.era in load_checks()[check_id].eras

    def record(
        self,
        check_id: str,
        judged: Judged,
        *,
        step: str = "",
        refused: bool = False,
        messages: Iterable[WireMessage] = (),
    ) -> None:
        """Record what a check found in `step`, with the `messages` that show it.

        `refused`: what is untestable is so because the target crashed, hung, or did not talk.
        """
        if not self.wants(check_id):
            return
        check = load_checks()[check_id]
        match judged:
            case Finding(holds=holds, expected=expected, seen=seen):
                failed = Status.FAILURE if check.level is Level.MUST else Status.WARNING
                status = Status.SUCCESS if holds else failed
            case Untestable(reason):
                status, expected, seen = Status.SKIPPED, check.judges, f"Not testable: {reason}"
            case NotApplicable(reason):
                status, expected, seen = Status.SKIPPED, check.judges, reason
        untestable = isinstance(judged, Untestable)
        not_kept = status in (Status.FAILURE, Status.WARNING)
        judgement = Judgement(
            check=check,
            era=self.era,
            scenario=self.scenario,
            step=step,
            status=status,
            expected=expected,
            seen=seen,
            untestable=untestable,
            refused=refused and untestable,
            messages=tuple(messages)[-MESSAGES:] if not_kept else (),
        )
        self.judgements.append(judgement)

    def reached(self, check_id: str) -> bool:
        """Say whether there is any judgement on the check yet."""
        return any(judgement.check.id == check_id for judgement in self.judgements)


def together(
    judgements: Iterable[Judgement], alike: Callable[[Judgement], Hashable]
) -> list[list[Judgement]]:
    """Put the judgements together for which `alike` returns the same, in the order they come."""
    groups: dict[Hashable, list[Judgement]] = {}
    for each in judgements:
        groups.setdefault(alike(each), []).append(each)
    return list(groups.values())


def eras_of(judgements: Iterable[Judgement]) -> str:
    """Return the eras of judgements, for people."""
    return ", ".join(dict.fromkeys(each.era for each in judgements))


def collapse(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Give every check one status in each era, the worst, in the order of the specification."""
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
