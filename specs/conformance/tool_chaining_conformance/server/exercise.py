"""Plays one scenario in one era, and reports what the server did. It judges nothing."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.judgement import NotApplicable, Untestable
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.server.connections import Calling, Connections
from tool_chaining_conformance.server.evidence import (
    FollowedChain,
    Greeting,
    InterimResult,
    Missing,
    Observation,
    OtherResult,
    PassedOn,
    Problem,
    ResultWithDirective,
    Subject,
    Withheld,
)
from tool_chaining_conformance.server.expectation import explained, unmet
from tool_chaining_conformance.server.reading import (
    carries_directive,
    content_of,
    directive_of,
    ending,
    has_next_step,
    is_refused,
    key_of,
    structured_content_of,
    words_of,
    written_directive,
)
from tool_chaining_conformance.server.references import filled
from tool_chaining_conformance.server.repeating import Repeating
from tool_chaining_conformance.server.scenario import AnyCall, FollowUp, ServerScenario, Step
from tool_chaining_conformance.server.values import Values
from tool_chaining_conformance.server.ways import (
    ABSENT,
    EMITS,
    OF_REPEATING,
    PROVENANCE,
    REFUSED,
    UNDECLARED,
    Way,
    claims_of,
    in_chain,
    new_id,
    provenance,
    ways_of,
    ways_of_provenance,
)
from tool_chaining_conformance.target.channel import Target
from tool_chaining_conformance.target.connection import ORDINARY, Listing, Profile, Reply, ToolCall
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import identity

LEFT_OUT: Final = re.compile(
    r"(?i)(?=.*(?:directive|next.?tool))(?=.*(?:drop|discard|omit|left out|leav|remov|not sent))"
)
"""A line on standard error that says that the server left a directive out."""

RECORD_LINES: Final = 4
"""The lines of it that a report shows: some servers wrap their log."""

ONCE: Final = "the call was made once, so nothing was compared"

FOLLOW_UPS: Final = 10
"""The most follow-up calls if the scenario sets no limit."""


@dataclass(frozen=True)
class Made:
    """A call that succeeded, and who made it."""

    call: ToolCall
    caller: str | None
    chain: Json | None = None
    """Its provenance, if it was a follow-up call."""


@dataclass(frozen=True)
class Planned:
    """A call that the scenario allows: that of a step, or a follow-up call."""

    place: str
    """The place in the scenario, as reports show it."""
    part: AnyCall
    """Its entry in the scenario."""
    caller: str | None
    tool: str
    arguments: Json
    """The arguments of a step may contain `${name}`."""
    elicits: bool
    """Whether the client declares elicitation; one client makes all calls of a chain."""
    declares: Mapping[str, Any] = field(default_factory=lambda: ORDINARY)
    """The settings of the extension that the client declares."""

    def calling(self, way: Way | None = None, *, second: bool = False) -> Calling:
        """Return the caller, if given as a client that makes the call in another way."""
        profile = Profile(self.declares if way is None else way.declares, self.elicits)
        return Calling(profile, self.caller, second, way is not None and way.anew)


class Exercise:
    """One scenario in one era.

    It passes each piece of evidence to `observe` at once. Raises ScenarioError if an environment
    variable that the scenario names is not set.
    """

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario,
        era: Era,
        redaction: Redaction,
        observe: Callable[[Observation], None],
    ) -> None:
        self._scenario = scenario
        self._era = era
        self._observe = observe
        self._redaction = redaction
        self._values = Values(target, scenario, redaction, self._problem)
        self._connections = Connections(target, scenario, era, self._values)
        self._tools: dict[str, Json] = {}
        """The tools of the first list."""
        self._made: list[Made] = []
        self._chain = new_id()
        """The chainId with which calls are repeated: the server sees it with several calls."""
        self._looked_at: set[str] = set()
        """The reported results, each with its step and the kind of client."""
        self._listings: dict[str, Listing] = {}
        """The lists of tools that were read, each with its place and the kind of client."""
        self._errors = ""
        """The standard error of the server during the last planned call, if it had no directive."""
        self._noticed: set[tuple[str, bool]] = set()
        """The answered methods other than `tools/call`, and whether with a directive."""

    def open(self) -> None:
        """Open the era. Raises TargetFailure if the server does not speak it."""
        connection = self._connections.first()
        method = "server/discover" if self._era is Era.MODERN else "initialize"
        self._note(method, connection.greeting)
        evidence = Greeting(
            "greeting",
            connection.greeting.messages,
            self._era,
            connection.server_capabilities,
            connection.server_info,
        )
        self._observe(evidence)

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    # Steps

    def play(self) -> None:
        """Make every step of the scenario. Raises TargetFailure."""
        # Tools may be listed only after the set-up, which comes with the connection.
        connection = self._connections.to(Calling())
        self._tools = self._noted(connection.list_tools()).tools
        if self._era is Era.LEGACY:
            self._note("ping", connection.request("ping", {}))
        for step in self._scenario.steps:
            if step.wait_seconds is not None:
                time.sleep(step.wait_seconds)
            self._play(step)

    def _play(self, step: Step) -> None:
        planned = Planned(step.id, step, step.caller, step.call, step.arguments, step.elicits)
        call, fault = self._make_planned(planned)
        if not step.repeatable:
            shows = OF_REPEATING if directive_of(call.final) else (PROVENANCE,)
            reason = f"{ONCE}; it has no `repeatable: true`"
            self._observe(Missing(step.id, shows, NotApplicable(reason)))
        self._pass_on(step, call, as_expected=fault is None)
        if fault is not None:
            self._observe(Missing(step.id, _missed(step, call), Untestable(fault)))
            return
        if step.has_no_expectation and directive_of(call.final) is None:
            fault = f"expected a directive, saw {ending(call)}"
            self._problem_of(call, step.id, fault)
        if step.refused:
            self._claim_a_chain(planned, call)
        elif step.repeatable:
            self._repeat(planned, call, ways_of(self._era, self._provenances(step.call)))
        if step.follow is not None:
            self._follow(planned, step, call)

    def _provenances(self, tool: str) -> list[Way]:
        """Return every provenance with which a call of a tool is repeated."""
        called = [made.call.tool for made in reversed(self._made)]
        others = [each for each in dict.fromkeys([*called, *self._tools]) if each != tool]
        return ways_of_provenance(self._chain, tool, others)

    def _make_planned(
        self, planned: Planned, claimed: Json | None = None
    ) -> tuple[ToolCall, str | None]:
        """Make a call. Return it, and its deviation from what the scenario expects, or None."""
        part, calling = planned.part, planned.calling()
        self._connections.new_errors(calling)  # Drop those of earlier calls.
        call = self._make(planned, calling, ABSENT if claimed is None else claimed)
        self._remember(planned, call, claimed)
        self._values.named |= self._values.captured(planned.place, part.capture, call)
        self._look_at(call, planned.place, calling)
        self._errors = ""
        if directive_of(call.final) is None:
            self._errors = self._connections.new_errors(calling)
            lines = self._errors.splitlines()
            for number, line in enumerate(lines):
                if LEFT_OUT.search(line):
                    record = "\n".join(lines[number : number + RECORD_LINES])
                    self._observe(Problem(f"step {planned.place}: {record}", dropped=True))
        fault = unmet(part, call, self._connections.known(calling))
        if fault is not None:
            self._problem_of(call, planned.place, fault)
        return call, fault

    def _make(self, planned: Planned, calling: Calling, claimed: Any) -> ToolCall:
        part, arguments = planned.part, planned.arguments
        if isinstance(part, Step):
            arguments = filled(arguments, self._connections.known(calling))
        return self._connections.call(part, calling, planned.tool, arguments, claimed)

    def _remember(self, planned: Planned, call: ToolCall, chain: Json | None) -> None:
        """Keep a call that succeeded, with its caller."""
        if not is_refused(call) and call.final.kind == "complete":
            self._made.append(Made(call, planned.caller, chain))

    # What one call shows

    def _pass_on(self, step: Step, call: ToolCall, *, as_expected: bool) -> None:
        """Report a result of an intermediary, which must not contain any part of a directive.

        A result that the scenario does not expect is evidence only if it contains such a part.
        """
        seen, items = directive_of(call.final), content_of(call.final)
        structured = structured_content_of(call.final)
        if call.final.kind != "complete":
            if as_expected:
                reason = f"the call has no complete result: {ending(call)}"
                self._observe(Missing(step.id, _removes(step), Untestable(reason)))
            return
        if not (as_expected or seen or words_of(items, seen) or has_next_step(structured)):
            return
        for kind in _removes(step):
            evidence = kind(step.id, call.final.messages, seen, items, structured, self._tools)
            self._observe(evidence)

    def _look_at(self, call: ToolCall, step: str, calling: Calling) -> None:
        """Report the directives of one call, unless the same result was reported before."""
        ordinary = calling.profile.declares == ORDINARY
        results = [[list(each.faults), each.result] for each in call.replies]
        shown = identity([step, ordinary, results])
        if shown in self._looked_at:
            return
        self._looked_at.add(shown)
        for reply in call.replies:
            if reply.kind == "interim":
                self._observe(InterimResult(step, reply.messages, written_directive(reply)))
        seen = directive_of(call.final)
        if seen is None:
            return
        listing = self._listed(step, calling, seen.tool)
        result = ResultWithDirective(
            step=step,
            messages=call.final.messages,
            directive=seen,
            content=content_of(call.final),
            declared=bool(calling.profile.declares),
            structured=structured_content_of(call.final),
            target=listing.tools.get(seen.tool or ""),
            listed=sorted(listing.tools),
            intermediary=self._scenario.intermediary,
        )
        self._observe(result)

    def _listed(self, place: str, calling: Calling, tool: str | None) -> Listing:
        """Read the list of tools, as this caller, up to a tool that was named at this place.

        It is read once for each tool that the results of a place name to one kind of client.
        """
        if tool is None:
            return Listing({}, ())
        key = identity([place, calling.profile.capabilities(), tool])
        if key not in self._listings:
            connection = self._connections.to(calling)
            listing = connection.list_tools(until=tool, profile=calling.profile)
            self._listings[key] = self._noted(listing)
        return self._listings[key]

    def _noted(self, listing: Listing) -> Listing:
        for page in listing.replies:
            self._note("tools/list", page)
        return listing

    def _note(self, method: str, reply: Reply) -> None:
        """Report a reply to a method other than `tools/call`."""
        carries = carries_directive(reply.result)
        if reply.result is not None and (method, carries) not in self._noticed:
            self._noticed.add((method, carries))
            self._observe(OtherResult("", reply.messages, method, carries))

    def _problem(self, sentence: str) -> None:
        self._observe(Problem(sentence))

    def _problem_of(self, call: ToolCall, place: str, fault: str) -> None:
        """Report a fault of a call; if the call has no directive, also what may explain it."""
        if directive_of(call.final) is None:
            fault = explained(fault, call, self._tools, self._errors, self._redaction)
        self._problem(f"step {place}: {fault}")

    # Repeating a call

    def _repeat(self, planned: Planned, first: ToolCall, ways: Sequence[Way]) -> None:
        """Make a call again in ways that must not change its result."""

        def make(way: Way, second: bool) -> ToolCall:
            return self._repeated(planned, way, second=second)

        Repeating(planned.place, self._era, first, make, self._observe).all(ways)

    def _repeated(self, planned: Planned, way: Way, *, second: bool = False) -> ToolCall:
        """Make a call in one way, and report what it shows."""
        part, calling = planned.part, planned.calling(way, second=second)
        call = self._make(planned, calling, way.provenance)
        self._remember(planned, call, None)
        if isinstance(part, Step):
            self._pass_on(part, call, as_expected=not is_refused(call))
        self._look_at(call, planned.place, calling)
        return call

    def _claim_a_chain(self, planned: Planned, alone: ToolCall) -> None:
        """Repeat a refused call as a part of a chain."""
        key = key_of(alone.tool, alone.arguments)
        allowed = [
            made
            for made in self._made
            if key_of(made.call.tool, made.call.arguments) == key and made.caller != planned.caller
        ]
        if not allowed:
            reason = (
                "the same call, with the same arguments, succeeded for no other caller before, so "
                "its refusal may be any error; add such a step before this one"
            )
            self._observe(Missing(planned.place, [REFUSED], Untestable(reason)))
            return
        own = [made.chain for made in allowed if made.chain is not None]
        chains = own or [made.chain for made in self._made if made.chain is not None]
        self._repeat(planned, alone, claims_of(alone.tool, chains[-1] if chains else None))

    # Following a chain

    def _follow(self, began: Planned, step: Step, first: ToolCall) -> None:
        """Follow the chain as far as the scenario allows, but make no call twice.

        A client that did not declare the extension makes the calls, unless one is repeatable:
        servers repeat directives for such clients. On 2025-11-25 it has a connection of its own,
        on which the first call has to be made again.
        """
        chain_id = new_id()
        undeclared: ToolCall | None = None
        if self._era is Era.LEGACY and step.repeatable:
            undeclared = self._repeated(began, UNDECLARED)
        repeatable = any(each.repeatable for each in step.follow_ups)
        declares: Mapping[str, Any] = ORDINARY if repeatable or self._era is Era.LEGACY else {}
        if undeclared and not repeatable and directive_of(undeclared.final):
            first, declares = undeclared, {}
        allowed = [FollowUp()] * FOLLOW_UPS if step.follow is True else step.follow_ups
        calls = [first]
        for follow_up in allowed:
            place = f"{step.id}, call {len(calls) + 1}"
            planned = _next(place, follow_up, began, calls[-1], declares)
            keys = [key_of(call.tool, call.arguments) for call in calls]
            if planned is None or key_of(planned.tool, planned.arguments) in keys:
                break
            if planned.tool not in self._listed(place, planned.calling(), planned.tool).tools:
                break
            claimed = provenance(chain_id, len(calls) + 1, calls[-1].tool)
            twin = _next(place, follow_up, began, undeclared, {}) if undeclared else None
            call, fault = self._make_planned(planned, claimed)
            calls.append(call)
            if follow_up.repeatable:
                undeclared = self._repeat_follow_up(planned, claimed, twin)
            else:
                unseen = [PROVENANCE, *[EMITS] * (declares == ORDINARY)]
                reason = f"{ONCE}; its entry in `follow` has no `repeatable: true`"
                self._observe(Missing(place, unseen, NotApplicable(reason)))
            if fault is not None:
                self._observe(Missing(place, [FollowedChain], Untestable(fault)))
                return
        if step.repeatable and len(calls) > 1:
            # The server has seen this provenance with another call, and may repeat its result.
            known = provenance(chain_id, 2, first.tool)
            plain = self._make(began, began.calling(), ABSENT)
            self._repeat(
                began, plain, [in_chain("with the provenance of the call after it", known)]
            )
        made = [call.tool for call in calls[1:]]
        if (wanted := step.expect.chain) is not None and made != list(wanted):
            seen = f"{' → '.join(made) or 'no follow-up call'}, then {ending(calls[-1])}"
            self._problem(f"step {step.id}: expected the chain {' → '.join(wanted)}, saw {seen}")
        last = directive_of(calls[-1].final)
        if last is None or last.key is not None:
            messages = [message for call in calls for message in call.final.messages]
            self._observe(FollowedChain(step.id, messages, calls))
        else:
            # There is nothing to follow. Other checks judge the directive.
            reason = "the directive is malformed, so there is no chain to follow"
            self._observe(Missing(step.id, [FollowedChain], Untestable(reason)))

    def _repeat_follow_up(
        self, planned: Planned, claimed: Json, twin: Planned | None
    ) -> ToolCall | None:
        """Make a follow-up call again, without provenance and with it.

        `twin` is the same call in a chain of a client that did not declare the extension, on
        2025-11-25, and its last result is returned.
        """
        first = self._make(planned, planned.calling(), ABSENT)
        if is_refused(first):
            reason = f"without provenance the call ends in {ending(first)}"
            self._observe(Missing(planned.place, [PROVENANCE], Untestable(reason)))
            return None
        chained = in_chain("with the provenance of its chain", claimed)
        ways = ways_of(self._era, [chained, *self._provenances(planned.tool)])
        last: ToolCall | None = None

        def make(way: Way, second: bool) -> ToolCall:
            nonlocal last
            if twin is None or way.declares:
                return self._repeated(planned, way, second=second)
            last = self._repeated(twin, way)
            return last

        if self._era is Era.LEGACY:
            # Another declaration needs another connection, which may have another state.
            ways = [each for each in ways if each.declares == ORDINARY]
            ways += [UNDECLARED] * (twin is not None)
        Repeating(planned.place, self._era, first, make, self._observe).all(ways)
        return last


def _next(
    place: str, part: FollowUp, began: Planned, call: ToolCall, declares: Mapping[str, Any]
) -> Planned | None:
    """Return the call that a result's directive asks for, or None if it asks for none."""
    seen = directive_of(call.final)
    if seen is None or seen.tool is None or seen.arguments is None:
        return None
    return Planned(place, part, began.caller, seen.tool, seen.arguments, began.elicits, declares)


def _removes(step: Step) -> list[type[PassedOn]]:
    """Return the evidence that an intermediary gives with a step whose directive it removes."""
    return [PassedOn] * bool(step.followed) + [Withheld] * bool(step.withheld)


def _missed(step: Step, call: ToolCall) -> list[Subject]:
    """Return what a step should have shown, and did not."""
    missed: list[Subject] = [*_removes(step)]
    wanted = step.expect.next_tool
    if directive_of(call.final) is None and wanted not in (None, "none"):
        missed.append(ResultWithDirective)
    if step.refused:
        missed.append(REFUSED)
    elif step.repeatable:
        missed.extend(OF_REPEATING)
    if step.follow is not None:
        missed.append(FollowedChain)
    return missed
