"""The dry run: which calls a scenario makes, in order, without making any."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from banking_server.conformance.message import Json
from banking_server.conformance.report.redaction import REDACTED, Redaction
from banking_server.conformance.server.connections import Calling, Key, connection_of
from banking_server.conformance.server.exercise import FOLLOW_UPS, OTHER_LISTS
from banking_server.conformance.server.references import filled
from banking_server.conformance.server.repeating import CONFIRMING_CALLS
from banking_server.conformance.server.scenario import ServerScenario, Step
from banking_server.conformance.server.variants import (
    PLAIN,
    claims_of,
    variants_of,
    variants_of_malformed_provenance,
)
from banking_server.conformance.target.connection import Profile
from banking_server.conformance.target.era import Era


def plan(scenario: ServerScenario, era: Era) -> Iterator[str]:
    """Yield the lines of one revision: each request, and what it depends on.

    Values that are secret, or come from the environment, are not shown.
    """
    return _Plan(scenario, era).lines()


class _Plan:
    def __init__(self, scenario: ServerScenario, era: Era) -> None:
        self._scenario = scenario
        self._era = era
        self._open: set[Key] = set()
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
        yield from self._connect(Calling())
        yield "  tools/list, and again after each result that carries a directive"
        if self._era is Era.LEGACY:
            yield "  ping"
        lists = [each for methods in OTHER_LISTS.values() for each in methods]
        yield f"  ({', '.join(lists)}, where the server offers them)"
        for step in self._scenario.steps:
            yield from self._step(step)

    def _connect(self, calling: Calling) -> Iterator[str]:
        """Yield what opens the connection of a call, if it is not open."""
        key = connection_of(self._era, calling)
        if key in self._open:
            return
        self._open.add(key)
        if self._era is Era.LEGACY:
            yield f"  initialize as {_client(calling)}"
        elif calling.caller is None:
            yield "  server/discover"
        for step in self._scenario.caller(calling.caller).setup:
            yield f"  {self._call(step.call, step.arguments)}: set-up {step.id}"

    def _step(self, step: Step) -> Iterator[str]:
        elicitation = step.elicitation is not None
        calling = Calling(Profile(elicitation=elicitation), step.caller)
        call = self._call(step.call, step.arguments)
        yield from self._connect(calling)
        if step.wait_seconds is not None:
            yield f"  (a wait of {step.wait_seconds:g} s)"
        by = "" if step.caller is None else f" by {step.caller}"
        yield f"  {call}: step {step.id}{by}"
        if step.refused:
            yield "  (if another caller made this very call before, with success:)"
            # Which chain that was does not matter here: only how often the call is made.
            chain = {"chainId": "", "level": 2, "previousTool": ""}
            for claim in claims_of(step.call, chain):
                yield f"  {call}: step {step.id}{by} again, {claim.what}"
        elif step.repeatable:
            for variant in variants_of(self._era, step.call):
                profile = variant.profile(elicitation=elicitation)
                yield from self._connect(Calling(profile, step.caller))
                yield f"  {call}: step {step.id}{by} again, {variant.what}"
        if step.repeatable:
            yield (
                f"  (up to {CONFIRMING_CALLS} more such calls for each that ends differently, "
                "and once as many where the call changes by itself)"
            )
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
            calling = Calling(Profile(elicitation=entry.elicitation is not None), step.caller)
            yield from self._connect(calling)
            yield f"  the call of the directive: step {step.id}, call {number}"
            if entry.repeatable:
                again = 3 + len(variants_of_malformed_provenance(PLAIN.what))
                yield f"  the same call again without and with provenance: {again} times"

    def _call(self, tool: str, arguments: Json) -> str:
        shown = self._redaction.json(filled(arguments, self._values))
        return f"{tool} {_text(shown)}"


def _text(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _client(calling: Calling) -> str:
    who = "" if calling.caller is None else f"{calling.caller}, "
    return f"{who}a client with the capabilities {_text(calling.profile.capabilities())}"
