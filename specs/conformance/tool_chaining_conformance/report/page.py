"""Reports as one HTML page: the sentences are its rows, the implementations its columns.

The page is one file without a script, and its content security policy forbids to load or run
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
from enum import Enum
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from tool_chaining_conformance import __version__
from tool_chaining_conformance.errors import UsageError
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.report.verdict import Verdict
from tool_chaining_conformance.requirements import Requirement, load_requirements
from tool_chaining_conformance.specification import read_text
from tool_chaining_conformance.text import cut, is_blank, one_line, printable

CHARACTERS: Final = 4000
"""Characters of one text, or of one message, that the page shows."""
MESSAGES: Final = 6
"""Messages that the page shows of one failure."""
PLACES: Final = 5
"""Failures that the page shows of one check."""

_HERE: Final = Path(__file__)
_HEADING_OR_SENTENCE: Final = re.compile(r"^(?:### (.+)|- \*\*(TC-[DSC]-\d\d)\*\* )", re.MULTILINE)


class Mark(Enum):
    """What the page says of an implementation and a sentence, the worst first."""

    FAILED = "failed", "\u2717"
    WARNING = "warning", "!"
    UNTESTABLE = "not testable", "?"
    PASSED = "passed", "\u2713"
    SKIPPED = "not applicable", "\u2013"
    ABSENT = "not in the report", "\u00b7"

    @property
    def word(self) -> str:
        """The mark in words."""
        return self.value[0]

    @property
    def sign(self) -> str:
        """The mark as one character."""
        return self.value[1]


_NOT_EXERCISED: Final = (Mark.UNTESTABLE, Mark.SKIPPED, Mark.ABSENT)
_VERDICTS: Final = {
    Verdict.CONFORMANT: Mark.PASSED.sign,
    Verdict.NONCONFORMANT: Mark.FAILED.sign,
    Verdict.INCONCLUSIVE: Mark.UNTESTABLE.sign,
    Verdict.ERROR: Mark.WARNING.sign,
}


@dataclass(frozen=True)
class Place:
    """What a check found at one place of a scenario, in the revisions with the same result."""

    at: str
    revisions: str
    judgement: Json
    messages: Sequence[tuple[str, str]]
    """Who sent a message, and the message."""
    left_out: int
    """Messages before these that the page does not show."""


@dataclass(frozen=True)
class Found:
    """What one check found, in the revisions in which it has the same mark."""

    check: Json
    mark: Mark
    places: Sequence[Place]
    more: int
    """Places that the page does not show."""


@dataclass(frozen=True)
class Cell:
    """One implementation and one sentence."""

    mark: Mark
    found: Sequence[Found]
    gaps: Sequence[Json]
    """Entries of `not_exercised` about it that no check's result repeats."""
    other_text: str | None
    """The sentence as the report has it, if it differs."""


@dataclass(frozen=True)
class Row:
    """One sentence, with a cell for each implementation; None if it is not about that side."""

    id: str
    text: str
    cells: Sequence[Cell | None]


def read_report(path: Path) -> Json:
    """Read a `report.json`. Raises UsageError, whose message says what is wrong with it."""
    try:
        report = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON: {one_line(str(error))}") from error
    if not isinstance(report, dict) or "schema_version" not in report:
        raise UsageError(f"{path}: is no report.json: it has no `schema_version`")
    schema = json.loads(read_text("conformance/schemas/report.schema.json"))
    known = schema["properties"]["schema_version"]["const"]
    if report["schema_version"] != known:
        version = one_line(cut(as_json(report["schema_version"]), 20))
        raise UsageError(
            f"{path}: has the schema_version {version}, and this suite ({__version__}) reads "
            f"{known}; judge the target again with this suite"
        )
    try:
        wrong = next(jsonschema_rs.validator_for(schema).iter_errors(report), None)
    except ValueError as error:  # The validator has a limit of depth.
        raise UsageError(f"{path}: cannot be checked: {one_line(str(error))}") from error
    if wrong is not None:
        at = "/".join(map(str, wrong.instance_path)) or "the report"
        raise UsageError(
            f"{path}: is no report of this suite ({__version__}): "
            f"{one_line(cut(f'{at}: {wrong.message}', 300))}"
        )
    return report


def page_of(reports: Sequence[tuple[str, Json]]) -> str:
    """Return the page on reports, each with the name of its column; "": the target's own."""
    names = _names(reports)
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
        columns=[
            _column(number, name, report, rows)
            for number, (name, (_, report)) in enumerate(zip(names, reports, strict=True))
        ],
        groups=groups,
        marks=Mark,
        verdicts=_VERDICTS,
        untested=[one for one in load_requirements() if one.excluded],
        version=__version__,
        style=Markup(style),  # noqa: S704 - it is ours
        digest=Markup(digest),  # noqa: S704
    )


