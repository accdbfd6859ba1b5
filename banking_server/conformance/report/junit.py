"""A report as JUnit XML, which CI systems show: a suite for each era, a case for each check."""

from pathlib import Path
from xml.etree import ElementTree

from banking_server.conformance import SUITE
from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.report.report import Report
from banking_server.conformance.target.era import Era


def write_junit(report: Report, path: Path) -> None:
    """Write the file, and the folders above it. Raises OSError."""
    side = report.run.side
    root = ElementTree.Element("testsuites", name=SUITE)
    for era in Era:
        results = [result for result in report.results if result.era is era]
        if not results:
            continue
        suite = ElementTree.SubElement(root, "testsuite", name=f"{side} {era}")
        for result in results:
            _add_case(report, suite, result)
        for count, tag in (
            ("tests", "testcase"),
            ("failures", "testcase/failure"),
            ("errors", "testcase/error"),
            ("skipped", "testcase/skipped"),
        ):
            suite.set(count, str(len(suite.findall(tag))))
    if not len(root):
        suite = ElementTree.SubElement(root, "testsuite", name=side, tests="1", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname=side, name="run")
        ElementTree.SubElement(case, "error", message=_clean(report, report.conclusion.reason))
    ElementTree.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_case(report: Report, suite: ElementTree.Element, result: Judgement) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"{report.run.side}.{result.era}", name=result.check.id
    )
    if result.status is Status.SUCCESS:
        return
    message = _clean(report, f"expected {result.expected}; saw {result.seen}")
    if result.expected_failure or result.status is Status.SKIPPED:
        # If the target broke down, the check was not just left out: CI must see an error.
        broke = result.refused and not result.expected_failure
        ElementTree.SubElement(case, "error" if broke else "skipped", message=message)
        return
    failure = ElementTree.SubElement(case, "failure", message=message, type=result.status)
    lines = [
        *(f"{requirement.id}: {requirement.text}" for requirement in result.check.requirements),
        f"change: {result.check.remedy}",
        *report.wire_lines(result),
    ]
    failure.text = _clean(report, "\n".join(lines))


def _clean(report: Report, text: str) -> str:
    """Redact, and replace what XML cannot hold."""
    return "".join(
        char if char in "\t\n" or (char >= " " and not "\ud800" <= char <= "\udfff") else "�"
        for char in report.redaction.text(text)
    ).replace("\ufffe", "�").replace("\uffff", "�")  # fmt: skip
