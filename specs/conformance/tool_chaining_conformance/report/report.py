"""A finished run with its verdict, from which each form of report is made."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from tool_chaining_conformance.message import Json, WireMessage
from tool_chaining_conformance.report.judgement import Judgement, collapse, grouped
from tool_chaining_conformance.report.not_exercised import NotExercised, find_not_exercised
from tool_chaining_conformance.report.plain import as_json
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.run import Run
from tool_chaining_conformance.report.verdict import Conclusion, conclude
from tool_chaining_conformance.text import cut

MESSAGE: Final = 1024 * 1024
"""The most characters of one message in a report."""

TEXT: Final = 4000
"""The most characters to keep of one text."""


def shortened(text: str, redaction: Redaction) -> str:
    """Return a text without secrets, cut after `TEXT` characters."""
    return cut(redaction.text(text), TEXT)


@dataclass(frozen=True)
class Report:
    """One finished run, without secrets: every form of report is made from it."""

    run: Run
    target: Json
    """`url` or `command`, and the target's own `name` and `version` if known."""
    conclusion: Conclusion
    finished: datetime

    @classmethod
    def on(cls, run: Run, target: Json, redaction: Redaction, *, strict: bool = False) -> "Report":
        """Return the report on a run that has just finished."""
        run = _redacted(run, redaction)
        identity = {"name": run.name, "version": run.version}
        return cls(
            run=run,
            target=redaction.json(target | {k: v for k, v in identity.items() if v is not None}),
            conclusion=conclude(run, strict=strict),
            finished=datetime.now(UTC),
        )

    @cached_property
    def results(self) -> list[Judgement]:
        """Every check once in each era: the worst judgement on it."""
        return collapse(self.run.judgements)

    @cached_property
    def not_exercised(self) -> tuple[NotExercised, ...]:
        """The checks that were not made, with the reasons."""
        return find_not_exercised(self.run.side, self.run.judgements)

    @cached_property
    def violations(self) -> list[list[Judgement]]:
        """The failures on each check that failed, in the specification's order."""
        failed = [
            each for result in self.results for each in self.on_check(result) if each.is_violation
        ]
        return grouped(failed, lambda each: each.check.id)

    def on_check(self, result: Judgement) -> list[Judgement]:
        """Return every judgement on the check of a result, in its era."""
        return [
            each
            for each in self.run.judgements
            if each.check.id == result.check.id and each.era is result.era
        ]


def _redacted(run: Run, redaction: Redaction) -> Run:
    """Return a run without secrets. At its end, all secrets are known."""
    shown: dict[int, WireMessage] = {}
    """The shortened messages by the identity of the original: several checks show the same."""

    def message_of(message: WireMessage) -> WireMessage:
        if id(message) not in shown:
            body = redaction.json(message.body, length=TEXT)
            size = len(as_json(body))
            if size > MESSAGE:
                body = {"\u2026": f"a message of {size:,} characters"}
            raw = None if message.raw is None else cut(redaction.text(message.raw), TEXT)
            shown[id(message)] = WireMessage(message.sender, body, raw)
        return shown[id(message)]

    return replace(
        run,
        problems=[shortened(each, redaction) for each in run.problems],
        dropped=[shortened(each, redaction) for each in run.dropped],
        crashes=[shortened(each, redaction) for each in run.crashes],
        unspoken={era: shortened(why, redaction) for era, why in run.unspoken.items()},
        judgements=[
            replace(
                each,
                advice=each.advice and shortened(each.advice, redaction),
                expected=shortened(each.expected, redaction),
                seen=shortened(each.seen, redaction),
                messages=tuple(map(message_of, each.messages)),
            )
            for each in run.judgements
        ],
    )
