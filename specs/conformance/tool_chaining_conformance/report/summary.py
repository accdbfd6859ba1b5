"""The report on the terminal: what failed, why, and what to change."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from tool_chaining_conformance.report.judgement import Judgement, Status, eras_of
from tool_chaining_conformance.report.not_exercised import NotExercised, by_reason
from tool_chaining_conformance.report.plain import failure_lines, indented
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.report.verdict import Verdict
from tool_chaining_conformance.text import one_line

_COLOURS: Final = {
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
    Status.WARNING: "yellow",
    Status.SKIPPED: "dim",
}


def print_summary(report: Report, console: Console) -> None:
    """Print the report on a run."""
    page = _Page(console)
    # Problems come first: they explain the lists of checks below.
    for problem in [*report.run.problems, *report.run.dropped]:
        page.line(f"note: {problem}", "yellow")
    for failures in report.violations:
        page.violation(failures)
    page.line(counts(report.results))
    for line in not_judged(report):
        page.line(line)
    page.line(f"{report.conclusion.verdict}: {report.conclusion.reason}", "bold")


def not_judged(report: Report) -> Iterator[str]:
    """Yield what was not judged, and why: in two lines if the verdict is conformant."""
    broken = {one.id for each in report.violations for one in each[0].check.requirements}
    judged = {
        one.id
        for each in report.results
        if each.status is not Status.SKIPPED
        for one in each.check.requirements
    }
    spoken, unspoken = report.run.spoken, report.run.unspoken.keys() - report.run.spoken
    rows: dict[str, list[NotExercised]] = {"not judged": [], "judged in part": []}
    for row in report.not_exercised:
        named = {one.id for one in row.check.requirements}
        # If nothing could be examined at all, the verdict says why for all checks.
        if (spoken or not row.untestable) and not named & broken and set(row.eras) - unspoken:
            rows["judged in part" if named & judged else "not judged"].append(row)
    for head, found in rows.items():
        gaps = by_reason(found)
        if head == "not judged" and spoken:
            gaps |= {f"the {report.run.side} does not support it": era for era in unspoken}
        if report.conclusion.verdict is Verdict.CONFORMANT and gaps:
            yield f"{head}: " + "; ".join(f"{what} ({one_line(why)})" for why, what in gaps.items())
        elif gaps:
            yield f"{head}:"
            yield from (f"  {one_line(why)}: {what}" for why, what in gaps.items())


def counts(results: Sequence[Judgement]) -> str:
    """Return the numbers of results by status, in a line."""
    by_status = Counter(result.status for result in results)
    untestable = sum(result.untestable for result in results)
    checks = len({result.check.id for result in results})
    return (
        f"{len(results)} results on {checks} check{'' if checks == 1 else 's'}: "
        f"{by_status[Status.SUCCESS]} passed, {by_status[Status.FAILURE]} failed, "
        f"{by_status[Status.WARNING]} warnings, {untestable} not testable, "
        f"{by_status[Status.SKIPPED] - untestable} not applicable"
    )


class _Page:
    """Prints the lines of the summary."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str, style: str = "") -> None:
        self._print(Text(indented(text), style=style))

    def violation(self, failures: Sequence[Judgement]) -> None:
        """Print a check that failed, and every place where it did."""
        head = Text(f"{failures[0].status!s:<10} ", style=_COLOURS[failures[0].status])
        head.append(failures[0].check.id, style="bold")
        self._print(head.append(f"  {eras_of(failures)}"))
        for text, style in failure_lines(failures):
            self.line(text, style)

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)
