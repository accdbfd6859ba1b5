"""A report as Markdown, short enough for the summary of a CI step: verdict, gaps, failures."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.report.not_exercised import by_reason
from banking_server.conformance.report.report import Report
from banking_server.conformance.report.summary import counts
from banking_server.conformance.report.verdict import Verdict
from banking_server.text import cut, printable

LENGTH: Final = 500_000
"""Characters of the whole file. GitHub shows no summary of a step above 1 MiB."""

SENTENCE: Final = 500
"""Characters of one thing that was expected or seen."""

_SIGNS: Final = {
    Verdict.CONFORMANT: "✅",
    Verdict.NONCONFORMANT: "❌",
    Verdict.INCONCLUSIVE: "❔",
    Verdict.ERROR: "⚠️",
}
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]#!|~$])")


def write_markdown(report: Report, path: Path) -> None:
    """Write the file, and the folders above it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_markdown(report), encoding="utf-8")


def _markdown(report: Report) -> str:
    words = _Words(report)
    verdict = report.conclusion.verdict
    name = str(report.target.get("name") or report.run.side)
    parts = [
        f"## {_SIGNS[verdict]} {words.say(name)}: {verdict}",
        words.say(report.conclusion.reason),
        words.say(counts(report.results)),
    ]
    parts += _not_exercised(report, words)
    notes = [f"- {words.say(problem)}" for problem in report.run.problems]
    if notes:
        parts.append("\n".join(["### Notes", "", *notes]))
    for status, heading in ((Status.FAILURE, "Failures"), (Status.WARNING, "Warnings")):
        groups = [group for group in report.not_kept if group[0].status is status]
        if groups:
            parts.append(f"### {heading}")
            parts += [_failure(group, words) for group in groups]
    text = ""
    for number, part in enumerate(parts):
        if len(text) + len(part) > LENGTH:
            text += f"{len(parts) - number} more parts are in report.json.\n"
            break
        text += f"{part}\n\n"
    return text


def _not_exercised(report: Report, words: "_Words") -> list[str]:
    if not report.not_exercised:
        return ["Everything was exercised."]
    gaps = by_reason(report.not_exercised)
    lines = [f"- {words.say(reason)}: {words.say(what)}" for reason, what in gaps.items()]
    return ["\n".join(["### Not exercised", "", *lines])]


def _failure(failures: Sequence[Judgement], words: "_Words") -> str:
    check = failures[0].check
    mark = " (expected to fail)" if all(each.expected_failure for each in failures) else ""
    lines = [f"#### `{check.id}`{mark}", ""]
    lines += [
        f"> **{requirement.id}** {words.say(requirement.text)}"
        for requirement in check.requirements
    ]
    lines += ["", f"**Change:** {words.say(check.remedy)}", ""]
    for each in failures:
        lines.append(f"- **{words.say(each.at)}** on {each.era}")
        lines.append(f"  - expected: {words.say(each.expected)}")
        lines.append(f"  - seen: {words.say(each.seen)}")
    return "\n".join(lines)


class _Words:
    """Texts as Markdown that shows them as they are: no secret, no markup of a target's."""

    def __init__(self, report: Report) -> None:
        self._redaction = report.redaction

    def say(self, text: str) -> str:
        shown = " ".join(printable(cut(self._redaction.text(text), SENTENCE)).split())
        return escape(_MARKUP.sub(r"\\\1", shown), quote=False)
