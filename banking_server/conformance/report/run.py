"""What came of examining a target, a server or a client: filled while it is examined."""

from dataclasses import dataclass, field, replace

from banking_server.conformance.report.judgement import Judgement
from banking_server.conformance.requirements import Side
from banking_server.conformance.target.era import Era


@dataclass
class Run:
    """What came of examining a target, in every scenario and every era that was asked for."""

    side: Side
    judgements: list[Judgement] = field(default_factory=list[Judgement])
    spoken: list[Era] = field(default_factory=list[Era])
    """Eras that the target speaks."""
    unspoken: dict[Era, str] = field(default_factory=dict[Era, str])
    """Eras that the target does not speak, each with what came instead."""
    problems: list[str] = field(default_factory=list[str])
    """What kept the suite from examining everything: unmet expectations, crashes, time limits."""
    name: str | None = None
    """What the target calls itself, if it says so."""
    version: str | None = None
    crashes: list[str] = field(default_factory=list[str])
    """Runs of a client that ended with another exit code than 0, or not at all, each with how."""

    def spoke(self, era: Era) -> None:
        """Note that the target speaks an era."""
        if era not in self.spoken:
            self.spoken.append(era)

    def broke_off(self, place: str, era: Era, why: str) -> None:
        """Note that a scenario came to nothing, or not to its end.

        In an era that the target is known to speak, that is a problem to report. In any other it
        means that the target does not speak the era.
        """
        if era in self.spoken:
            self.problems.append(f"{place}, {era}: {why}")
        else:
            self.unspoken.setdefault(era, why)

    def crashed(self, place: str, era: Era, how: str) -> None:
        """Note that a run of a client crashed or hung, whatever it showed before."""
        if era in self.spoken:
            self.crashes.append(f"{place}, {era}: {how}")
        self.broke_off(place, era, how)

    @property
    def silence(self) -> str | None:
        """Why nothing could be examined at all, or None if something could."""
        if self.spoken:
            return None
        if not self.unspoken:
            return "none of the chosen checks can be made in the chosen revisions"
        return "; ".join(f"{era}: {why}" for era, why in self.unspoken.items())

    def excuse_unspoken_eras(self) -> None:
        """Call the checks of an era that the target does not speak inapplicable: that is allowed.

        Not so if it speaks no era at all, since then nothing was examined.
        """
        if not self.spoken:
            return
        self.judgements = [
            replace(
                judgement,
                untestable=False,
                refused=False,
                seen=f"the {self.side} does not speak {judgement.era}: "
                f"{self.unspoken[judgement.era]}",
            )
            if judgement.era in self.unspoken and judgement.era not in self.spoken
            else judgement
            for judgement in self.judgements
        ]
