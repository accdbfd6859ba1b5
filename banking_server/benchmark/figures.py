"""What was measured: figures of the bank against others, round by round."""

import statistics
from dataclasses import dataclass

Round = dict[str, float]
"""What one round measured, by name."""


@dataclass(frozen=True)
class Figure:
    """One line of the table: in each round, one figure of the bank's against another."""

    what: str
    unit: str
    against: str
    """The name of what the bank's figure is compared with."""
    bank: str
    """The name of the bank's own."""
    rounds: tuple[Round, ...]
    at_least: float | None = None
    """What the bank's figure has to be at least, as a multiple of the other; or, instead:"""
    at_most: float | None = None

    @property
    def ratios(self) -> list[float]:
        """The bank's figure as a multiple of the other, in each round."""
        return [each[self.bank] / each[self.against] for each in self.rounds]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def target(self) -> str:
        """What the ratio has to be."""
        if self.at_least is not None:
            return f"≥ {self.at_least:.2f}"
        return "" if self.at_most is None else f"≤ {self.at_most:.2f}"

    @property
    def is_met(self) -> bool | None:
        """Whether it is; None if it is only shown."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most

    def median(self, name: str) -> float:
        """Return the median of what the rounds measured under a name."""
        return statistics.median(each[name] for each in self.rounds)


@dataclass(frozen=True)
class Result:
    """What one row of the benchmark brought."""

    row: str
    figures: tuple[Figure, ...]
    """None, if it failed."""
    failed: str | None
    """Why it could not be measured, in one line: a wrong answer, for example."""
    calls: int
    """The answers that were counted. Each was the right one."""
    load_cpu: float | None
    """The largest share of one core that the load itself took; None where there was none."""
    seconds: float
    """How long the row took, with everything around the measurements."""
