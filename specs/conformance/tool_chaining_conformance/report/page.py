"""Reports as one HTML page: the sentences are its rows, the implementations its columns.

The page is one file without a script, and its content security policy forbids it to load or run
anything. The texts of a report come from strangers: Jinja2 escapes each one, and `_shown` shortens
it and shows its control and invisible characters as escapes.
"""

import base64
import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from tool_chaining_conformance import SUITE, __version__
from tool_chaining_conformance.errors import UsageError
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.requirements import load_requirements
from tool_chaining_conformance.specification import read_text
from tool_chaining_conformance.text import cut, is_blank, one_line, printable

CHARACTERS: Final = 4000
"""Characters of one text, or of one message, that the page shows."""
MESSAGES: Final = 6
"""The most messages to show for one failure."""
PLACES: Final = 5
"""The most failures to show for one check."""

_HERE: Final = Path(__file__)
_HEADING_OR_SENTENCE: Final = re.compile(r"^(?:### (.+)|- \*\*(TC-[DSC]-\d\d)\*\* )", re.MULTILINE)


class Mark(StrEnum):
    """What the page says about an implementation and a sentence. The worst comes first."""

    FAILED = "failed"
    WARNING = "warning"
    UNTESTABLE = "not testable"
    PASSED = "passed"
    SKIPPED = "not applicable"
    ABSENT = "not in the report"


@dataclass(frozen=True)
class Found:
    """What one check found, in the revisions in which it has the same mark."""

    check: Json
    mark: Mark
    places: Sequence[Json]
    more: int
    """Places that the page does not show."""


@dataclass(frozen=True)
class Cell:
    """The result of one implementation on one sentence."""

    mark: Mark
    found: Sequence[Found]
    gaps: Sequence[Json]
    """Entries of `not_exercised` that no result repeats."""
    other_text: str | None
    """The report's version of the sentence, if it differs from the row's."""


@dataclass(frozen=True)
class Row:
    """One sentence, with a cell for each implementation; None if it concerns the other side."""

    id: str
    text: str
    cells: Sequence[Cell | None]


def read_report(path: Path) -> Json:
    """Read a `report.json`. Raises UsageError, whose message says what is wrong with the file."""
    try:
        report = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON: {one_line(str(error))}") from error
    schema = json.loads(read_text("conformance/schemas/report.schema.json"))
    try:
        wrong = next(jsonschema_rs.validator_for(schema).iter_errors(report), None)
    except ValueError as error:  # For example, it is nested too deeply for the validator.
        raise UsageError(f"{path}: cannot be checked: {one_line(str(error))}") from error
    if wrong is not None:
        at = "/".join(map(str, wrong.instance_path)) or "the report"
        why = one_line(cut(f"{at}: {wrong.message}", 300))
        raise UsageError(
            f"{path}: is not a report.json of {SUITE} {__version__}: {why}. If another version "
            "wrote it, judge the target again with this one"
        )
    return dict(report)


def page_of(reports: Sequence[tuple[str, Json]]) -> str:
    """Return the page on reports, each with the name of its column; "": the target's own."""
    groups = _groups([report for _, report in reports])
    rows = [row for group in groups.values() for row in group]
    style = _HERE.with_name("page.css").read_text("utf-8")
    style += f":root {{ --columns: {len(reports)}; }}\n"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        autoescape=True,
        finalize=_shown,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["prose"] = _prose
    return environment.from_string(_HERE.with_name("page.html").read_text("utf-8")).render(
        columns=_columns(reports, rows),
        groups=groups,
        untested=[one for one in load_requirements() if one.excluded],
        version=__version__,
        style=Markup(style),  # noqa: S704 - it is ours
        digest=digest,
    )


def _columns(reports: Sequence[tuple[str, Json]], rows: Iterable[Row]) -> list[Json]:
    columns: list[Json] = []
    for number, (name, report) in enumerate(reports):
        cells = [(row, cell) for row in rows if (cell := row.cells[number]) is not None]
        target = report["target"]
        at = target["url"] if "url" in target else shlex.join(target["command"])
        own = target.get("name", "")
        columns.append(
            {
                "name": cut(name or (at if is_blank(own) else own), 80),
                "report": report,
                "target": at,
                "marks": Counter(cell.mark for _, cell in cells),
                "bad": [each for each in cells if each[1].mark in (Mark.FAILED, Mark.WARNING)],
                "reworded": [row.id for row, cell in cells if cell.other_text is not None],
                "absent": [row.id for row, cell in cells if cell.mark is Mark.ABSENT],
            }
        )
    for name, count in Counter(column["name"] for column in columns).items():
        same = [column for column in columns if column["name"] == name]
        for number, column in enumerate(same if count > 1 else (), 1):
            column["name"] = f"{name} ({number})"
    return columns


