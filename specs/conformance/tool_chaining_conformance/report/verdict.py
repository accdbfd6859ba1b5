"""The rules of the verdict, as `specs/conformance/README.md` has them under `In CI`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tool_chaining_conformance.report.judgement import Judgement, Status
from tool_chaining_conformance.requirements import Level


class Verdict(StrEnum):
    """The verdict on a target."""

    CONFORMANT = "conformant"
    NONCONFORMANT = "nonconformant"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


EXIT_CODES: Final = {
    Verdict.CONFORMANT: 0,
    Verdict.NONCONFORMANT: 1,
    Verdict.ERROR: 3,
    Verdict.INCONCLUSIVE: 4,
}


@dataclass(frozen=True)
class Conclusion:
    """The verdict, with the reason in a sentence."""

    verdict: Verdict
    reason: str


def conclude(
    judgements: Sequence[Judgement],
    *,
    silence: str | None,
    crashes: Sequence[str] = (),
) -> Conclusion:
    """Apply the rules.

    Args:
        judgements: All judgements of the run.
        silence: The reason why nothing could be examined, or None.
        crashes: Runs of a client that crashed or hung, each with the reason.
    """
    if silence is not None:
        return Conclusion(Verdict.ERROR, f"nothing could be examined: {silence}")
    failed = {judgement.check.id for judgement in judgements if judgement.status is Status.FAILURE}
    if failed:
        return Conclusion(Verdict.NONCONFORMANT, f"failed: {', '.join(sorted(failed))}")
    crashed = [judgement for judgement in judgements if judgement.crashed]
    if crashed:
        return _not_made(Verdict.ERROR, crashed, "")
    if crashes:
        more = f" ({len(crashes) - 1} more ended like this)" if len(crashes) > 1 else ""
        return Conclusion(Verdict.ERROR, f"a run did not end well: {crashes[0]}{more}")
    unseen = [
        judgement
        for judgement in judgements
        if judgement.untestable and judgement.check.level is Level.MUST
    ]
    if unseen:
        return _not_made(Verdict.INCONCLUSIVE, unseen, " of a MUST")
    if not any(judgement.status is Status.SUCCESS for judgement in judgements):
        return Conclusion(Verdict.INCONCLUSIVE, "no check found anything that it could judge")
    warned = {judgement.check.id for judgement in judgements if judgement.status is Status.WARNING}
    if warned:
        unmet = "1 SHOULD is not" if len(warned) == 1 else f"{len(warned)} SHOULDs are not"
        return Conclusion(Verdict.CONFORMANT, f"every MUST is met; {unmet}")
    return Conclusion(Verdict.CONFORMANT, "every check that applies passed")


def _not_made(verdict: Verdict, unseen: Sequence[Judgement], which: str) -> Conclusion:
    first, count = unseen[0], len({judgement.check.id for judgement in unseen})
    checks = "1 check" if count == 1 else f"{count} checks"
    reason = f"{checks}{which} could not be made, such as {first.check.id}. {first.seen}"
    return Conclusion(verdict, reason)
