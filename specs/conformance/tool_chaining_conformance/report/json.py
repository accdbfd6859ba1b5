"""A report as JSON: report.json, whose schema is in `specs/conformance/schemas`."""

from collections import Counter
from datetime import UTC, datetime

from tool_chaining_conformance import SUITE, __version__
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.report.judgement import Judgement, Status
from tool_chaining_conformance.report.not_exercised import NotExercised
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.report.report import Report


def report_json(report: Report) -> str:
    """Return the text of report.json."""
    counts = Counter(result.status for result in report.results)
    document: Json = {
        "schema_version": 2,
        "suite": {"name": SUITE, "version": __version__},
        "extension": IDENTIFIER,
        "side": report.run.side,
        "target": report.target,
        "spec_versions": report.run.spoken,
        "scenarios": list(dict.fromkeys(each.scenario for each in report.run.judgements)),
        "started": _time(report.run.started),
        "finished": _time(report.finished),
        "verdict": report.conclusion.verdict,
        "reason": report.conclusion.reason,
        "summary": {status: counts[status] for status in Status},
        "not_exercised": [_not_exercised_json(each) for each in report.not_exercised],
        "checks": [_result_json(report, result) for result in report.results],
    }
    if notes := [*report.run.problems, *report.run.dropped]:
        document["problems"] = notes
    return as_json(document, indent=2) + "\n"


def _not_exercised_json(each: NotExercised) -> Json:
    row: Json = {
        "id": each.check.id,
        "requirements": [requirement.id for requirement in each.check.requirements],
        "spec_versions": list(each.eras),
        "reason": each.reason,
        "untestable": each.untestable,
    }
    if each.places:
        row["places"] = list(each.places)
    return row


def _result_json(report: Report, result: Judgement) -> Json:
    return {
        "id": result.check.id,
        "spec_version": result.era,
        "requirements": [
            {"id": requirement.id, "text": requirement.text}
            for requirement in result.check.requirements
        ],
        "reads": result.check.reads,
        "remedy": result.advice or result.check.remedy,
        **_judgement_json(result),
        "judgements": [_judgement_json(each) for each in report.on_check(result)],
    }


def _judgement_json(judgement: Judgement) -> Json:
    """Return a judgement as JSON. The worst judgement is also the result of its check."""
    row: Json = {
        "status": judgement.status,
        "expected": judgement.expected,
        "seen": judgement.seen,
    }
    if judgement.scenario:
        row["scenario"] = judgement.scenario
    if judgement.step:
        row["step"] = judgement.step
    if judgement.untestable:
        row["untestable"] = True
    if judgement.crashed:
        row["broke_off"] = True
    if judgement.is_violation:
        row["messages"] = [message.to_json() for message in judgement.messages]
    if (at_fault := judgement.at_fault) is not None:
        number = next(n for n, each in enumerate(judgement.messages) if each is at_fault)
        row["place"] = {"message": number, "pointer": judgement.check.at}
    return row


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
