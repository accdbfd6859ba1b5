"""A report as one HTML file, which a person reads first: nothing in it is fetched, or runs.

The template shows what is prepared here. Everything that a target sent is text to it: Jinja2
escapes it, and the file's own policy allows no script, should that ever fail.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from banking_server import __version__
from banking_server.conformance import SUITE
from banking_server.conformance.message import WireMessage
from banking_server.conformance.report.groups import Alike, NotKept
from banking_server.conformance.report.judgement import Judgement, Status
from banking_server.conformance.report.keeping import CUT, Place
from banking_server.conformance.report.plain import (
    Line,
    message_line,
    message_lines,
    missing_member,
)
from banking_server.conformance.report.report import Report
from banking_server.conformance.report.verdict import Verdict
from banking_server.conformance.requirements import Check, load_requirements
from banking_server.conformance.target.era import Era
from banking_server.text import cut, printable

SENTENCE: Final = 1500
"""Characters of one text that are shown."""

OTHER_MESSAGES: Final = 20
"""Messages that are shown beside the one at fault, the last ones."""

PLACES: Final = 40
"""Places of one check that are shown with their messages; the rest in words."""

GAPS: Final = 12
"""Sentences not exercised that are named beside the verdict; all are named below it."""

_CODE: Final = re.compile("`([^`]+)`")
_HEADLINES: Final = {
    Verdict.CONFORMANT: "is conformant",
    Verdict.NONCONFORMANT: "is not conformant",
    Verdict.INCONCLUSIVE: "could not be judged completely",
    Verdict.ERROR: "could not be examined",
}


@dataclass(frozen=True)
class _Shown:
    """One place where a check failed."""

    place: str
    eras: str
    expected: str
    seen: str
    is_expected: bool
    sender: str
    lines: Sequence[Line]
    """The message at fault; empty if no member is."""
    pointer: str
    missing: str | None
    messages: Sequence[tuple[str, str]]
    """Who sent each of the others, and its text."""


@dataclass(frozen=True)
class _Row:
    """A check in the list of all."""

    check: Check
    results: Sequence[tuple[Era, str, str, str]]
    """For each revision a class, a word and a detail."""
    judgements: Sequence[tuple[str, str, str, str]]
    """Of each: class, word, place and what was seen."""


def write_html(report: Report, path: Path) -> None:
    """Write the file, and the folders above it. Raises OSError."""
    environment = Environment(
        loader=PackageLoader("banking_server.conformance.report", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = _Page(report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        environment.get_template("report.html").render(
            page=page,
            report=report,
            say=page.say,
            suite=SUITE,
            version=__version__,
            headline=_HEADLINES[report.conclusion.verdict],
        ),
        encoding="utf-8",
    )


class _Page:
    """What the template asks for."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def say(self, text: object) -> str:
        """Return a text without secrets, without what cannot be seen, and not too long."""
        return printable(cut(self._report.redaction.text(str(text)), SENTENCE))

    def words(self, text: str) -> Markup:
        """Return a sentence of the suite's, in which `…` is code."""
        return Markup(_CODE.sub(r"<code>\1</code>", escape(self.say(text))))  # noqa: S704 - escaped

    @property
    def name(self) -> str:
        """What the target is called."""
        target = self._report.target
        name = target.get("name") or f"The {self._report.run.side}"
        return self.say(f"{name} {target.get('version', '')}".strip())

    @property
    def reached_at(self) -> str:
        """The URL or the command of the target."""
        target = self._report.target
        return self.say(target["url"] if "url" in target else " ".join(target["command"]))

    @property
    def seconds(self) -> str:
        """How long the run took."""
        taken = self._report.finished - self._report.started
        return f"{taken.total_seconds():.1f} s"

    @property
    def numbers(self) -> list[tuple[str, int, str]]:
        """Class, number and word of each kind of result."""
        results = self._report.results
        untestable = sum(result.untestable for result in results)
        by_status = {
            status: sum(result.status is status for result in results) for status in Status
        }
        return [
            ("failed", by_status[Status.FAILURE], "failed"),
            ("warning", by_status[Status.WARNING], "warnings"),
            ("untestable", untestable, "not testable"),
            ("passed", by_status[Status.SUCCESS], "passed"),
            ("skipped", by_status[Status.SKIPPED] - untestable, "not applicable"),
        ]

    @property
    def gaps(self) -> str:
        """The sentences that were not exercised, without the reasons."""
        found = self._report.gaps
        whole = [f"everything on {gap.everything_on}" for gap in found if gap.everything_on]
        rest = [gap for gap in found if not gap.everything_on]
        full = [sentence for gap in rest if not gap.places for sentence in gap.sentences]
        partly = [sentence for gap in rest if gap.places for sentence in gap.sentences]
        in_part = [f"{sentence} in part" for sentence in partly if sentence not in full]
        named = list(dict.fromkeys([*full, *in_part]))
        more = [f"{len(named) - GAPS} more"] if len(named) > GAPS else []
        return ", ".join([*named[:GAPS], *more, *whole])

    @property
    def exercised(self) -> list[str]:
        """The ids of the sentences on which something was judged."""
        judged = {
            requirement.id
            for result in self._report.results
            if result.status is not Status.SKIPPED
            for requirement in result.check.requirements
        }
        return [sentence.id for sentence in load_requirements() if sentence.id in judged]

    @property
    def never_tested(self) -> list[tuple[str, str]]:
        """The sentences about this side that no check tests, each with the reason."""
        family = "TC-S-" if self._report.run.side == "server" else "TC-C-"
        return [
            (sentence.id, sentence.excluded)
            for sentence in load_requirements()
            if sentence.excluded is not None and sentence.id.startswith(family)
        ]

    def failures(self, status: str) -> list[NotKept]:
        """Return the checks that are a FAILURE, or a WARNING."""
        return [group for group in self._report.not_kept if group.status == status]

    def places(self, group: NotKept) -> list[_Shown]:
        """Return every place where a check failed."""
        return [
            self._place(place, with_messages=number < PLACES)
            for number, place in enumerate(group.places)
        ]

    def _place(self, group: Alike, *, with_messages: bool) -> _Shown:
        first = group.first
        at = first.place if with_messages else None
        message = at.message if at is not None else None
        others = [each for each in first.messages if each is not message] if with_messages else []
        return _Shown(
            place=self.say(group.place or "the whole run"),
            eras=group.eras,
            expected=self.say(first.expected),
            seen=self.say(first.seen),
            is_expected=first.expected_failure,
            sender=_sender(message) if message else "",
            lines=self._lines(message, at),
            pointer=at.pointer if at else "",
            missing=missing_member(at) if at else None,
            messages=[
                (_sender(each), message_line(each, SENTENCE)) for each in others[-OTHER_MESSAGES:]
            ],
        )

    def _lines(self, message: WireMessage | None, at: Place | None) -> list[Line]:
        if message is None:
            return []
        return [
            (text if len(text) <= SENTENCE else text[:SENTENCE] + CUT, marked)
            for text, marked in message_lines(message, at)
        ]

    @property
    def rows(self) -> list[_Row]:
        """Every check that was looked at, with every judgement on it."""
        by_check: dict[str, list[Judgement]] = {}
        for result in self._report.results:
            by_check.setdefault(result.check.id, []).append(result)
        return [self._row(results) for results in by_check.values()]

    def _row(self, results: Sequence[Judgement]) -> _Row:
        shown: list[tuple[Era, str, str, str]] = []
        judgements: list[tuple[str, str, str, str]] = []
        for result in results:
            made = self._report.on_check(result)
            alike = sum(each.status is result.status for each in made)
            detail = f"{alike} of {len(made)}" if len(made) > 1 else ""
            shown.append((result.era, *_word(result), detail))
            for each in made:
                where = f"{result.era} {self.say(each.at)}".strip()
                judgements.append((*_word(each), where, self.say(cut(each.seen, 300))))
        return _Row(results[0].check, shown, judgements)


def _sender(message: WireMessage) -> str:
    return "client" if message.sender == "client" else "server"


def _word(judgement: Judgement) -> tuple[str, str]:
    """Return the class and the word for what became of a check."""
    if judgement.untestable:
        return "untestable", "not testable"
    word = {
        Status.SUCCESS: ("passed", "passed"),
        Status.FAILURE: ("failed", "failed"),
        Status.WARNING: ("warning", "warning"),
        Status.SKIPPED: ("skipped", "not applicable"),
    }[judgement.status]
    return (word[0], f"{word[1]}, as expected") if judgement.expected_failure else word
