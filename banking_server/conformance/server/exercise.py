"""Plays one scenario in one era, and reports what the server did. It judges nothing."""

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from banking_server.conformance.message import Json, WireMessage
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.server.connections import Calling, Connections
from banking_server.conformance.server.evidence import (
    OF_PROVENANCE,
    OF_REPEATING,
    Crossing,
    DirectiveBesideSecrets,
    DirectiveOfIntermediary,
    Evidence,
    FollowedChain,
    Greeting,
    InterimResult,
    Missing,
    NotCompared,
    Observation,
    OtherResults,
    PassedOn,
    Problem,
    Refusal,
    ResultInWords,
    ResultWithDirective,
)
from banking_server.conformance.server.expectation import unmet
from banking_server.conformance.server.explanation import explained
from banking_server.conformance.server.reading import (
    carries_directive,
    content_of,
    directive_of,
    ending,
    is_refused,
    key_of,
    structured_content_of,
    words_of,
    written_directive,
)
from banking_server.conformance.server.references import filled
from banking_server.conformance.server.repeating import CONFIRMING, Repeating
from banking_server.conformance.server.scenario import Capture, FollowUp, ServerScenario, Step
from banking_server.conformance.server.values import Values, given_values, headers_of
from banking_server.conformance.server.variants import (
    PLAIN,
    Absent,
    Claim,
    Variant,
    claims_of,
    in_chain,
    provenance,
    variants_of,
    variants_of_malformed_provenance,
)
from banking_server.conformance.target.channel import Target, TargetFailure
from banking_server.conformance.target.connection import (
    Connection,
    Listing,
    NotListed,
    Profile,
    Reply,
    ToolCall,
)
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import identity

FOLLOW_UPS: Final = 10
"""Follow-up calls that are made at most, if the scenario sets no limit."""

