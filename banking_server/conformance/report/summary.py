"""A report for people, on the terminal: what failed, why, and what to change."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.report.report import Report

SHOWN_MESSAGES: Final = 12
"""Wire messages that a failure shows on the terminal; report.json has all."""

_COLOURS: Final = {
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
    Status.WARNING: "yellow",
    Status.SKIPPED: "dim",
}
_MARGIN: Final = " " * 11
"""What stands under a result is set off by the width of its status."""


def print_summary(report: Report, console: Console, *, verbose: bool) -> None:
    """Print what came of a run; with `verbose` every check, and all messages of failures."""
    page = _Page(report, console)
    # If nothing could be examined at all, one line says why for all checks.
    for results in _alike(report.results) if report.run.spoken or verbose else ():
        first = results[0]
        passed = first.status is Status.SUCCESS
        skipped = first.status is Status.SKIPPED and not first.untestable
        if first.untestable:
            page.untestable(results)
        elif verbose or not (passed or skipped):
            page.results(results, verbose=verbose)
    for problem in report.run.problems:
        page.line(f"note: {problem}", "yellow")
    reasons = {str(entry): entry.reason for entry in report.expected if entry.reason}
    for name, reason in reasons.items():
        page.line(f"expected failure {name}: {reason}", "dim")
    page.line(_counts(report.results))
    page.line(f"{report.conclusion.verdict}: {report.conclusion.reason}", "bold")


def _counts(results: Sequence[Judgement]) -> str:
    counts = Counter(result.status for result in results)
    untestable = sum(result.untestable for result in results)
    expected = sum(result.expected_failure for result in results)
    return (
        f"{len(results)} results on {len({result.check.id for result in results})} checks: "
        f"{counts[Status.SUCCESS]} passed, {counts[Status.FAILURE]} failed, "
        f"{counts[Status.WARNING]} warnings, {untestable} not testable, "
        f"{counts[Status.SKIPPED] - untestable} not applicable"
        + (f"; {expected} of them expected to fail" if expected else "")
    )


class _Page:
    """Where the summary is printed, without secrets."""

    def __init__(self, report: Report, console: Console) -> None:
        self._report = report
        self._console = console

    def line(self, text: str, style: str = "") -> None:
        self._print(Text(self._report.redaction.text(text), style=style))

    def untestable(self, results: Sequence[Judgement]) -> None:
        """Print checks that are untestable for one reason."""
        head = Text(f"{'UNTESTABLE':<10} ", style="yellow")
        seen = results[0].seen.removeprefix("Not testable: ")
        head.append(self._report.redaction.text(seen))
        self._print(head)
        eras: dict[str, list[str]] = {}
        for result in results:
            mark = " (expected)" if result.expected_failure else ""
            eras.setdefault(result.check.id + mark, []).append(result.era)
        for check, where in eras.items():
            self.line(f"{_MARGIN}{check}  {', '.join(where)}", "dim")

    def results(self, results: Sequence[Judgement], *, verbose: bool) -> None:
        """Print results that differ in nothing but the era."""
        result = results[0]
        where = "/".join(part for part in (result.scenario, result.step) if part)
        eras = ", ".join(each.era for each in results)
        head = Text(f"{result.status!s:<10} ", style=_COLOURS[result.status])
        head.append(result.check.id, style="bold")
        head.append(f"  {eras}  {where}" + ("  (expected)" if result.expected_failure else ""))
        self._print(head)
        if result.status is Status.SUCCESS:
            return
        if result.status is Status.SKIPPED:
            self.line(f"{_MARGIN}{result.seen}", "dim")
            return
        for requirement in result.check.requirements:
            self.line(f"{_MARGIN}{requirement.id}  {requirement.text}")
        self.line(f"{_MARGIN}expected  {result.expected}")
        self.line(f"{_MARGIN}seen      {result.seen}")
        self.line(f"{_MARGIN}change    {result.check.remedy}")
        limit = None if verbose else SHOWN_MESSAGES
        for line in self._report.wire_lines(result, limit=limit):
            self.line(f"{_MARGIN}{line}", "dim")

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)


def _alike(results: Sequence[Judgement]) -> list[list[Judgement]]:
    """Group what would be told in the same words, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Judgement]] = {}
    for result in results:
        words: tuple[object, ...] = (result.check.id, result.status, result.expected, result.seen)
        key = (result.seen,) if result.untestable else words
        groups.setdefault(key, []).append(result)
    return list(groups.values())