def _groups(reports: Sequence[Json]) -> dict[str, list[Row]]:
    """Return the sentences under the headings of the text; those that it does not have are last."""
    known = {one.id: one for one in load_requirements()}
    judged = [
        {one["id"]: one["text"] for check in report["checks"] for one in check["requirements"]}
        for report in reports
    ]
    texts = {one: text for each in reversed(judged) for one, text in each.items()}
    texts |= {one.id: one.text for one in known.values()}
    groups: dict[str, list[str]] = {}
    for heading, sentence in _HEADING_OR_SENTENCE.findall(read_text("tool-chaining.md")):
        if heading:
            group = groups.setdefault(heading, [])
        else:
            group.append(sentence)
    groups["Not in the text of this suite"] = sorted(texts.keys() - known)

    def row(sentence: str) -> Row:
        checks = known[sentence].checks if sentence in known else ()
        text = texts[sentence]
        cells = []
        for report, own in zip(reports, judged, strict=True):
            is_about = any(f"-{report['side']}-" in check for check in checks)
            other = own.get(sentence, text)
            cells.append(_cell(sentence, report, is_about, None if other == text else other))
        return Row(sentence, text, cells)

    rows = {name: [row(each) for each in sentences] for name, sentences in groups.items()}
    shown = {name: [each for each in group if any(each.cells)] for name, group in rows.items()}
    return {name: group for name, group in shown.items() if group}


def _cell(sentence: str, report: Json, is_about: bool, other_text: str | None) -> Cell | None:
    results: dict[tuple[str, Mark], list[Json]] = {}
    for check in report["checks"]:
        if any(one["id"] == sentence for one in check["requirements"]):
            results.setdefault((check["id"], _mark(check)), []).append(check)
    judged = {check for check, _ in results}
    gaps = [
        row
        for row in report["not_exercised"]
        if sentence in row["requirements"] and ("places" in row or row["id"] not in judged)
    ]
    if not (results or gaps or is_about):
        return None
    marks = [mark for _, mark in results] or [Mark.SKIPPED if gaps else Mark.ABSENT]
    found = [_found(mark, checks) for (_, mark), checks in results.items()]
    return Cell(min(marks, key=list(Mark).index), found, gaps, other_text)


def _mark(judgement: Json) -> Mark:
    if judgement.get("untestable"):
        return Mark.UNTESTABLE
    marks = {"SUCCESS": Mark.PASSED, "FAILURE": Mark.FAILED, "WARNING": Mark.WARNING}
    return marks.get(judgement["status"], Mark.SKIPPED)


def _found(mark: Mark, results: Sequence[Json]) -> Found:
    """Return what a check found, from its results with one mark, one for each revision."""
    groups: dict[tuple[str, str, str], dict[str, Json]] = {}
    for result in results:
        same = [each for each in result["judgements"] if _mark(each) is mark]
        for each in same or [result]:
            at = "/".join(filter(None, (each.get("scenario"), each.get("step"))))
            of_place = groups.setdefault((at, each["expected"], each["seen"]), {})
            of_place.setdefault(result["spec_version"], each)
    count = PLACES if mark in (Mark.FAILED, Mark.WARNING) else 1
    places = [_place(at, each) for (at, *_), each in [*groups.items()][:count]]
    return Found(results[0], mark, places, len(groups) - len(places))


def _place(at: str, by_revision: Mapping[str, Json]) -> Json:
    """Return what a check found at one place, in the revisions with the same result."""
    judgement = next(iter(by_revision.values()))
    messages = judgement.get("messages", [])
    if "place" in judgement:  # The wrong message is the last one needed.
        messages = messages[: judgement["place"]["message"] + 1]
    shown = [{**each, "text": as_json(each["message"], 2)} for each in messages[-MESSAGES:]]
    changed = {"at": at, "revisions": list(by_revision), "messages": shown}
    return {**judgement, **changed, "left_out": len(messages) - len(shown)}


def _shown(value: Any) -> Any:
    """Return a value for the page: shortened text without invisible characters."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(cut(value, CHARACTERS)) if is_text else value


def _prose(text: str) -> Markup:
    """Return a sentence in Markdown as HTML: its code, and its links as text."""
    plain = re.sub(r"\[([^][]+)\]\([^()]*\)", r"\1", _shown(text))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(plain))))  # noqa: S704