def _names(reports: Sequence[tuple[str, Json]]) -> list[str]:
    """Return a name for each column. If several have the same one, each gets a number."""
    names = []
    for given, report in reports:
        target = report["target"]
        name = given or target.get("name", "")
        names.append(cut(_target(report) if is_blank(name) else name, 80))
    counts, used = Counter(names), Counter[str]()
    for number, name in enumerate(names):
        used[name] += 1
        if counts[name] > 1:
            names[number] = f"{name} ({used[name]})"
    return names


def _target(report: Json) -> str:
    """Return the URL or the command of what was judged."""
    target = report["target"]
    return target["url"] if "url" in target else shlex.join(target["command"])


def _column(number: int, name: str, report: Json, rows: Iterable[Row]) -> Json:
    cells = [(row, cell) for row in rows if (cell := row.cells[number]) is not None]
    marks = Counter(cell.mark for _, cell in cells)
    return {
        "number": number,
        "name": name,
        "report": report,
        "target": _target(report),
        "counts": [
            (Mark.PASSED, marks[Mark.PASSED], "passed"),
            (Mark.FAILED, marks[Mark.FAILED], "failed"),
            (Mark.WARNING, marks[Mark.WARNING], "warnings"),
            (Mark.SKIPPED, sum(marks[each] for each in _NOT_EXERCISED), "not exercised"),
        ],
        "bad": [(row, cell) for row, cell in cells if cell.mark in (Mark.FAILED, Mark.WARNING)],
        "reworded": [row.id for row, cell in cells if cell.other_text is not None],
        "absent": [row.id for row, cell in cells if cell.mark is Mark.ABSENT],
    }


def _groups(reports: Sequence[Json]) -> dict[str, list[Row]]:
    """Return the sentences under the headings of the text; those that it does not have are last."""
    known = {one.id: one for one in load_requirements()}
    sentences = [_sentences(report) for report in reports]
    others = {one: text for texts in reversed(sentences) for one, text in texts.items()}
    groups: dict[str, list[Row]] = {}
    for heading, sentence in _HEADING_OR_SENTENCE.findall(read_text("tool-chaining.md")):
        if heading:
            rows = groups.setdefault(heading, [])
        else:
            rows.append(_row(known[sentence], known[sentence].text, reports, sentences))
    for sentence in sorted(others.keys() - known):
        unknown = Requirement(sentence, others[sentence], (), None, None)
        rows = groups.setdefault("Not in the text of this suite", [])
        rows.append(_row(unknown, unknown.text, reports, sentences))
    judged = {name: [row for row in rows if any(row.cells)] for name, rows in groups.items()}
    return {name: rows for name, rows in judged.items() if rows}


def _sentences(report: Json) -> dict[str, str]:
    """Return the sentences of a report's checks."""
    return {one["id"]: one["text"] for check in report["checks"] for one in check["requirements"]}


def _row(
    sentence: Requirement,
    text: str,
    reports: Sequence[Json],
    sentences: Sequence[Mapping[str, str]],
) -> Row:
    cells = []
    for report, texts in zip(reports, sentences, strict=True):
        is_about = any(f"-{report['side']}-" in check for check in sentence.checks)
        read = texts.get(sentence.id, text)
        cells.append(_cell(sentence.id, report, is_about, None if read == text else read))
    return Row(sentence.id, text, cells)


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


def _place(at: str, by_revision: Mapping[str, Json]) -> Place:
    judgement = next(iter(by_revision.values()))
    messages = judgement.get("messages", [])
    # The message that is wrong is the last one that is needed.
    end = judgement["place"]["message"] + 1 if "place" in judgement else len(messages)
    kept = messages[:end][-MESSAGES:]
    shown = [(each["from"], as_json(each["message"], indent=2)) for each in kept]
    return Place(at, ", ".join(by_revision), judgement, shown, len(messages[:end]) - len(kept))


def _shown(value: Any) -> Any:
    """Return a value as the page shows it: a text is shortened, and has nothing invisible."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(cut(value, CHARACTERS)) if is_text else value


def _prose(text: str) -> Markup:
    """Return a sentence in Markdown as HTML: its code, and its links as text."""
    plain = re.sub(r"\[([^][]+)\]\([^()]*\)", r"\1", _shown(text))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(plain))))  # noqa: S704
