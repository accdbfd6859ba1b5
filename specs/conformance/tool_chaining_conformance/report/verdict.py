"""The rules of the verdict, from `specs/conformance/README.md`, `In CI`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tool_chaining_conformance.report.judgement import Judgement, Status
from tool_chaining_conformance.report.run import Run
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


ADVERTISES: Final = "tool-chaining-server-advertises"


@dataclass(frozen=True)
class Conclusion:
    """The verdict, with the reason in one or two sentences."""

    verdict: Verdict
    reason: str
    forbids_warning: bool = False
    """Whether there is a warning, or a directive was left out, although the user allows none."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return 1 if self.forbids_warning else EXIT_CODES[self.verdict]


def conclude(run: Run, *, strict: bool = False) -> Conclusion:
    """Apply the rules to a run.

    `strict`: a conformant run with a warning ends with exit code 1, and so does any run in which
    the server says that it left out a directive.
    """
    found, dropped = _found(run), run.dropped
    warned = [each for each in run.judgements if each.status is Status.WARNING]
    is_conformant = found.verdict is Verdict.CONFORMANT
    is_dropped = bool(dropped) and (is_conformant or found.verdict is Verdict.INCONCLUSIVE)
    forbids = strict and (is_dropped or (is_conformant and bool(warned)))
    reason = found.reason
    if dropped:
        reason += "; the server says that it left out a directive, as a note shows"
    if forbids:
        reason += f", and --strict allows no {'such directive' if is_dropped else 'warning'}"
    if unknown := {each.era for each in warned if each.check.id == ADVERTISES}:
        known = {each.era for each in run.judgements if each.status is Status.SUCCESS} - unknown
        where = f" on {', '.join(unknown)}" if known else ""
        reason += f". No client will follow this server{where}: it does not advertise tool chaining"
    return Conclusion(found.verdict, reason, forbids)


def _found(run: Run) -> Conclusion:
    judgements, crashes, problems = run.judgements, run.crashes, run.problems
    if run.silence is not None:
        return Conclusion(Verdict.ERROR, f"nothing could be examined: {run.silence}")
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
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        first = problems[0].partition("\n")[0]
        return Conclusion(Verdict.INCONCLUSIVE, f"not all went as expected: {first}{more}")
    if not any(judgement.status is Status.SUCCESS for judgement in judgements):
        return Conclusion(Verdict.INCONCLUSIVE, "no check found anything that it could judge")
    warned = {judgement.check.id for judgement in judgements if judgement.status is Status.WARNING}
    if warned:
        unmet = "1 SHOULD is not" if len(warned) == 1 else f"{len(warned)} SHOULDs are not"
        skipped = {each.check.level for each in judgements if each.status is Status.SKIPPED}
        which = " that was exercised" * (Level.MUST in skipped)
        return Conclusion(Verdict.CONFORMANT, f"every MUST{which} is met; {unmet}")
    return Conclusion(Verdict.CONFORMANT, "every check that applies passed")


def _not_made(verdict: Verdict, unseen: Sequence[Judgement], which: str) -> Conclusion:
    first, count = unseen[0], len({judgement.check.id for judgement in unseen})
    checks = "1 check" if count == 1 else f"{count} checks"
    such = f"{first.check.id} on {first.era}. {first.seen}"
    return Conclusion(verdict, f"{checks}{which} could not be made, such as {such}")
