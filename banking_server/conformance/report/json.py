"""A report as JSON: report.json, and checks.json as the official suite writes it."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from banking_server import __version__
from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance import SUITE
from banking_server.conformance.message import Json
from banking_server.conformance.report.format import (
    CheckJson,
    JudgementJson,
    NotExercisedJson,
    ReportJson,
    TargetJson,
)
from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.report.not_exercised import NotExercised
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.report import Report
from banking_server.conformance.target.era import Era


def report_json(report: Report) -> Json:
    """Return report.json; its schema is in `specs/conformance/schemas`."""
    counts = Counter(result.status for result in report.results)
    shown: ReportJson = {
        "schema_version": 2,
        "suite": {"name": SUITE, "version": __version__},
        "extension": IDENTIFIER,
        "side": report.run.side,
        "target": cast(TargetJson, report.target),
        "spec_versions": list(report.run.spoken),
        "scenarios": list(report.scenarios),
        "started": _time(report.started),
        "finished": _time(report.finished),
        "verdict": report.conclusion.verdict,
        "reason": report.conclusion.reason,
        "summary": {status: counts[status] for status in Status},
        "not_exercised": [_not_exercised_json(each) for each in report.not_exercised],
        "checks": [_result_json(report, result) for result in report.results],
    }
    if report.run.problems:
        shown["problems"] = list(report.run.problems)
    redacted: Json = report.redaction.json(shown)
    return redacted


def write_files(report: Report, folder: Path) -> None:
    """Write report.json, and a folder for each scenario in the official suite's layout.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "report.json", report_json(report))
    stamp = report.started.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
    prefix = "server-" if report.run.side == "server" else ""
    parts: dict[tuple[str, Era], list[Judgement]] = {}
    for judgement in report.judgements:
        if judgement.scenario:
            parts.setdefault((judgement.scenario, judgement.era), []).append(judgement)
    for (scenario, era), judgements in parts.items():
        part = folder / f"{prefix}{scenario}-{era}-{stamp}"
        part.mkdir(exist_ok=True)
        rows = [_official_row(judgement, report.finished) for judgement in judgements]
        _write_json(part / "checks.json", report.redaction.json(rows))


def _not_exercised_json(each: NotExercised) -> NotExercisedJson:
    shown: NotExercisedJson = {
        "id": each.check.id,
        "requirements": [requirement.id for requirement in each.check.requirements],
        "spec_versions": list(each.eras),
        "reason": each.reason,
        "untestable": each.untestable,
    }
    if each.places:
        shown["places"] = list(each.places)
    return shown


def _result_json(report: Report, result: Judgement) -> CheckJson:
    return {
        "id": result.check.id,
        "spec_version": result.era,
        "requirements": [
            {"id": requirement.id, "text": requirement.text}
            for requirement in result.check.requirements
        ],
        "remedy": result.check.remedy,
        **_judgement_json(result),
        "judgements": [_judgement_json(each) for each in report.on_check(result)],
    }


def _judgement_json(judgement: Judgement) -> JudgementJson:
    """Return what a judgement says; the worst one speaks for its check as well."""
    shown: JudgementJson = {
        "status": judgement.status,
        "expected": judgement.expected,
        "seen": judgement.seen,
    }
    if judgement.scenario:
        shown["scenario"] = judgement.scenario
    if judgement.step:
        shown["step"] = judgement.step
    if judgement.untestable:
        shown["untestable"] = True
    if judgement.refused:
        shown["broke_off"] = True
    if judgement.expected_failure:
        shown["expected_failure"] = True
    if judgement.not_kept:
        shown["messages"] = [
            {"from": message.sender, "message": message.body} for message in judgement.messages
        ]
    if (place := judgement.place) is not None:
        number = next(n for n, each in enumerate(judgement.messages) if each is place.message)
        shown["place"] = {"message": number, "pointer": place.pointer}
    return shown


def _official_row(result: Judgement, at: datetime) -> Json:
    """Return one judgement as a row of the official suite's checks.json."""
    row: Json = {
        "id": result.check.id,
        "name": "".join(word.capitalize() for word in result.check.id.split("-")),
        "description": result.check.judges,
        "status": result.status,
        "timestamp": _time(at),
        "specReferences": [{"id": requirement.id} for requirement in result.check.requirements],
        "details": {"expected": result.expected, "seen": result.seen},
    }
    if result.step:
        row["details"]["step"] = result.step
    if result.not_kept:
        row["errorMessage"] = f"expected {result.expected}; saw {result.seen}"
        row["details"]["messages"] = [message.to_json() for message in result.messages]
    if result.untestable:
        row["errorMessage"] = result.seen
        row["details"]["untestable"] = True
    return row


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(as_json(value, indent=2) + "\n", encoding="utf-8")
