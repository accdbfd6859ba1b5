"""Reports of runs that show nothing, everything, or far too much."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.json import write_json
from banking_server.conformance.report.judgement import Finding, Judge, NotApplicable
from banking_server.conformance.report.junit import write_junit
from banking_server.conformance.report.redaction import REDACTED, Redaction
from banking_server.conformance.report.report import Report
from banking_server.conformance.report.run import Run
from banking_server.conformance.report.summary import print_summary
from banking_server.conformance.report.verdict import Verdict
from banking_server.conformance.requirements import checks_of
from banking_server.conformance.target.era import Era

pytestmark = pytest.mark.quick

UNLISTED = "tool-chaining-server-names-listed-tool"


def judge(era: Era = Era.MODERN) -> Judge:
    every = frozenset(check.id for check in checks_of("server"))
    return Judge("shop", era, every)


def report_on(*judges: Judge, redaction: Redaction | None = None) -> Report:
    run = Run("server")
    for each in judges:
        run.spoke(each.era)
        run.judgements += each.judgements
    return Report.on(
        run,
        target={"url": "http://127.0.0.1/mcp"},
        scenarios=["shop"],
        started=datetime.now(UTC),
        redaction=redaction or Redaction(),
    )


def message(number: int, body: Any = None) -> WireMessage:
    return WireMessage("server", {"id": number, "result": body or {}})


def summary(report: Report) -> str:
    written = io.StringIO()
    print_summary(report, Console(file=written, width=200))
    return written.getvalue()


def test_a_run_in_which_nothing_applies_is_no_pass() -> None:
    one = judge()
    one.record(UNLISTED, NotApplicable("the server has no tools"))
    conclusion = report_on(one).conclusion
    assert conclusion.verdict is Verdict.INCONCLUSIVE
    assert conclusion.reason == "no check found anything to judge"


def test_what_was_kept_before_it_was_known_as_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    redaction = Redaction()
    one = judge()
    said = message(1, {"content": [{"type": "text", "text": "The word is friend-of-ann."}]})
    found = Finding(False, "not friend-of-ann", "friend-of-ann")
    one.record(UNLISTED, found, step="early", messages=[said])
    redaction.add("friend-of-ann")
    report = report_on(one, redaction=redaction)
    assert report.run.judgements[0].at_fault is report.run.judgements[0].messages[0]
    write_junit(report, tmp_path / "junit.xml")
    write_json(report, tmp_path / "folder")
    told = [summary(report)]
    told += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(told) == 3
    for text in told:
        assert "friend" not in text
        assert REDACTED in text.replace("\\", "")
