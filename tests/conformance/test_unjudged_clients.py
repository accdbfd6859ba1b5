"""Clients of which a run shows little: what cannot be judged says why and blames nobody."""

from typing import Any

import pytest

from banking_server.conformance.client import mock_server
from banking_server.conformance.report.run import Run
from banking_server.conformance.target.era import Era

from .small_client import SmallClient
from .support import UNTESTABLE, examine_client

PREFIX = "tool-chaining-client-"


def examined(kind: type[SmallClient], *cases: str) -> Run:
    """Judge a client in these cases only, given as `scenario/case`."""
    return examine_client(kind, [Era.MODERN], only=frozenset(cases))


def judged(found: Run, check: str) -> tuple[str, str]:
    """Return the status and the sentence of the one judgement on a check."""
    (one,) = [each for each in found.judgements if each.check.id == PREFIX + check and each.step]
    return (UNTESTABLE if one.untestable else str(one.status)), one.seen


class DiesInTheEnd(SmallClient):
    """Makes its calls, and crashes before it prints anything."""

    def lines(self, results: Any, outcome: str) -> Any:
        raise RuntimeError("out of paper")


@pytest.mark.parametrize(
    ("case", "check"),
    [
        ("refusals/unknown-tool", "unknown-tool-not-called"),
        ("chain/chain-of-three", "reports-outcome"),
        ("merged/whole-chain", "one-result"),
        ("waiting/cancelled", "no-call-after-cancel"),
    ],
)
def test_what_a_client_that_crashed_left_undone_says_nothing(case: str, check: str) -> None:
    found = examined(DiesInTheEnd, case)
    status, seen = judged(found, check)
    assert status == UNTESTABLE
    assert "exited with code 1" in seen
    assert "out of paper" in seen
    assert found.crashes
    assert not [each for each in found.judgements if each.is_violation]


class PrintsNoOutcome(SmallClient):
    def printed(self, results: Any, outcome: str) -> Any:
        printed = super().printed(results, outcome)
        return {"content": printed["content"], "isError": printed["isError"]}


@pytest.mark.parametrize(
    ("case", "check", "status", "words"),
    [
        ("chain/chain-of-three", "reports-outcome", UNTESTABLE, "no outcome"),
        ("merged/whole-chain", "names-follow-ups", "SKIPPED", "print followUps"),
    ],
)
def test_what_is_not_printed(case: str, check: str, status: str, words: str) -> None:
    judgement = judged(examined(PrintsNoOutcome, case), check)
    assert judgement[0] == status
    assert words in judgement[1]


class CannotBeCancelled(SmallClient):
    def __init__(self, url: str, era: str, context: Any) -> None:
        super().__init__(url, era, {k: v for k, v in context.items() if k != "cancelUrl"})


def test_a_client_that_cannot_be_cancelled_is_not_failed_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mock_server, "ASKING_SECONDS", 0.01)
    found = examined(CannotBeCancelled, "waiting/cancelled")
    for check in ("no-call-after-cancel", "reports-outcome"):
        assert judged(found, check)[0] == "SKIPPED"
