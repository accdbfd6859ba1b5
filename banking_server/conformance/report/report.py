"""How a run is told: report.json, checks.json, JUnit XML, and a summary for people.

Everything that leaves this module has been through the redaction.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from banking_server import __version__
from banking_server.chaining import IDENTIFIER
from banking_server.conformance.message import Json
from banking_server.conformance.report.expected_failures import ExpectedFailure
from banking_server.conformance.report.judgement import Judgement, Status, collapse
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.verdict import Conclusion
from banking_server.conformance.requirements import Check, Side
from banking_server.conformance.target.era import Era

SUITE: Final = "tool-chaining-conformance"
SHOWN_MESSAGES: Final = 12
"""Wire messages that a failure shows on the terminal; report.json has all."""

_COLOURS: Final = {
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
    Status.WARNING: "yellow",
    Status.SKIPPED: "dim",
    Status.INFO: "dim",
}


@dataclass(frozen=True)
class ClientOutput:
    """What a client under test printed in one case."""

    scenario: str
    era: Era
    case: str
    output: str
    errors: str


@dataclass(frozen=True)
class Report:
    """One finished run."""

    side: Side
    target: Json
    """`url` or `command`, and where known the name and version of what it calls itself."""
    judgements: Sequence[Judgement]
    conclusion: Conclusion
    eras: Sequence[Era]
    """The eras that were asked for and that the target speaks."""
    scenarios: Sequence[str]
    problems: Sequence[str]
    stale: Sequence[ExpectedFailure]
    expected: Sequence[ExpectedFailure]
    started: datetime
    finished: datetime
    redaction: Redaction
    outputs: Sequence[ClientOutput] = field(default=())

    @property
    def results(self) -> list[Judgement]:
        """Every check once in each era: the worst judgement on it."""
        return collapse(self.judgements)

    def to_json(self) -> Json:
        """Return report.json; its schema is in `specs/conformance/schemas`."""
        results = self.results
        counts = Counter(result.status for result in results)
        shown: Json = {
            "schema_version": 1,
            "suite": {"name": SUITE, "version": __version__},
            "extension": IDENTIFIER,
            "side": self.side,
            "target": self.target,
            "spec_versions": list(self.eras),
            "scenarios": list(self.scenarios),
            "started": _time(self.started),
            "finished": _time(self.finished),
            "verdict": self.conclusion.verdict,
            "reason": self.conclusion.reason,
            "summary": {status: counts[status] for status in Status},
            "checks": [_result_json(result) for result in results],
        }
        if self.problems:
            shown["problems"] = list(self.problems)
        redacted: Json = self.redaction.json(shown)
        return redacted

    def write_files(self, folder: Path) -> None:
        """Write report.json, and checks.json for each scenario in the official layout.

        Raises OSError.
        """
        folder.mkdir(parents=True, exist_ok=True)
        _write_json(folder / "report.json", self.to_json())
        stamp = self.started.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
        prefix = "server-" if self.side == "server" else ""
        parts: dict[tuple[str, Era], list[Judgement]] = {}
        for judgement in self.judgements:
            if judgement.scenario:
                parts.setdefault((judgement.scenario, judgement.era), []).append(judgement)
        for (scenario, era), judgements in parts.items():
            part = folder / f"{prefix}{scenario}-{era}-{stamp}"
            part.mkdir(exist_ok=True)
            rows = [_official_row(judgement, self.finished) for judgement in collapse(judgements)]
            _write_json(part / "checks.json", self.redaction.json(rows))
            self._write_outputs(part, scenario, era)

    def _write_outputs(self, part: Path, scenario: str, era: Era) -> None:
        outputs = [
            output for output in self.outputs if (output.scenario, output.era) == (scenario, era)
        ]
        if not outputs:
            return
        for name in ("output", "errors"):
            text = "".join(f"== {output.case}\n{getattr(output, name)}\n" for output in outputs)
            file = part / ("stdout.txt" if name == "output" else "stderr.txt")
            file.write_text(self.redaction.text(text), encoding="utf-8")

    def write_junit(self, path: Path) -> None:
        """Write a JUnit XML file, a suite for each era. Raises OSError."""
        root = ElementTree.Element("testsuites", name=SUITE)
        for era in Era:
            results = [result for result in self.results if result.era is era]
            if not results:
                continue
            suite = ElementTree.SubElement(root, "testsuite", name=f"{self.side} {era}")
            for result in results:
                self._add_junit_case(suite, result)
            for count, tag in (
                ("tests", "testcase"),
                ("failures", "testcase/failure"),
                ("errors", "testcase/error"),
                ("skipped", "testcase/skipped"),
            ):
                suite.set(count, str(len(suite.findall(tag))))
        if not len(root):
            suite = ElementTree.SubElement(root, "testsuite", name=self.side, tests="1", errors="1")
            case = ElementTree.SubElement(suite, "testcase", classname=self.side, name="run")
            ElementTree.SubElement(case, "error", message=self._clean(self.conclusion.reason))
        ElementTree.indent(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)

    def _add_junit_case(self, suite: ElementTree.Element, result: Judgement) -> None:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{self.side}.{result.era}", name=result.check.id
        )
        if result.status is Status.SUCCESS:
            return
        message = self._clean(f"expected {result.expected}; saw {result.seen}")
        if result.expected_failure or result.status in (Status.SKIPPED, Status.INFO):
            # What could not be made because the target broke down is no mere omission.
            broke = result.refused and not result.expected_failure
            ElementTree.SubElement(case, "error" if broke else "skipped", message=message)
            return
        failure = ElementTree.SubElement(case, "failure", message=message, type=result.status)
        failure.text = self._clean(
            "\n".join(
                [
                    *(f"{each.id}: {each.text}" for each in result.check.requirements),
                    f"change: {result.check.remedy}",
                    *_wire_lines(result, self.redaction, limit=None),
                ]
            )
        )

    def _clean(self, text: str) -> str:
        """Redact, and leave out what XML cannot hold."""
        return "".join(
            char if char in "\t\n" or (char >= " " and not "\ud800" <= char <= "\udfff") else "�"
            for char in self.redaction.text(text)
        ).replace("\ufffe", "�").replace("\uffff", "�")  # fmt: skip

    def print_summary(self, console: Console, *, verbose: bool) -> None:
        """Tell people what came of it: what failed, why, and what to change."""
        # Where nothing could be examined at all, one line says why for all checks.
        for results in _alike(self.results) if self.eras or verbose else ():
            first = results[0]
            passed = first.status is Status.SUCCESS
            skipped = first.status is Status.SKIPPED and not first.untestable
            if first.untestable:
                self._print_untestable(console, results)
            elif verbose or not (passed or skipped):
                self._print_results(console, results, verbose=verbose)
        for problem in self.problems:
            self._line(console, f"note: {problem}", "yellow")
        reasons = {str(entry): entry.reason for entry in self.expected if entry.reason}
        for name, reason in reasons.items():
            self._line(console, f"expected failure {name}: {reason}", "dim")
        counts = Counter(result.status for result in self.results)
        untestable = sum(result.untestable for result in self.results)
        expected = sum(result.expected_failure for result in self.results)
        self._line(
            console,
            f"{len(self.results)} results on {len({r.check.id for r in self.results})} checks: "
            f"{counts[Status.SUCCESS]} passed, {counts[Status.FAILURE]} failed, "
            f"{counts[Status.WARNING]} warnings, {untestable} not testable, "
            f"{counts[Status.SKIPPED] - untestable} not applicable"
            + (f"; {expected} of them expected to fail" if expected else ""),
        )
        self._line(console, f"{self.conclusion.verdict}: {self.conclusion.reason}", "bold")

    def _print_untestable(self, console: Console, results: Sequence[Judgement]) -> None:
        head = Text(f"{'UNTESTABLE':<10} ", style="yellow")
        head.append(self.redaction.text(results[0].seen.removeprefix("Not testable: ")))
        console.print(head, soft_wrap=True, highlight=False)
        eras: dict[str, list[str]] = {}
        for result in results:
            mark = " (expected)" if result.expected_failure else ""
            eras.setdefault(result.check.id + mark, []).append(result.era)
        for check, where in eras.items():
            self._line(console, f"           {check}  {', '.join(where)}", "dim")

    def _print_results(
        self, console: Console, results: Sequence[Judgement], *, verbose: bool
    ) -> None:
        """Print results that differ in nothing but the era."""
        result = results[0]
        where = "/".join(part for part in (result.scenario, result.step) if part)
        eras = ", ".join(each.era for each in results)
        head = Text(f"{result.status!s:<10} ", style=_COLOURS[result.status])
        head.append(result.check.id, style="bold")
        head.append(f"  {eras}  {where}" + ("  (expected)" if result.expected_failure else ""))
        console.print(head, soft_wrap=True, highlight=False)
        if result.status is Status.SUCCESS:
            return
        if result.status is Status.SKIPPED:
            self._line(console, f"           {result.seen}", "dim")
            return
        for requirement in result.check.requirements:
            self._line(console, f"           {requirement.id}  {requirement.text}")
        self._line(console, f"           expected  {result.expected}")
        self._line(console, f"           seen      {result.seen}")
        self._line(console, f"           change    {result.check.remedy}")
        limit = None if verbose else SHOWN_MESSAGES
        for line in _wire_lines(result, self.redaction, limit=limit):
            self._line(console, f"           {line}", "dim")

    def _line(self, console: Console, text: str, style: str = "") -> None:
        shown = Text(self.redaction.text(text), style=style)
        console.print(shown, soft_wrap=True, highlight=False)


def _alike(results: Sequence[Judgement]) -> list[list[Judgement]]:
    """Group what would be told in the same words, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Judgement]] = {}
    for result in results:
        words: tuple[object, ...] = (result.check.id, result.status, result.expected, result.seen)
        key = (result.seen,) if result.untestable else words
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def _result_json(result: Judgement) -> Json:
    shown: Json = {
        "id": result.check.id,
        "spec_version": result.era,
        "requirements": [
            {"id": requirement.id, "text": requirement.text}
            for requirement in result.check.requirements
        ],
        "status": result.status,
        "expected": result.expected,
        "seen": result.seen,
        "remedy": result.check.remedy,
    }
    if result.scenario:
        shown["scenario"] = result.scenario
    if result.step:
        shown["step"] = result.step
    if result.untestable:
        shown["untestable"] = True
    if result.expected_failure:
        shown["expected_failure"] = True
    if result.status in (Status.FAILURE, Status.WARNING):
        shown["messages"] = [message.to_json() for message in result.messages]
    return shown


