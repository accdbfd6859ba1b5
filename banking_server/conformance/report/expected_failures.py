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
from typing import Any

from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.requirements import Side, checks_of


class ExpectedFailuresError(Exception):
    """The file cannot be used; the message says what is wrong in it, and where."""


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


def load_expected_failures(
    path: Path, side: Side, scenarios: Sequence[str]
) -> tuple[ExpectedFailure, ...]:
    """Read the entries for `side`; `scenarios` are the names of those in this run.

    Raises ExpectedFailuresError, also for a name or an id that does not exist: a misspelt entry
    would otherwise excuse nothing, and nobody would notice.
    """
    # Here, so that a command that reads no such file starts without it.
    from banking_server.conformance.yaml_file import YamlFileError, read_yaml_file

    try:
        content = read_yaml_file(path)
    except YamlFileError as error:
        raise ExpectedFailuresError(str(error)) from error
    if content is None:
        return ()
    if not isinstance(content, dict) or not set(content) <= {"server", "client"}:
        raise ExpectedFailuresError(
            f"{path}: must have two members, `server` and `client`, each a list"
        )
    entries = [_entry(path, row) for row in _rows(path, side, content.get(side))]
    known = {check.id for check in checks_of(side)}
    for entry in entries:
        if entry.scenario not in scenarios:
            raise ExpectedFailuresError(
                f"{path}: {entry}: no scenario {entry.scenario!r} in this run, which has "
                f"{', '.join(scenarios)}"
            )
        if entry.check is not None and entry.check not in known:
            raise ExpectedFailuresError(f"{path}: {entry}: no {side} check {entry.check!r}")
    whole = {entry.scenario for entry in entries if entry.check is None}
    for entry in entries:
        if entry.check is not None and entry.scenario in whole:
            raise ExpectedFailuresError(f"{path}: {entry}: the whole scenario is listed already")
    return tuple(entries)


def _rows(path: Path, side: Side, rows: Any) -> list[Any]:
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise ExpectedFailuresError(f"{path}: `{side}` must be a list")
    return rows


def _entry(path: Path, row: Any) -> ExpectedFailure:
    reason = None
    if isinstance(row, dict) and set(row) <= {"id", "reason"}:
        row, reason = row.get("id"), row.get("reason")
    if not isinstance(row, str) or not (reason is None or isinstance(reason, str)):
        raise ExpectedFailuresError(
            f"{path}: an entry is `scenario`, `scenario:check-id`, or a mapping of id and reason"
        )
    scenario, _, check = row.partition(":")
    return ExpectedFailure(scenario, check or None, reason)


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
