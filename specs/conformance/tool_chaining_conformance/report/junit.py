"""A report as JUnit XML, which CI systems show: a suite for each era, a case for each check.

There is a `<failure>` only for what makes the run nonconformant, and an `<error>` for what a crash
prevented. An inconclusive run has neither: only its exit code fails. A violated SHOULD is a case
that passed, with the details in `<system-out>`. It is not `<skipped>`, because the check was made.
It is a `<failure>` if `--strict` fails the run for it.

The name of a case is the check, so that its history in CI stays if a scenario is renamed. The text
of the case names every place where the check failed. `printable` escapes what XML does not allow.
"""

from pathlib import Path
from xml.etree import ElementTree

from tool_chaining_conformance import SUITE
from tool_chaining_conformance.report.judgement import Judgement, Status
from tool_chaining_conformance.report.plain import failure_lines, indented
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.text import block, one_line, printable


def write_junit(report: Report, path: Path) -> None:
    """Write the file. Raises OSError."""
    root = ElementTree.Element("testsuites", name=SUITE)
    for era in Era:
        results = [result for result in report.results if result.era is era]
        if not results:
            continue
        suite = ElementTree.SubElement(root, "testsuite", name=f"{report.run.side} {era}")
        for result in results:
            _add_case(report, suite, result)
        for count, tag in (
            ("tests", "testcase"),
            ("failures", "testcase/failure"),
            ("errors", "testcase/error"),
            ("skipped", "testcase/skipped"),
        ):
            suite.set(count, str(len(suite.findall(tag))))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_case(report: Report, suite: ElementTree.Element, result: Judgement) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"{report.run.side}.{result.era}", name=result.check.id
    )
    failed = [each for each in report.on_check(result) if each.is_violation]
    if result.status is Status.SUCCESS:
        return
    message = printable(_sentence(result, len(failed)))
    text = printable(_in_full(failed)) if failed else ""
    if result.status is Status.WARNING and not report.conclusion.forbids_warning:
        ElementTree.SubElement(case, "system-out").text = f"WARNING: {message}\n{text}"
    elif result.status is Status.SKIPPED:
        # If the target crashed, CI must see an error, not a skipped check.
        ElementTree.SubElement(case, "error" if result.crashed else "skipped", message=message)
    else:
        failure = ElementTree.SubElement(case, "failure", message=message, type=result.status)
        failure.text = text


def failure_text(report: Report, result: Judgement) -> str:
    """Return the text about a failed check in one revision: a sentence, then every place."""
    failed = [each for each in report.on_check(result) if each.is_violation]
    text = f"{_sentence(result, len(failed))}\n{_in_full(failed)}" if failed else block(result.seen)
    return printable(text)


def _sentence(result: Judgement, places: int) -> str:
    if result.status is Status.SKIPPED:
        return one_line(result.seen)
    more = f" (and at {places - 1} more places)" if places > 1 else ""
    seen = one_line(result.seen)
    return f"{result.at or 'the run'}: expected {one_line(result.expected)}; saw {seen}{more}"


def _in_full(failed: list[Judgement]) -> str:
    return "\n".join(indented(line) for line, _ in failure_lines(failed))
