"""Clients that keep the text in their own way, or show little: neither are failed for it."""

import json
import time
from typing import Any

import pytest

from tool_chaining_conformance.report.judgement import Status
from tool_chaining_conformance.report.verdict import Verdict, conclude
from tool_chaining_conformance.target.era import Era

from .host import LEGACY, MODERN, Lost, NoResult, Refused
from .small_client import SmallClient
from .support import examine_client, statuses


class AsksAlways(SmallClient):
    """Asks its user before every call."""

    def consents(self, tool: Any) -> bool:
        return bool(self.user_agrees(tool))


class CannotBeAsked(SmallClient):
    """Declares no elicitation, and would wait for ever if it was asked. It sends chunks."""

    def body(self, message: Any) -> Any:
        text = json.dumps(message).encode()
        return iter([text[:9], text[9:]])

    def capabilities(self, method: str) -> Any:
        declared = super().capabilities(method)
        del declared["elicitation"]
        return declared

    def on_question(self, asked: Any) -> None:
        raise AssertionError("it was asked")


class KnowsTheOldContract(SmallClient):
    """Obeys nothing of the context but the first call and whether hints are trusted.

    It cannot be cancelled, and prints content and outcome only.
    """

    def __init__(self, url: str, era: str, context: Any) -> None:
        known = ("name", "case", "tool", "arguments", "elicitation", "trustHints")
        super().__init__(url, era, {name: context[name] for name in known if name in context})

    def printed(self) -> Any:
        printed = super().printed()
        return {name: printed[name] for name in ("outcome", "content")}


class BelievesAFreshList(SmallClient):
    """Reads the list again only when a page is not fresh any more, or it would end the chain."""

    fresh_until = 0.0

    def request(self, method: str, params: Any, meta: Any = None) -> Any:
        result = super().request(method, params, meta)
        if method == "tools/list":
            until = time.monotonic() + result.get("ttlMs", 0) / 1000
            self.fresh_until = min(self.fresh_until, until) if "cursor" in params else until
        return result

    def read_list(self) -> None:
        if time.monotonic() >= self.fresh_until:
            super().read_list()

    def obstacle(self, tool: str, arguments: Any) -> Any:
        context, ends = json.loads(json.dumps(self.context)), super().obstacle(tool, arguments)
        if ends in (None, "limit_reached", "cancelled") or not self.fresh_until:
            return ends
        # A question that was asked for nothing is not asked.
        self.context, self.fresh_until = context, 0.0
        return super().obstacle(tool, arguments)


class RepeatsWhenAllowed(SmallClient):
    """Repeats a failed call if it may."""

    def call(self, name: str, arguments: Any, meta: Any = None) -> Any:
        try:
            return super().call(name, arguments, meta)
        except Lost:
            raise
        except NoResult as error:
            if not isinstance(error, Refused) and self.context["consent"] != "grant":
                raise
            return super().call(name, arguments, meta)


@pytest.mark.ci
@pytest.mark.parametrize(
    "kind",
    [AsksAlways, CannotBeAsked, KnowsTheOldContract, BelievesAFreshList, RepeatsWhenAllowed],
)
def test_an_honest_client_is_conformant(kind: type[SmallClient]) -> None:
    run = examine_client(kind, [Era.MODERN])
    judged = statuses(run.judgements)
    seen = [
        (each.check.id, each.step, each.seen)
        for each in run.judgements
        if each.status in (Status.FAILURE, Status.WARNING) or each.untestable
    ]
    failed = {check for check, status in judged.items() if status not in ("SUCCESS", "SKIPPED")}
    assert failed == set(), seen
    assert conclude(run).verdict is Verdict.CONFORMANT, seen


class DeclinesEverything(SmallClient):
    """Says that it has its reasons, every time."""

    def may_follow(self, listed: Any) -> bool:
        return False


def test_a_client_that_declines_everything_is_not_conformant_for_it() -> None:
    run = examine_client(DeclinesEverything, [Era.MODERN])
    assert conclude(run).verdict is Verdict.INCONCLUSIVE


class AsksAlwaysAndAgain(AsksAlways):
    """Asks before it sends a call again whose answer was lost, too, and does as it is told."""

    def call(self, name: str, arguments: Any, meta: Any = None) -> Any:
        try:
            return super().call(name, arguments, meta)
        except NoResult:
            if not self.user_agrees(self.tools[name]):
                raise
            return super().call(name, arguments, meta)


class SendsAgainUnasked(AsksAlways):
    def call(self, name: str, arguments: Any, meta: Any = None) -> Any:
        try:
            return super().call(name, arguments, meta)
        except NoResult:
            return super().call(name, arguments, meta)


@pytest.mark.parametrize(
    ("kind", "status"), [(AsksAlwaysAndAgain, "SUCCESS"), (SendsAgainUnasked, "FAILURE")]
)
def test_who_asks_before_every_call_is_judged_by_the_second_question(
    kind: type[SmallClient], status: str
) -> None:
    run = examine_client(kind, [Era.MODERN], only=frozenset({"failures/asked-once"}))
    assert statuses(run.judgements)["tool-chaining-client-not-sent-again-after-loss"] == status


class DiesInTheEnd(SmallClient):
    """Makes its calls, and crashes before it prints anything."""

    def lines(self, printed: Any) -> Any:
        raise RuntimeError("out of paper")


@pytest.mark.parametrize(
    ("case", "check"),
    [
        ("refusals/unknown-tool", "unknown-tool-not-called"),
        ("merged/whole-chain", "one-result"),
        ("waiting/cancelled", "no-call-after-cancel"),
    ],
)
def test_what_a_client_that_crashed_left_undone_says_nothing(case: str, check: str) -> None:
    found = examine_client(DiesInTheEnd, [Era.MODERN], only=frozenset({case}))
    [one] = [each for each in found.judgements if each.check.id.endswith(check) and each.step]
    assert one.untestable
    assert "exited with code 1" in one.seen
    assert "out of paper" in one.seen
    assert found.crashes
    assert not [each for each in found.judgements if each.is_violation]


class SpeaksOneRevision(SmallClient):
    """Begins as on 2025-11-25, whatever it is told, and dies of the refusal."""

    speaks = LEGACY

    def __init__(self, url: str, era: str, context: Any) -> None:
        super().__init__(url, self.speaks, context)


class SpeaksTheOther(SpeaksOneRevision):
    speaks = MODERN


class LeavesOneRevisionOut(SmallClient):
    def run(self) -> str:
        return "" if self.era == Era.MODERN else str(super().run())


class DiesOnOneRevision(SmallClient):
    def run(self) -> str:
        if self.era == Era.MODERN:
            raise ImportError("no such library")
        return str(super().run())


@pytest.mark.parametrize(
    ("kind", "is_to_be"),
    [
        (SpeaksOneRevision, Verdict.CONFORMANT),
        (SpeaksTheOther, Verdict.CONFORMANT),
        (LeavesOneRevisionOut, Verdict.CONFORMANT),
        (DiesOnOneRevision, Verdict.ERROR),
    ],
)
def test_a_crash_does_not_say_that_a_revision_is_not_supported(
    kind: type[SmallClient], is_to_be: Verdict
) -> None:
    run = examine_client(kind, only=frozenset({"follow/error-result"}))
    conclusion = conclude(run)
    assert conclusion.verdict is is_to_be
    assert run.spoken == [Era.MODERN if kind is SpeaksTheOther else Era.LEGACY]
    assert ("on 2026-07-28" in conclusion.reason) is (kind is DiesOnOneRevision)
    assert ("no such library" in conclusion.reason) is (kind is DiesOnOneRevision)