OTHER_LISTS: Final = {
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""For each capability of a server, the lists that it can be asked for without calling a tool."""


@dataclass(frozen=True)
class Made:
    """A call that succeeded, and who made it."""

    call: ToolCall
    who: str
    """The caller, with everything that went along and may say who calls."""
    chain: Json | None = None
    """Its provenance, if it was a follow-up call."""


class Exercise:
    """One scenario in one era; without a scenario it does only what calls no tool.

    Every piece of evidence goes to `observe` as soon as there is one. Raises ScenarioError if a
    variable of the environment that the scenario names is not set.
    """

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario | None,
        era: Era,
        redaction: Redaction,
        observe: Callable[[Observation], None],
    ) -> None:
        self._scenario = scenario
        self._era = era
        self._observe = observe
        self._redaction = redaction
        self._values = Values(redaction)
        for name, value in target.headers.items():
            self._values.keep_secret(f"header {name}", value.removeprefix("Bearer "))
        headers: dict[str, Mapping[str, str]] = {}
        if scenario is not None:
            for name, value in given_values(scenario, os.environ).items():
                self._values.give(name, value, secret=scenario.values[name].is_secret)
            for caller in scenario.callers:
                headers[caller] = headers_of(scenario, caller, os.environ) if target.url else {}
                for name, value in headers[caller].items():
                    shown = f"header {name} of {caller}"
                    self._values.keep_secret(shown, value.removeprefix("Bearer "))
        self._connections = Connections(target, headers, scenario, era, self._values, self._problem)
        self._tools: dict[str, Json] = {}
        """The tools as they were listed at first."""
        self._results: list[ResultWithDirective] = []
        self._made: list[Made] = []
        self._methods: list[str] = []
        """The methods besides `tools/call` that were answered."""
        self._strays: list[WireMessage] = []
        """Their results that carry a directive."""
        self._finished = False
        self._advertised = False

    def open(self) -> None:
        """Open the era. Raises TargetFailure if the server does not speak it."""
        connection = self._connections.first()
        greeting = connection.greeting
        if greeting is not None:
            self._note("server/discover" if self._era is Era.MODERN else "initialize", greeting)
        told = Greeting(
            "greeting",
            greeting.messages if greeting else (),
            self._era,
            connection.server_capabilities,
            connection.server_info,
        )
        self._advertised = bool(told.settings)
        self._observe(told)

    def close(self) -> None:
        """Tell of the results that belong to no step, and close every connection."""
        if self._finished or self._strays:
            self._observe(OtherResults("", self._strays, self._methods, self._strays))
        self._connections.close()

    # Steps

    def play(self) -> None:
        """Make every step of the scenario. Raises TargetFailure."""
        # Tools may be listed only after the set-up, which comes with the connection.
        connection = self._connections.to(Calling())
        listing = connection.list_tools()
        for page in listing.replies:
            self._note("tools/list", page)
        self._tools = listing.tools
        if self._era is Era.LEGACY:
            self._note("ping", connection.request("ping", {}))
        self._list_others(connection)
        for step in self._scenario.steps if self._scenario is not None else ():
            if step.wait_seconds is not None:
                time.sleep(step.wait_seconds)
            self._play(step)
        self._finished = True
        if self._values.secrets:
            for result in self._results:
                self._observe(
                    DirectiveBesideSecrets(
                        result.step, result.messages, result.directive, self._values.secrets
                    )
                )

    def _play(self, step: Step) -> None:
        calling = Calling(Profile(elicitation=step.elicitation is not None), step.caller)
        self._connections.new_errors(calling)  # Those of earlier steps.
        call = self._make(step, calling)
        self._capture(step.capture, call, step.id)
        self._look_at(call, step.id, calling)
        if not step.repeatable:
            shows = OF_REPEATING if directive_of(call.final) else OF_PROVENANCE
            self._observe(NotCompared(step.id, shows))
        fault = unmet(step.expect, call, self._known(calling))
        self._pass_on(step, call, as_expected=fault is None)
        if fault is not None:
            self._problem_of(call, step.id, fault, calling)
            self._miss(step, call, fault)
            return
        if step.is_silent_on_its_end and directive_of(call.final) is None:
            self._problem_of(call, step.id, f"no directive came, but {ending(call)}", calling)
        if step.refused:
            self._claim_a_chain(step, call)
        elif step.repeatable:
            self._repeat(step, call)
        if step.follow is not None:
            self._follow(step, call)

    def _pass_on(self, step: Step, call: ToolCall, *, as_expected: bool) -> None:
        """Report an answer of an intermediary, in which nothing of a directive may be left.

        One that is not what the scenario expects shows something only if there is something left.
        """
        kinds = _of_intermediary(step)
        seen, items = directive_of(call.final), content_of(call.final)
        structured = structured_content_of(call.final)
        if call.final.kind != "complete":
            if as_expected and kinds:
                reason = f"the call came to no result: {ending(call)}"
                self._observe(Missing(step.id, kinds, reason, call.final.messages))
            return
        if not (as_expected or seen or words_of(items, seen) or "nextStep" in structured):
            return
        shown = (step.id, call.final.messages, seen, items, structured)
        if Crossing in kinds:
            self._observe(Crossing(*shown, self._advertised))
        if PassedOn in kinds:
            is_error = (call.final.result or {}).get("isError") is True
            schema = self._tools.get(call.tool, {}).get("outputSchema")
            self._observe(PassedOn(*shown, is_error, schema if isinstance(schema, dict) else None))

    def _known(self, calling: Calling) -> dict[str, Any]:
        return self._connections.known(calling)

    def _make(self, step: Step, calling: Calling, claimed: Any = Absent.ABSENT) -> ToolCall:
        call = self._connections.call(
            calling,
            step.call,
            filled(step.arguments, self._known(calling)),
            meta=step.meta,
            elicitation=step.elicitation,
            provenance=claimed,
        )
        self._remember(call, calling, step.meta)
        return call

    def _remember(
        self, call: ToolCall, calling: Calling, meta: Json, chain: Json | None = None
    ) -> None:
        """Keep a call that succeeded: it shows for whom it does."""
        if is_refused(call) or call.final.kind != "complete":
            return
        self._made.append(Made(call, self._who(calling, meta), chain))

    def _who(self, calling: Calling, meta: Json) -> str:
        return identity([calling.caller, filled(meta, self._known(calling))])

    def _capture(self, captures: Mapping[str, Capture], call: ToolCall, place: str) -> None:
        found, absent = self._values.captured(captures, call)
        for name in absent:
            self._problem(f"step {place}: nothing to capture as {name!r}: {ending(call)}")
        self._values.named |= found

    def _look_at(
        self, call: ToolCall, step: str, calling: Calling, *, declared: bool = True
    ) -> None:
        """Report what one call shows by itself."""
        for reply in call.replies:
            if reply.kind == "interim":
                self._observe(InterimResult(step, reply.messages, written_directive(reply)))
        seen = directive_of(call.final)
        if seen is None:
            return
        items = content_of(call.final)
        structured = structured_content_of(call.final)
        output_schema = self._tools.get(call.tool, {}).get("outputSchema")
        listing = self._listed(calling, seen.tool)
        tools = listing.tools
        messages = call.final.messages
        result = ResultWithDirective(
            step=step,
            messages=messages,
            directive=seen,
            content=items,
            declared=declared,
            structured=structured,
            output_schema=output_schema if isinstance(output_schema, dict) else {},
            target=tools.get(seen.tool or ""),
            listed=sorted(tools),
            more=listing.more,
            listed_twice=seen.tool in listing.twice,
        )
        self._results.append(result)
        self._observe(result)
        if self._scenario is not None and self._scenario.intermediary:
            self._observe(DirectiveOfIntermediary(step, messages, result))
        if not declared:
            self._observe(ResultInWords(step, messages, seen, items))

    def _listed(self, calling: Calling, tool: str | None) -> Listing:
        """Read the list again, now and as this caller, up to a tool that was just named."""
        if tool is None:
            return Listing({}, ())
        connection = self._connections.to(calling)
        try:
            listing = connection.list_tools(until=tool, profile=calling.profile)
        except NotListed as failure:
            return Listing({}, (), str(failure))
        for page in listing.replies:
            self._note("tools/list", page)
        return listing

    def _list_others(self, connection: Connection) -> None:
        """Ask for what else the server lists; one of these lists that fails keeps nothing back."""
        for capability, methods in OTHER_LISTS.items():
            if capability not in connection.server_capabilities:
                continue
            for method in methods:
                try:
                    self._note(method, connection.request(method, {}))
                except TargetFailure as failure:
                    self._problem(f"{method}: {failure}")

    def _note(self, method: str, reply: Reply) -> None:
        """Notice a reply to another method than `tools/call`."""
        if reply.result is None:
            return
        self._methods.append(method)
        if carries_directive(reply.result):
            self._strays += reply.messages

    # What a step does not bring

    def _problem(self, sentence: str) -> None:
        self._observe(Problem(sentence))

    def _problem_of(self, call: ToolCall, place: str, fault: str, calling: Calling) -> None:
        """Report what a call did not bring; of one without a directive, what may explain it."""
        if directive_of(call.final) is None:
            errors = self._connections.new_errors(calling)
            fault = explained(fault, call, self._tools, errors, self._redaction)
        self._problem(f"step {place}: {fault}")

    def _miss(self, step: Step, call: ToolCall, fault: str) -> None:
        """Report that a step did not come to what it was meant to show."""
        missed: list[type[Evidence]] = []
        wanted = step.expect.next_tool
        if directive_of(call.final) is None and wanted not in (None, "any", "none"):
            missed.append(ResultWithDirective)
        missed += _of_intermediary(step)
        if step.refused:
            missed.append(Refusal)
        elif step.repeatable:
            missed += OF_REPEATING
        if step.follow is not None:
            missed.append(FollowedChain)
        self._observe(Missing(step.id, missed, fault, call.final.messages))

    # Repeating a call

    def _repeat(self, step: Step, first: ToolCall) -> None:
        """Make a step's call again in every way that must not change how it ends."""
        elicitation = step.elicitation is not None

        def make(variant: Variant, second: bool) -> ToolCall:
            profile = variant.profile(elicitation=elicitation)
            calling = Calling(profile, step.caller, second)
            call = self._make(step, calling, variant.provenance)
            self._pass_on(step, call, as_expected=not is_refused(call))
            if variant.settings is None or variant.settings == {}:
                looked.append((call, calling, variant.declared))
            return call

        looked: list[tuple[ToolCall, Calling, bool]] = []
        repeating = Repeating(step.id, self._era, first, make, self._observe)
        repeating.all(variants_of(self._era, step.call))
        for call, calling, declared in looked:
            self._look_at(call, step.id, calling, declared=declared)
        undeclared = repeating.undeclared
        if undeclared is None or directive_of(first.final) is None:
            return
        if directive_of(undeclared.final) is None:
            reason = "a client that did not declare got no directive"
            self._observe(Missing(step.id, [ResultInWords], reason, applies=False))

    # A call that is refused

    def _claim_a_chain(self, step: Step, alone: ToolCall) -> None:
        """Repeat a refused call, now claiming to be part of a chain."""
        if not is_refused(alone):
            reason = f"expected a refusal, saw {ending(alone)}"
            self._problem(f"step {step.id}: {reason}")
            self._observe(Missing(step.id, [Refusal], reason, alone.final.messages))
            return
        calling = Calling(Profile(elicitation=step.elicitation is not None), step.caller)
        who = self._who(calling, step.meta)
        key = key_of(alone.tool, alone.arguments)
        allowed = [
            made
            for made in self._made
            if key_of(made.call.tool, made.call.arguments) == key and made.who != who
        ]
        if not allowed:
            reason = (
                "the very same call, with the same arguments, was not seen to succeed for anybody "
                "else before, so its refusal may be any error; let a caller make it who may"
            )
            self._observe(Missing(step.id, [Refusal], reason, alone.final.messages))
            return
        own = [made.chain for made in allowed if made.chain is not None]
        chains = [made.chain for made in self._made if made.chain is not None]
        for claim in claims_of(step.call, next(reversed(own or chains), None)):
            self._claim(step, calling, alone, claim)

    def _claim(self, step: Step, calling: Calling, alone: ToolCall, claim: Claim) -> None:
        """Make a refused call with provenance; a call that is let in is confirmed."""
        chained = self._make(step, calling, claim.provenance)
        messages = [*alone.final.messages, *chained.final.messages]
        if not is_refused(chained):
            for which in CONFIRMING:
                expected = which == "P"
                again = self._make(step, calling, Absent.ABSENT if expected else claim.provenance)
                if is_refused(again) != expected:
                    reason = f"the call is refused now and then by itself: {ending(again)}"
                    self._observe(Missing(step.id, [Refusal], reason, messages))
                    return
        self._observe(Refusal(step.id, messages, alone, chained, claim.what))

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
            calling = Calling(Profile(elicitation=follow_up.elicitation is not None), step.caller)
            self._connections.new_errors(calling)
            if seen.key in made or seen.tool not in self._listed(calling, seen.tool).tools:
                break
            claimed = provenance(chain_id, len(calls) + 1, calls[-1].tool)
            call = self._follow_up(follow_up, calling, seen.tool, seen.arguments, claimed)
            self._remember(call, calling, follow_up.meta, claimed)
            calls.append(call)
            messages += call.final.messages
            place = f"{step.id}, call {len(calls)}"
            self._capture(follow_up.capture, call, place)
            self._look_at(call, place, calling)
            if follow_up.repeatable:
                self._repeat_follow_up(place, follow_up, calling, call, claimed)
            else:
                self._observe(NotCompared(place, OF_PROVENANCE))
            fault = unmet(follow_up.expect, call, self._known(calling))
            failed = (is_refused(call) or call.final.kind != "complete") and directive_of(
                call.final
            ) is None
            if fault is None and failed and follow_up.expect.is_error is None:
                fault = f"a follow-up call that did not succeed shows no chain: {ending(call)}"
            if fault is not None:
                self._problem_of(call, place, fault, calling)
                self._observe(Missing(place, [FollowedChain], fault, messages))
                return
        last = directive_of(calls[-1].final)
        if last is None or last.key is not None:
            self._observe(FollowedChain(step.id, messages, calls))
        else:
            # It leads nowhere, and is judged by itself.
            reason = "the directive is malformed, so there is no chain to follow"
            self._observe(Missing(step.id, [FollowedChain], reason, messages))

    def _follow_up(
        self, follow_up: FollowUp, calling: Calling, tool: str, arguments: Json, claimed: Any
    ) -> ToolCall:
        return self._connections.call(
            calling,
            tool,
            arguments,
            meta=follow_up.meta,
            elicitation=follow_up.elicitation,
            provenance=claimed,
        )

    def _repeat_follow_up(
        self, place: str, follow_up: FollowUp, calling: Calling, chained: ToolCall, claimed: Json
    ) -> None:
        """Make a follow-up call again, without provenance and with it."""

        def make(variant: Variant, second: bool) -> ToolCall:
            call = self._follow_up(
                follow_up, calling, chained.tool, chained.arguments, variant.provenance
            )
            self._remember(call, calling, follow_up.meta)
            return call

        first = make(PLAIN, False)
        if is_refused(first):
            reason = f"without provenance the call ends in {ending(first)}"
            self._observe(Missing(place, OF_PROVENANCE, reason, first.final.messages))
            return
        Repeating(place, self._era, first, make, self._observe).all(
            [PLAIN, in_chain(claimed), *variants_of_malformed_provenance(chained.tool)]
        )


def _of_intermediary(step: Step) -> list[type[Evidence]]:
    """Return what a step shows of an intermediary."""
    marked: dict[type[Evidence], bool | None] = {PassedOn: step.followed, Crossing: step.crosses}
    return [kind for kind, is_marked in marked.items() if is_marked]
