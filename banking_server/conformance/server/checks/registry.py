"""Where checks are registered: each is a function under its full id."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from banking_server.conformance.report.judgement import Finding, Judged, NotApplicable, Untestable
from banking_server.conformance.server.evidence import Evidence

E = TypeVar("E", bound=Evidence)

Said = Judged | Sequence[Finding] | None
"""None or an empty list: the evidence does not concern the check."""


@dataclass(frozen=True)
class ServerCheck:
    """One check of servers, as code; `specs/conformance/checks.yaml` describes it."""

    id: str
    on: type[Evidence]
    """The kind of evidence that it judges, and no other."""
    unseen: Untestable | NotApplicable
    """The reason if a run had no such evidence, or none that concerns the check."""
    judge: Callable[[Any], Said]


CHECKS: Final[dict[str, ServerCheck]] = {}
"""Every check of servers by its id, once the modules of this package are imported."""


def check(
    check_id: str, *, on: type[E], unseen: Untestable | NotApplicable | None = None
) -> Callable[[Callable[[E], Said]], Callable[[E], Said]]:
    """Register a function as the check `check_id`, to be called with each evidence of type `on`.

    `unseen` takes the place of what the type of evidence itself says if there is none.
    """

    def register(judge: Callable[[E], Said]) -> Callable[[E], Said]:
        CHECKS[check_id] = ServerCheck(check_id, on, unseen or on.unseen, judge)
        return judge

    return register
