"""The results of a run, collected while a server or a client is examined."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from tool_chaining_conformance.report.judgement import Judgement
from tool_chaining_conformance.requirements import Side
from tool_chaining_conformance.target.era import Era, in_each_era
from tool_chaining_conformance.text import cut, one_line

STOPPED: Final = "the run was stopped"
"""Why a check was not made after a signal, such as Ctrl-C."""

ONE_LINE: Final = 200
"""Characters of the reason why a revision is not supported."""


@dataclass
class Run:
    """The results for one target, in every chosen scenario and era."""

    side: Side
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    judgements: list[Judgement] = field(default_factory=list[Judgement])
    spoken: list[Era] = field(default_factory=list[Era])
    """Eras that the target supports."""
    unspoken: dict[Era, str] = field(default_factory=dict[Era, str])
    """Eras that the target does not support, each with its response."""
    problems: list[str] = field(default_factory=list[str])
    """Reasons why some checks were not made: unmet expectations, crashes, time limits."""
    dropped: list[str] = field(default_factory=list[str])
    """Directives that the server left out, as it says itself on its standard error."""
    name: str | None = None
    """The target's own name, if it gives one."""
    version: str | None = None
    crashes: list[str] = field(default_factory=list[str])
    """Runs of a client with an exit code other than 0, or without an end, each with a reason."""
    stopped: int = 0
    """The exit code of the suite if a signal stopped the run; 0 if none did."""

    def spoke(self, era: Era) -> None:
        """Record that the target supports an era."""
        if era not in self.spoken:
            self.spoken.append(era)

    def ended_early(self, place: str, era: Era, why: str) -> None:
        """Record that a scenario could not be played to its end.

        If the target is known to support the era, that is a problem to report. Otherwise the target
        does not support the era.
        """
        if era in self.spoken or why == STOPPED:
            self.problems.append(f"{place}, {era}: {why}")
        else:
            self.unspoken.setdefault(era, why)

    def crashed(self, place: str, era: Era, how: str) -> None:
        """Record that a run of a client crashed or hung, which says nothing of the era."""
        self.crashes.append(f"{place}, {era}: {how}")
        self.problems.append(f"{place}, {era}: {how}")

    @property
    def silence(self) -> str | None:
        """The reason why nothing could be examined, or None if something could."""
        if self.spoken or self.crashes:
            return None
        if not self.unspoken:
            none = "none of the chosen cases can be played in the chosen revisions"
            return STOPPED if self.stopped else none
        return in_each_era(self.unspoken)

    def excuse_unspoken_eras(self) -> None:
        """Mark the checks of an era that the target does not support as not applicable.

        A target need not support both eras. If it supports none, nothing is marked.
        """
        if not self.spoken:
            return
        self.judgements = [
            replace(
                judgement,
                untestable=False,
                crashed=False,
                seen=f"the {self.side} does not support {judgement.era}: "
                + cut(one_line(self.unspoken[judgement.era].partition("\n")[0]), ONE_LINE),
            )
            if judgement.era in self.unspoken and judgement.era not in self.spoken
            else judgement
            for judgement in self.judgements
        ]
