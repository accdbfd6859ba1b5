"""The file of expected failures: what is known to fail, and must be taken off once it passes.

The official suite's grammar::

    server:
      - shop                                          # everything in this scenario
      - shop:tool-chaining-server-names-listed-tool   # one check in it
      - id: shop:tool-chaining-server-no-name-alias   # the same, with the reason
        reason: clients in the field still read it
    client: []
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.requirements import Side, checks_of
from banking_server.conformance.scenario_file import ScenarioError, Strict, load


class Row(Strict):
    """An entry with its reason."""

    id: str
    reason: str | None = None


class File(Strict):
    """The file as it is written."""

    server: tuple[str | Row, ...] = ()
    client: tuple[str | Row, ...] = ()


@dataclass(frozen=True)
class ExpectedFailure:
    """One entry: a scenario, or one check in it."""

    scenario: str
    check: str | None
    reason: str | None

    def covers(self, judgement: Judgement) -> bool:
        """Say whether the entry is about the check of this judgement, at its place."""
        return judgement.scenario == self.scenario and self.check in (None, judgement.check.id)

    def __str__(self) -> str:
        return self.scenario if self.check is None else f"{self.scenario}:{self.check}"


def load_expected_failures(
    path: Path, side: Side, scenarios: Sequence[str]
) -> tuple[ExpectedFailure, ...]:
    """Read the entries for `side`; `scenarios` are the names of those in this run.

    Raises ScenarioError, also for a name or an id that does not exist: a misspelt entry would
    otherwise excuse nothing, and nobody would notice.
    """
    file = load(path, File)
    entries: list[ExpectedFailure] = []
    known = {check.id for check in checks_of(side)}
    for row in file.server if side == "server" else file.client:
        name, reason = (row, None) if isinstance(row, str) else (row.id, row.reason)
        scenario, _, check = name.partition(":")
        if scenario not in scenarios:
            raise ScenarioError(
                f"{path}: {name}: no scenario {scenario!r} in this run, which has "
                f"{', '.join(scenarios)}"
            )
        if check and check not in known:
            raise ScenarioError(f"{path}: {name}: no {side} check {check!r}")
        entries.append(ExpectedFailure(scenario, check or None, reason))
    return tuple(entries)


def is_bad(judgement: Judgement) -> bool:
    """Say whether a judgement is one that an entry can excuse."""
    return judgement.not_kept or judgement.untestable


def mark_expected(
    entries: Sequence[ExpectedFailure], judgements: Iterable[Judgement]
) -> list[Judgement]:
    """Return the judgements, those that an entry excuses marked."""
    return [
        replace(judgement, expected_failure=True)
        if is_bad(judgement) and any(entry.covers(judgement) for entry in entries)
        else judgement
        for judgement in judgements
    ]


def stale_entries(
    entries: Iterable[ExpectedFailure], judgements: Sequence[Judgement]
) -> list[ExpectedFailure]:
    """Return the entries that excuse nothing: what they list was judged, and passed."""
    stale: list[ExpectedFailure] = []
    for entry in entries:
        covered = [judgement for judgement in judgements if entry.covers(judgement)]
        passed = any(judgement.status is Status.SUCCESS for judgement in covered)
        if passed and not any(is_bad(judgement) for judgement in covered):
            stale.append(entry)
    return stale
