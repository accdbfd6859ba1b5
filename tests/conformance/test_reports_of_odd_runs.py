"""Reports of runs that show nothing, everything, or far too much."""

import io
from datetime import UTC, datetime
from pathlib import Path

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
from banking_server.conformance.target.era import Era

pytestmark = pytest.mark.quick

UNLISTED = "tool-chaining-server-names-listed-tool"


def judge() -> Judge:
    return Judge("shop", Era.MODERN, frozenset({UNLISTED}))


def report_on(judged: Judge, redaction: Redaction | None = None) -> Report:
    run = Run("server")
    run.spoke(judged.era)
    run.judgements += judged.judgements
    return Report.on(
        run,
        target={"url": "http://127.0.0.1/mcp"},
        scenarios=["shop"],
        started=datetime.now(UTC),
        redaction=redaction or Redaction(),
    )


def test_a_run_in_which_nothing_applies_is_no_pass() -> None:
    one = judge()
    one.record(UNLISTED, NotApplicable("the server has no tools"))
    conclusion = report_on(one).conclusion
    assert conclusion.verdict is Verdict.INCONCLUSIVE
    assert conclusion.reason == "no check found anything that it could judge"


def test_what_was_kept_before_it_was_known_as_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    redaction = Redaction()
    one = judge()
    words = {"type": "text", "text": "The word is friend-of-ann."}
    said = WireMessage("server", {"id": 1, "result": {"content": [words]}})
    found = Finding(False, "not friend-of-ann", "friend-of-ann")
    one.record(UNLISTED, found, step="early", messages=[said])
    redaction.add("friend-of-ann")
    report = report_on(one, redaction)
    assert report.run.judgements[0].at_fault is report.run.judgements[0].messages[0]
    terminal = io.StringIO()
    print_summary(report, Console(file=terminal, width=200))
    write_junit(report, tmp_path / "junit.xml")
    write_json(report, tmp_path / "folder")
    told = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(told) == 2
    for text in (terminal.getvalue(), *told):
        assert "friend" not in text
        assert REDACTED in text.replace("\\", "")
