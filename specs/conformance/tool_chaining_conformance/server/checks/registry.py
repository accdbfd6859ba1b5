"""The registry of the checks of servers: each check is a function with its full id."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tool_chaining_conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from tool_chaining_conformance.server.evidence import Evidence, Repetition, Subject

E = TypeVar("E", bound=Evidence)

CheckResult = Judged | Sequence[Finding] | None
"""The return value of a check. None or an empty list: the evidence does not concern it."""


@dataclass(frozen=True)
class ServerCheck:
    """The code of one check of servers; `specs/conformance/checks.yaml` describes it."""

    id: str
    on: type[Evidence]
    subject: Subject
    """What it judges, and nothing else."""
    unseen: Untestable | NotApplicable
    """The result if a run had no such evidence, or none that concerns the check."""
    judge: Callable[[Any], CheckResult]


CHECKS: Final[dict[str, ServerCheck]] = {}
"""Every check of servers by its id, after the modules of this package are imported."""


def check(
    check_id: str, *, on: type[E], unseen: Untestable | NotApplicable | None = None
) -> Callable[[Callable[[E], CheckResult]], Callable[[E], CheckResult]]:
    """Register a function as the check `check_id`, which is called with each evidence of type `on`.

    Of the repetitions, it is called with those that are compared for it.

    `unseen` replaces the `unseen` of the type of evidence.
    """

    def register(judge: Callable[[E], CheckResult]) -> Callable[[E], CheckResult]:
        subject = check_id if on is Repetition else on
        CHECKS[check_id] = ServerCheck(check_id, on, subject, unseen or on.unseen, judge)
        return judge

    return register
