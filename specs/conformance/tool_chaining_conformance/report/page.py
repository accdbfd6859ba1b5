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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from tool_chaining_conformance import SUITE, __version__
from tool_chaining_conformance.errors import UsageError
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.requirements import Requirement, load_requirements
from tool_chaining_conformance.specification import read_text
from tool_chaining_conformance.text import cut, is_blank, one_line, printable

CHARACTERS: Final = 4000
"""Characters of one text, or of one message, that the page shows."""
MESSAGES: Final = 6
"""The most messages to show for one failure."""
PLACES: Final = 5
"""The most failures to show for one check."""

SHARED_NAMES: Final = ("mcp", "")
"""Names of clients that say nothing: the first one is that of the Python SDK."""

MARKS: Final = (
    *("failed", "warning", "not testable", "passed in part", "passed", "not applicable"),
)
"""What the page says about an implementation and a sentence. The worst comes first."""

_HERE: Final = Path(__file__)
_HEADING_OR_SENTENCE: Final = re.compile(r"^(?:### (.+)|- \*\*(TC-[DSC]-\d\d)\*\* )", re.MULTILINE)


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
    columns = [_column(name, report) for name, report in reports]
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
    environment.filters |= {"prose": _prose, "json": lambda value: as_json(value, 2)}
    return environment.from_string(_HERE.with_name("page.html").read_text("utf-8")).render(
        columns=columns,
        groups=_groups([column["cells"] for column in columns]),
        untested=[one for one in load_requirements() if one.excluded],
        version=__version__,
        style=Markup(style),  # noqa: S704 - it is ours
        digest=digest,
        places=PLACES,
        messages=MESSAGES,
    )


def _column(name: str, report: Json) -> Json:
    """Return what the page shows of a report."""
    target = report["target"]
    at = target["url"] if "url" in target else shlex.join(target["command"])
    own = target.get("name", "")
    if is_blank(own) or (report["side"] == "client" and own in SHARED_NAMES):
        own = at.rpartition("/")[2]
    found = {one.id: _cell(one.id, report) for one in load_requirements()}
    cells = {sentence: cell for sentence, cell in found.items() if cell is not None}
    return {
        "name": cut(name or own, 80),
        "report": report,
        "target": at,
        "cells": cells,
        "marks": Counter(cell["mark"] for cell in cells.values()),
    }


def _groups(columns: Sequence[Json]) -> dict[str, list[Requirement]]:
    """Return the sentences that a column has a result on, under the headings of the text."""
    known = {one.id: one for one in load_requirements()}
    groups: dict[str, list[Requirement]] = {}
    group: list[Requirement] = []
    for heading, sentence in _HEADING_OR_SENTENCE.findall(read_text("tool-chaining.md")):
        if heading:
            group = groups.setdefault(heading, [])
        elif any(sentence in cells for cells in columns):
            group.append(known[sentence])
    return {heading: group for heading, group in groups.items() if group}


def _cell(sentence: str, report: Json) -> Json | None:
    """Return the result on a sentence: each check with its mark, in the revisions that share it."""
    results: dict[tuple[str, str], list[Json]] = {}
    for check in report["checks"]:
        if any(one["id"] == sentence for one in check["requirements"]):
            results.setdefault((check["id"], _mark(check)), []).append(check)
    judged = {check for check, _ in results}
    gaps = [
        row
        for row in report["not_exercised"]
        if sentence in row["requirements"] and ("places" in row or row["id"] not in judged)
    ]
    if not (results or gaps):
        return None
    marks = {mark for _, mark in results} or {"not applicable"}
    if "passed" in marks and (gaps or "not applicable" in marks):
        marks.add("passed in part")
    found = [
        {"mark": mark, "check": checks[0], "places": _places(mark, checks)}
        for (_, mark), checks in results.items()
    ]
    return {"mark": min(marks, key=MARKS.index), "found": found, "gaps": gaps}


def _mark(judgement: Json) -> str:
    if judgement.get("untestable"):
        return "not testable"
    marks = {"SUCCESS": "passed", "FAILURE": "failed", "WARNING": "warning"}
    return marks.get(judgement["status"], "not applicable")


def _places(mark: str, results: Sequence[Json]) -> list[Json]:
    """Return the places with this mark; those that differ in the revision only are one place."""
    places: dict[tuple[str, str, str], Json] = {}
    for result in results:
        same = [each for each in result["judgements"] if _mark(each) == mark]
        for each in same or [result]:
            at = "/".join(filter(None, (each.get("scenario"), each.get("step"))))
            place = places.setdefault((at, each["expected"], each["seen"]), {**each, "at": at})
            place.setdefault("revisions", []).append(result["spec_version"])
    return list(places.values())


def _shown(value: Any) -> Any:
    """Return a value for the page: shortened text without invisible characters."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(cut(value, CHARACTERS)) if is_text else value


def _prose(text: str) -> Markup:
    """Return a sentence in Markdown as HTML: its code, and its links as text."""
    plain = re.sub(r"\[([^][]+)\]\([^()]*\)", r"\1", _shown(text))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(plain))))  # noqa: S704
