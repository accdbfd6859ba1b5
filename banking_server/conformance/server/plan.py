"""The dry run: which calls a scenario makes, in order and how often, without making any."""

import json
from collections.abc import Iterator
from typing import Any

from banking_server.conformance.message import Json
from banking_server.conformance.report.redaction import REDACTED, Redaction
from banking_server.conformance.server.exercise import FOLLOW_UPS, OTHER_LISTS
from banking_server.conformance.server.references import filled
from banking_server.conformance.server.repeating import CONFIRMING
from banking_server.conformance.server.scenario import ServerScenario, Step
from banking_server.conformance.server.variants import (
    claims_of,
    variants_of,
    variants_of_malformed_provenance,
)
from banking_server.conformance.target.era import Era


def plan(scenario: ServerScenario, era: Era) -> Iterator[str]:
    """Yield the lines of one revision: each call, how often it is made, and on what it depends.

    Values that are secret, or come from the environment, are not shown.
    """
    return _Plan(scenario, era).lines()


class _Plan:
    def __init__(self, scenario: ServerScenario, era: Era) -> None:
        self._scenario = scenario
        self._era = era
        self._redaction = Redaction()
        self._values: dict[str, Any] = {}
        for name, value in scenario.values.items():
            if value.is_secret:
                self._values[name] = REDACTED
                self._redaction.add(str(value.value))
            elif value.environment is None:
                self._values[name] = value.value

    def lines(self) -> Iterator[str]:
        yield f"{self._scenario.name}, {self._era}"
        yield "  server/discover" if self._era is Era.MODERN else "  initialize, ping"
        for caller in (None, *self._scenario.callers):
            by = "" if caller is None else f" by {caller}"
            for step in self._scenario.caller(caller).setup:
                yield f"  {self._call(step)}: set-up {step.id}{by}, on every connection"
        yield "  tools/list, and again after each result that carries a directive"
        lists = [each for methods in OTHER_LISTS.values() for each in methods]
        yield f"  ({', '.join(lists)}, where the server offers them)"
        for each in self._scenario.steps:
            yield from self._step(each)

    def _step(self, step: Step) -> Iterator[str]:
        if step.wait_seconds is not None:
            yield f"  (a wait of {step.wait_seconds:g} s)"
        by = "" if step.caller is None else f" by {step.caller}"
        yield f"  {self._call(step)}: step {step.id}{by}"
        if step.refused:
            # Which chain that was does not matter here: only how often the call is made.
            claims = claims_of(step.call, {"chainId": "", "level": 2, "previousTool": ""})
            yield (
                f"  the same call again, {1 + len(claims)} times, claiming to be part of a chain "
                "(if another caller made this very call before, with success)"
            )
        elif step.repeatable:
            variants = variants_of(self._era, step.call)
            own = sum(each.takes_a_connection(self._era) for each in variants)
            on = f", {own} times on connections of their own" if own else ""
            yield f"  the same call again, {1 + len(variants)} times{on}"
        if step.repeatable:
            yield (f"  (up to {len(CONFIRMING)} more such calls for each that ends differently)")
        yield from self._follow_ups(step)

    def _follow_ups(self, step: Step) -> Iterator[str]:
        if step.follow is True:
            yield f"  the call of the directive, and on: at most {FOLLOW_UPS} calls"
            if step.repeatable:
                yield (
                    "  (each is made once, so none is compared; "
                    "with `follow: [{repeatable: true}]` the first is made again, too)"
                )
            return
        for number, entry in enumerate(step.follow or (), start=2):
            yield f"  the call of the directive: step {step.id}, call {number}"
            if entry.repeatable:
                again = 3 + len(variants_of_malformed_provenance(step.call))
                yield f"  the same call again, {again} times, without and with provenance"

    def _call(self, step: Step) -> str:
        arguments: Json = self._redaction.json(filled(step.arguments, self._values))
        return f"{step.call} {json.dumps(arguments, ensure_ascii=False)}"
