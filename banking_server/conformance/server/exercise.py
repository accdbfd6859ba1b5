"""Plays one scenario in one era, and reports what the server did. It judges nothing."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from banking_server.chaining.directive import IDENTIFIER, SETTINGS
from banking_server.conformance.message import Json, WireMessage
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.server.captures import captured, filled
from banking_server.conformance.server.evidence import (
    OF_REPEATING,
    DirectiveBesideSecrets,
    Evidence,
    FollowedChain,
    Greeting,
    InterimResult,
    Kinds,
    Missing,
    Observation,
    OtherResults,
    Problem,
    Refusal,
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithLaterSettings,
    RepeatedWithMalformedProvenance,
    RepeatedWithProvenance,
    Repetition,
    ResultInWords,
    ResultWithDirective,
)
from banking_server.conformance.server.reading import (
    directive_of,
    ending,
    is_error,
    is_refused,
    key_of,
)
from banking_server.conformance.server.scenario import (
    Capture,
    FollowUp,
    ServerScenario,
    Step,
    StepExpectation,
)
from banking_server.conformance.target.channel import Target, TargetFailure
from banking_server.conformance.target.connection import Connection, Profile, ToolCall, connect
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import same, shown

FOLLOW_UPS: Final = 10
"""Follow-up calls that are made at most, if the scenario sets no limit."""

LATER_SETTINGS: Final = {"version": 2, "since": "a later version", "options": {"level": 2}}

MALFORMED_PROVENANCE: Final[tuple[Any, ...]] = (
    "no object",
    {"chainId": "", "level": 0},
    {"chainId": 7, "level": "2", "previousTool": ["no", "name"]},
)


class Exercise:
    """One scenario in one era; without a scenario it does only what calls no tool.

    Every piece of evidence goes to `observe` as soon as there is one.
    """

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario | None,
        era: Era,
        redaction: Redaction,
        observe: Callable[[Observation], None],
    ) -> None:
        self._target = target
        self._scenario = scenario
        self._era = era
        self._redaction = redaction
        self._observe = observe
        self._greeting: Sequence[WireMessage] = ()
        self._connections: dict[str, Connection] = {}
        self._tools: dict[str, Json] = {}
        self._values: dict[str, Any] = {}
        """What the steps captured."""
        self._set_up_values: dict[str, dict[str, Any]] = {}
        """What the set-up captured, for each connection by its key."""
        self._secrets: dict[str, str] = {
            f"header {name}": value.removeprefix("Bearer ")
            for name, value in target.headers.items()
        }
        self._results: list[ResultWithDirective] = []

    # Connections

    def open(self) -> None:
        """Open the era. Raises TargetFailure if the server does not speak it."""
        connection = connect(self._target, self._era, Profile())
        self._connections[self._key(Profile())] = connection
        self._greeting = connection.greeting.messages if connection.greeting else ()
        self._observe(
            Greeting(
                "greeting",
                self._greeting,
                self._era,
                connection.server_capabilities,
                connection.server_info,
            )
        )

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()

    def _connection(self, profile: Profile) -> Connection:
        """Return a connection for `profile`: one for all if requests carry the capabilities."""
        key = self._key(profile)
        if key not in self._connections:
            self._connections[key] = connect(self._target, self._era, profile)
        if key not in self._set_up_values:
            self._set_up(self._connections[key], profile)
        return self._connections[key]

    def _key(self, profile: Profile) -> str:
        return "" if self._era is Era.MODERN else json.dumps(profile.capabilities())

    def _known(self, profile: Profile) -> dict[str, Any]:
        """Return every value that may stand in the place of a `${name}` for this profile."""
        return {**self._values, **self._set_up_values[self._key(profile)]}

    def _set_up(self, connection: Connection, of: Profile) -> None:
        """Make the set-up steps of the scenario, which are not judged."""
        captured_here = self._set_up_values[self._key(of)] = {}
        for step in self._scenario.setup if self._scenario else ():
            values = self._known(of)
            call = connection.call_tool(
                step.call,
                filled(step.arguments, values),
                meta=filled(step.meta, values),
                answers=step.elicitation or (),
                profile=Profile(elicitation=step.elicitation is not None),
            )
            captured_here |= self._captured(step.capture, call, step.id)
            unmet = _unmet(step.expect, call, self._known(of))
            if unmet is not None:
                raise TargetFailure(f"set-up step {step.id}: {unmet}")

    def _list_tools(self, connection: Connection) -> list[WireMessage]:
        tools, messages = connection.list_tools()
        self._tools = {str(tool.get("name")): tool for tool in tools}
        return messages

    def _tool(self, name: str) -> Json | None:
        """Find a tool in the server's list, which is read again if the tool is not there."""
        if name not in self._tools:
            self._list_tools(self._connection(Profile()))
        return self._tools.get(name)

    # Steps

    def play(self) -> None:
        """Make every step of the scenario. Raises TargetFailure."""
        # Tools may be listed only after the set-up, which comes with the connection.
        connection = self._connection(Profile())
        listing = self._list_tools(connection)
        self._observe(OtherResults("greeting", [*self._greeting, *listing]))
        if self._scenario is None:
            return
        for step in self._scenario.steps:
            if step.wait_seconds is not None:
                time.sleep(step.wait_seconds)
            self._play(step)
        if self._secrets:
            for result in self._results:
                self._observe(
                    DirectiveBesideSecrets(
                        result.step, result.messages, result.directive, self._secrets
                    )
                )

    def _play(self, step: Step) -> None:
        profile = Profile(elicitation=step.elicitation is not None)
        call = self._make(step, profile)
        self._values |= self._captured(step.capture, call, step.id)
        self._look_at(call, step.id, declared=True)
        unmet = _unmet(step.expect, call, self._known(profile))
        if unmet is not None:
            self._miss(step, call, unmet)
            return
        if step.refused:
            self._claim_a_chain(step, call)
        elif step.repeatable:
            self._repeat(step, call)
        if step.follow is not None:
            self._follow(step, call)

    def _make(self, step: Step, profile: Profile, provenance: Any = None) -> ToolCall:
        connection = self._connection(profile)
        values = self._known(profile)
        meta = filled(step.meta, values)
        if provenance is not None:
            meta = {**meta, IDENTIFIER: provenance}
        return connection.call_tool(
            step.call,
            filled(step.arguments, values),
            meta=meta,
            answers=step.elicitation or (),
            profile=profile,
        )

    def _captured(
        self, captures: Mapping[str, Capture], call: ToolCall, step: str
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, capture in captures.items():
            value = captured(capture, call.final.result or {})
            if value is None:
                self._problem(f"step {step}: nothing to capture as {name!r}: {ending(call)}")
                continue
            values[name] = value
            if capture.secret:
                self._secrets[name] = str(value)
                self._redaction.add(str(value))
        return values

    def _look_at(self, call: ToolCall, step: str, *, declared: bool) -> None:
        """Report what one call shows by itself."""
        for interim in call.replies[:-1]:
            self._observe(InterimResult(step, interim.messages, directive_of(interim)))
        seen = directive_of(call.final)
        if seen is None:
            return
        content = (call.final.result or {}).get("content")
        items = [
            item
            for item in (content if isinstance(content, list) else ())
            if isinstance(item, dict)
        ]
        target = None if seen.tool is None else self._tool(seen.tool)
        messages = call.final.messages
        result = ResultWithDirective(
            step, messages, seen, items, declared, target, sorted(self._tools)
        )
        self._results.append(result)
        self._observe(result)
        if not declared:
            self._observe(ResultInWords(step, messages, seen, items))

    # What a step does not bring

    def _problem(self, sentence: str) -> None:
        self._observe(Problem(sentence))

    def _miss(self, step: Step, call: ToolCall, unmet: str) -> None:
        """Report that a step did not come to what it was meant to show."""
        self._problem(f"step {step.id}: {unmet}")
        missed: list[type[Evidence]] = []
        wanted = step.expect.next_tool
        if directive_of(call.final) is None and wanted not in (None, "any", "none"):
            missed.append(ResultWithDirective)
        if step.refused:
            missed.append(Refusal)
        elif step.repeatable:
            missed += OF_REPEATING
        if step.follow is not None:
            missed.append(FollowedChain)
        self._observe(Missing(step.id, missed, unmet, call.final.messages))

    # Repeating a call

    def _repeat(self, step: Step, first: ToolCall) -> None:
        """Make a step's call again in every way that must not change how it ends."""
        profile = Profile(elicitation=step.elicitation is not None)
        unchanged = self._again(RepeatedUnchanged, step, first, profile)
        if not unchanged.alike:
            others: Kinds = [kind for kind in OF_REPEATING if kind is not RepeatedUnchanged]
            reason = "the server answers the very same call differently every time"
            self._observe(Missing(step.id, others, reason))
            return
        undeclared = replace(profile, settings=None)
        again = self._again(RepeatedUndeclared, step, first, undeclared).again
        self._look_at(again, step.id, declared=False)
        if directive_of(first.final) is not None and directive_of(again.final) is None:
            reason = "a client that did not declare got no directive"
            self._observe(Missing(step.id, [ResultInWords], reason))
        later = replace(profile, settings=LATER_SETTINGS)
        self._again(RepeatedWithLaterSettings, step, first, later)
        provenance = _provenance(str(uuid.uuid4()), 2, step.call)
        self._again(RepeatedWithProvenance, step, first, profile, provenance)
        for malformed in MALFORMED_PROVENANCE:
            self._again(RepeatedWithMalformedProvenance, step, first, profile, malformed)

    def _again(
        self,
        kind: type[Repetition],
        step: Step,
        first: ToolCall,
        profile: Profile,
        provenance: Any = None,
    ) -> Repetition:
        again = self._make(step, profile, provenance)
        # On 2025-11-25 another declaration takes another connection, with perhaps another state.
        elsewhere = self._era is Era.LEGACY and profile.settings != SETTINGS
        messages = [*first.final.messages, *again.final.messages]
        repetition = kind(step.id, messages, first, again, elsewhere)
        self._observe(repetition)
        return repetition

    def _claim_a_chain(self, step: Step, alone: ToolCall) -> None:
        """Repeat a refused call, now claiming to be part of a chain."""
        if not is_refused(alone):
            self._problem(f"step {step.id}: expected a refusal, saw {ending(alone)}")
            return
        last = self._results[-1].directive.tool if self._results else None
        provenance = _provenance(str(uuid.uuid4()), 2, last or step.call)
        profile = Profile(elicitation=step.elicitation is not None)
        chained = self._make(step, profile, provenance)
        messages = [*alone.final.messages, *chained.final.messages]
        self._observe(Refusal(step.id, messages, alone, chained))

    # Following a chain

    def _follow(self, step: Step, first: ToolCall) -> None:
        """Follow the chain as far as the scenario allows, but make no call twice."""
        chain_id = str(uuid.uuid4())
        allowed = [FollowUp()] * FOLLOW_UPS if step.follow is True else step.follow or ()
        calls, messages = [first], list(first.final.messages)
        for follow_up in allowed:
            seen = directive_of(calls[-1].final)
            if seen is None or seen.tool is None or seen.arguments is None:
                break
            made = [key_of(call.tool, call.arguments) for call in calls]
            if seen.key in made or self._tool(seen.tool) is None:
                break
            provenance = _provenance(chain_id, len(calls) + 1, calls[-1].tool)
            profile = Profile(elicitation=follow_up.elicitation is not None)
            call = self._connection(profile).call_tool(
                seen.tool,
                seen.arguments,
                meta={IDENTIFIER: provenance},
                answers=follow_up.elicitation or (),
                profile=profile,
            )
            calls.append(call)
            messages += call.final.messages
            place = f"{step.id}, call {len(calls)}"
            self._values |= self._captured(follow_up.capture, call, place)
            self._look_at(call, place, declared=True)
            unmet = _unmet(follow_up.expect, call, self._known(profile))
            if unmet is not None:
                self._problem(f"step {place}: {unmet}")
                self._observe(Missing(place, [FollowedChain], unmet, messages))
                return
        last = directive_of(calls[-1].final)
        if last is None or last.key is not None:
            # A malformed directive leads nowhere, and is judged by itself.
            self._observe(FollowedChain(step.id, messages, calls))


def _provenance(chain_id: str, level: int, previous_tool: str) -> Json:
    return {"chainId": chain_id, "level": level, "previousTool": previous_tool}


def _unmet(expect: StepExpectation, call: ToolCall, values: Mapping[str, Any]) -> str | None:
    """Say what the scenario expected of a call and did not get; None if it got everything."""
    seen = directive_of(call.final)
    wanted = expect.next_tool
    if wanted is not None and wanted != "any":
        names = [wanted] if isinstance(wanted, str) else wanted
        if ("none" if seen is None else seen.tool) not in names:
            return f"expected nextTool {' or '.join(names)}, saw {ending(call)}"
    if expect.is_error is not None and (
        call.final.error is not None or is_error(call) != expect.is_error
    ):
        return f"expected isError {str(expect.is_error).lower()}, saw {ending(call)}"
    if expect.arguments is not None and seen is not None:
        arguments = seen.arguments or {}
        for name, value in filled(expect.arguments, values).items():
            if name not in arguments or not same(arguments[name], value):
                return (
                    f"expected the directive's argument {name!r} to be {shown(value)}, "
                    f"saw {shown(seen.value)}"
                )
    return None