def _official_row(result: Judgement, at: datetime) -> Json:
    """Return one row of the official suite's checks.json."""
    row: Json = {
        "id": result.check.id,
        "name": "".join(word.capitalize() for word in result.check.id.split("-")),
        "description": result.check.judges,
        "status": result.status,
        "timestamp": _time(at),
        "specReferences": [{"id": requirement.id} for requirement in result.check.requirements],
        "details": {"expected": result.expected, "seen": result.seen},
    }
    if result.status in (Status.FAILURE, Status.WARNING):
        row["errorMessage"] = f"expected {result.expected}; saw {result.seen}"
        row["details"]["messages"] = [message.to_json() for message in result.messages]
    if result.untestable:
        row["errorMessage"] = result.seen
        row["details"]["untestable"] = True
    return row


def _wire_lines(result: Judgement, redaction: Redaction, *, limit: int | None) -> list[str]:
    messages = list(result.messages)
    lines: list[str] = []
    if limit is not None and len(messages) > limit:
        lines.append(f"({len(messages) - limit} earlier messages are in report.json)")
        messages = messages[-limit:]
    for message in messages:
        shown = json.dumps(redaction.json(message.body), ensure_ascii=False)
        arrow = "->" if message.sender == "client" else "<-"
        cut = shown if limit is None or len(shown) <= 500 else shown[:500] + "…"
        lines.append(f"{arrow} {cut}")
    return lines


def check_json(check: Check) -> Json:
    """Return a check as `list --json` shows it."""
    return {
        "id": check.id,
        "level": check.level,
        "spec_versions": list(check.eras),
        "judges": check.judges,
        "remedy": check.remedy,
        "requirements": [
            {"id": requirement.id, "text": requirement.text} for requirement in check.requirements
        ],
    }


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
