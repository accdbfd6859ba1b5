"""The report on the terminal: what failed, why, and what to change."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from tool_chaining_conformance.report.judgement import Judgement, Status, eras_of, grouped
from tool_chaining_conformance.report.not_exercised import NotExercised, by_reason
from tool_chaining_conformance.report.plain import message_line, on_one_line
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.report.verdict import Verdict
from tool_chaining_conformance.text import block, one_line
from tool_chaining_conformance.values import at_pointer

SHOWN_MESSAGES: Final = 6
"""Messages that a failure shows if no single member is wrong; report.json has all."""

_COLOURS: Final = {
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
    Status.WARNING: "yellow",
    Status.SKIPPED: "dim",
}
_MARGIN: Final = " " * 11
"""The indent of the lines under a result: the width of its status."""


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
        margin = text[: len(text) - len(text.lstrip())]
        self._print(Text(margin + block(text, margin), style=style))

    def violation(self, failures: Sequence[Judgement]) -> None:
        """Print a check that failed, and every place where it did."""
        check = failures[0].check
        head = Text(f"{failures[0].status!s:<10} ", style=_COLOURS[failures[0].status])
        self._print(head.append(check.id, style="bold").append(f"  {eras_of(failures)}"))
        for requirement in check.requirements:
            self.line(f"{_MARGIN}{requirement.id}  {requirement.text}")
        self.line(f"{_MARGIN}change    {failures[0].advice or check.remedy}")
        # Failures that differ only in their era are printed once.
        places = grouped(failures, lambda each: (each.at, each.expected, each.seen))
        for number, group in enumerate(places, 1):
            first = group[0]
            of = f"{number} of {len(places)}" if len(places) > 1 else "at"
            self.line(f"{of:>10} {first.at}  {eras_of(group)}", "bold")
            self.line(f"{_MARGIN}expected  {first.expected}")
            self.line(f"{_MARGIN}seen      {first.seen}")
            # The messages of the other places are often the same; report.json has them all.
            if number == 1:
                self._messages(first)

    def _messages(self, judgement: Judgement) -> None:
        at, message, messages = judgement.check.at, judgement.at_fault, judgement.messages
        if at is not None and message is not None:
            for other in messages:
                if other.body.get("id") == message.body.get("id") and other is not message:
                    self.line(f"{_MARGIN}{message_line(other, 160)}", "dim")
            self.line(f"{_MARGIN}{message_line(message, 500)}", "dim")
            found = at_pointer(at, message.body, absent=...)
            value = "is missing" if found is ... else f"is {on_one_line(found, 1000)}"
            if message.raw is None:
                self.line(f"{_MARGIN}wrong     {at} {value}")
            return
        if len(messages) > SHOWN_MESSAGES:
            left_out = len(messages) - SHOWN_MESSAGES
            self.line(f"{_MARGIN}({left_out} earlier messages are in report.json)", "dim")
        for message in messages[-SHOWN_MESSAGES:]:
            self.line(f"{_MARGIN}{message_line(message, 500)}", "dim")

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)
