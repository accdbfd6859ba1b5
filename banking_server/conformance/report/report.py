"""A finished run with its verdict: what `json`, `junit` and `summary` tell, each in its form."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from banking_server.conformance.message import Json
from banking_server.conformance.report.expected_failures import (
    ExpectedFailure,
    mark_expected,
    stale_entries,
)
from banking_server.conformance.report.judgement import Judgement, collapse
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.run import Run
from banking_server.conformance.report.verdict import Conclusion, FailOn, conclude


@dataclass(frozen=True)
class Report:
    """One finished run. Whoever tells of it passes every text through `redaction`."""

    run: Run
    target: Json
    """`url` or `command`, and if known the `name` and `version` it gave of itself."""
    scenarios: Sequence[str]
    judgements: Sequence[Judgement]
    """Those of the run, the expected failures marked."""
    conclusion: Conclusion
    stale: Sequence[ExpectedFailure]
    """Expected failures that passed."""
    expected: Sequence[ExpectedFailure]
    started: datetime
    finished: datetime
    redaction: Redaction

    @classmethod
    def on(
        cls,
        run: Run,
        *,
        target: Json,
        scenarios: Sequence[str],
        expected: Sequence[ExpectedFailure],
        fail_on: FailOn,
        started: datetime,
        redaction: Redaction,
    ) -> "Report":
        """Reach the verdict on a run that has just finished."""
        identity = {"name": run.name, "version": run.version}
        judgements = mark_expected(expected, run.judgements)
        stale = stale_entries(expected, judgements)
        return cls(
            run=run,
            target=target | {key: value for key, value in identity.items() if value is not None},
            scenarios=scenarios,
            judgements=judgements,
            conclusion=conclude(
                [judgement for judgement in judgements if not judgement.expected_failure],
                silence=run.silence,
                stale=stale,
                fail_on=fail_on,
            ),
            stale=stale,
            expected=expected,
            started=started,
            finished=datetime.now(UTC),
            redaction=redaction,
        )

    @cached_property
    def results(self) -> list[Judgement]:
        """Every check once in each era: the worst judgement on it."""
        return collapse(self.judgements)

    def wire_lines(self, result: Judgement, *, limit: int | None = None) -> list[str]:
        """Return the wire messages behind a result, one line each, without secrets.

        Args:
            result: One of the results.
            limit: Shows only that many, the last ones, and cuts long ones short.
        """
        messages = list(result.messages)
        lines: list[str] = []
        if limit is not None and len(messages) > limit:
            lines.append(f"({len(messages) - limit} earlier messages are in report.json)")
            messages = messages[-limit:]
        for message in messages:
            shown = json.dumps(self.redaction.json(message.body), ensure_ascii=False)
            arrow = "->" if message.sender == "client" else "<-"
            cut = shown if limit is None or len(shown) <= 500 else shown[:500] + "…"
            lines.append(f"{arrow} {cut}")
        return lines
