"""Judges a server: plays its scenarios in both eras, and looks at every message it sends."""

import contextlib
import json
import re
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jsonschema.validators import Draft202012Validator

from banking_server.chaining import IDENTIFIER, META_KEY, SETTINGS, Provenance
from banking_server.chaining.arguments import argument_problem
from banking_server.conformance.message import Json, WireMessage
from banking_server.conformance.report.judgement import Judge
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.run import Run
from banking_server.conformance.requirements import checks_of
from banking_server.conformance.server.scenario import (
    Capture,
    FollowUp,
    ServerScenario,
    Step,
    StepExpectation,
)
from banking_server.conformance.target.connection import (
    Connection,
    Profile,
    Reply,
    Target,
    TargetFailure,
    ToolCall,
    connect,
)
from banking_server.conformance.target.elicitation import ElicitationAnswer
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import identity, same
from banking_server.packaged import packaged

PASSIVE: Final = "passive"
"""The name of what is done where the user gave no scenario: no tool is called."""

FOLLOW_UPS: Final = 10
"""Calls that a chain is followed for at most."""

DEFAULT_LIMIT: Final = 5

PREFIX: Final = "tool-chaining-server-"

PASSIVE_CHECKS: Final = frozenset(
    PREFIX + name
    for name in (
        "advertises-in-discover",
        "advertises-in-initialize",
        "settings-valid",
        "no-directive-on-other-methods",
    )
)

CONDITIONAL: Final = {
    "settings-valid": "the server advertises no settings",
    "no-directive-on-interim-result": (
        "no call asked for input; a step with `elicitation` that does would exercise this"
    ),
    "marks-next-tool-text": "the server words no directive",
    "no-secret-in-arguments": (
        "the scenario names no secret; a `capture` with `secret: true` would exercise this"
    ),
    "chained-call-authorized": (
        "the scenario names no call that is refused; a step with `refused: true` would "
        "exercise this"
    ),
}
"""Checks of what a server may well not have, with why nothing was judged."""

NEED_DIRECTIVE: Final = frozenset(
    {
        "directive-well-formed",
        "directive-names-tool",
        "no-name-alias",
        "no-unknown-members",
        "names-listed-tool",
        "names-visible-tool",
        "arguments-valid",
        "arguments-declared",
        "content-without-directive",
        "no-extra-text-for-declared-client",
    }
)
"""Checks of a directive by itself."""

NEED_REPEATING: Final = frozenset(
    {
        "emits-to-undeclared-client",
        "names-next-tool-in-text",
        "marks-next-tool-text",
        "ignores-unknown-settings",
        "same-input-same-directive",
        "provenance-changes-nothing",
        "ignores-malformed-provenance",
    }
)
"""Checks that compare two answers, for which a step must be `repeatable`."""

NEED_FOLLOWING: Final = frozenset({"no-cycle", "chain-within-default-limit"})
"""Checks of a whole chain, for which a step must allow `follow`."""

LATER_SETTINGS: Final = {"version": 2, "since": "a later version", "options": {"level": 2}}

MALFORMED_PROVENANCE: Final[tuple[Any, ...]] = (
    "no object",
    {"chainId": "", "level": 0},
    {"chainId": 7, "level": "2", "previousTool": ["no", "name"]},
)


Progress = Callable[[str], None]


def run_server(
    target: Target,
    scenarios: Sequence[ServerScenario],
    eras: Sequence[Era],
    chosen: frozenset[str],
    redaction: Redaction,
    progress: Progress,
) -> Run:
    """Play every scenario in every era, and judge what the server sends.

    Without scenarios it does only what calls no tool.
    """
    run = Run("server")
    exercises: list[tuple[ServerScenario | None, Era]] = [
        (scenario, era)
        for scenario in (scenarios or (None,))
        for era in eras
        if scenario is None or era in scenario.spec_versions
    ]
    for scenario, era in exercises:
        name = scenario.name if scenario else PASSIVE
        judge = Judge(name, era, chosen)
        progress(f"{name}, {era}")
        environment = scenario.environment if scenario else {}
        exercise = _Exercise(
            replace(target, environment=environment), scenario, judge, redaction, run
        )
        with contextlib.closing(exercise):
            failure = _examine(exercise, run, era)
        if failure is not None:
            run.broke_off(name, era, failure)
        _leave_unreached(judge, scenario, failure)
        run.judgements += judge.judgements
    run.excuse_unspoken_eras()
    return run


def _examine(exercise: "_Exercise", run: Run, era: Era) -> str | None:
    """Open the era and play the scenario; return why that came to nothing, if it did."""
    try:
        exercise.open()
        run.spoke(era)
        exercise.play()
    except TargetFailure as failure:
        return str(failure)
    return None


def _leave_unreached(judge: Judge, scenario: ServerScenario | None, failure: str | None) -> None:
    """Say of every check that nothing was judged on why that is so."""
    for check in checks_of("server"):
        if judge.reached(check.id) or not judge.wants(check.id):
            continue
        name = check.id.removeprefix(PREFIX)
        if failure is not None:
            judge.untestable(check.id, failure, refused=True)
        elif name in CONDITIONAL and (scenario or check.id in PASSIVE_CHECKS):
            judge.not_applicable(check.id, CONDITIONAL[name])
        elif scenario is None:
            judge.untestable(check.id, "no scenario file says how this server is exercised")
        else:
            why = "no call returned a directive that would show it"
            if name in NEED_REPEATING:
                why = "no step that ends in a directive has `repeatable: true`"
            elif name in NEED_FOLLOWING:
                why = "no chain was followed to its end; `follow: true` on a step allows it"
            judge.untestable(check.id, why)


@dataclass(frozen=True)
class _Sent:
    """A directive as a server sent it, well-formed or not."""

    value: Any

    @property
    def tool(self) -> str | None:
        """The tool that it names, by the alias if need be."""
        if not isinstance(self.value, dict):
            return None
        tool = self.value["tool"] if "tool" in self.value else self.value.get("name")
        return tool if isinstance(tool, str) and tool else None

    @property
    def arguments(self) -> Json | None:
        """Its arguments, or None where they are no object."""
        if not isinstance(self.value, dict):
            return None
        arguments = self.value.get("arguments", {})
        return arguments if isinstance(arguments, dict) else None

    @property
    def key(self) -> tuple[str, Hashable] | None:
        """What makes it the same call as another, or None where it is malformed."""
        if self.tool is None or self.arguments is None:
            return None
        return self.tool, identity(self.arguments)


def _directive(reply: Reply) -> _Sent | None:
    """Return the directive on a complete result, in whatever shape it is."""
    meta = (reply.result or {}).get("_meta")
    if not isinstance(meta, dict) or META_KEY not in meta:
        return None
    return _Sent(meta[META_KEY])


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"


def _outcome(call: ToolCall) -> str:
    """Say in one line how a call ended, directive and all."""
    reply = call.final
    if reply.error is not None:
        return f"error {reply.error.get('code')}"
    sent = _directive(reply)
    ended = "isError true" if (reply.result or {}).get("isError") is True else "a result"
    return f"{ended} with " + ("no directive" if sent is None else f"nextTool {_show(sent.value)}")


def _same(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls ended alike, as far as the specification is concerned."""
    return _fate(one) == _fate(other)


def _fate(call: ToolCall) -> tuple[object, ...]:
    reply = call.final
    sent = _directive(reply)
    shown = None if sent is None else (sent.key or json.dumps(sent.value, sort_keys=True))
    code = None if reply.error is None else reply.error.get("code")
    return code, (reply.result or {}).get("isError") is True, shown


def _refused(call: ToolCall) -> bool:
    return call.final.error is not None or (call.final.result or {}).get("isError") is True


class _Exercise:
    """One scenario in one era."""

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario | None,
        judge: Judge,
        redaction: Redaction,
        run: Run,
    ) -> None:
        self._target = target
        self._scenario = scenario
        self._judge = judge
        self._redaction = redaction
        self._run = run
        self._connections: dict[str, Connection] = {}
        self._tools: dict[str, Json] = {}
        self._values: dict[str, Any] = {}
        self._signed_in: dict[str, dict[str, Any]] = {}
        self._secrets: dict[str, str] = {
            f"header {name}": value.removeprefix("Bearer ")
            for name, value in target.headers.items()
        }
        self._directives: list[tuple[str, _Sent, Sequence[WireMessage]]] = []

    # Connections

    def open(self) -> None:
        """Open the era, and judge what it begins with. Raises TargetFailure."""
        connection = connect(self._target, self._judge.era, Profile())
        self._connections[self._key(Profile())] = connection
        self._run.name = self._run.name or _text(connection.server_info.get("name"))
        self._run.version = self._run.version or _text(connection.server_info.get("version"))
        self._judge_greeting(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()

    def _connection(self, profile: Profile) -> Connection:
        """Return a connection for `profile`: one for all where requests carry capabilities."""
        key = self._key(profile)
        if key not in self._connections:
            self._connections[key] = connect(self._target, self._judge.era, profile)
        if key not in self._signed_in:
            self._sign_in(self._connections[key], key)
        return self._connections[key]

    def _key(self, profile: Profile) -> str:
        return "" if self._judge.era is Era.MODERN else json.dumps(profile.capabilities())

    def _sign_in(self, connection: Connection, key: str) -> None:
        """Make the set-up steps, on which nothing is judged."""
        self._signed_in[key] = {}
        for step in self._scenario.setup if self._scenario else ():
            values = {**self._values, **self._signed_in[key]}
            call = connection.call_tool(
                step.call,
                _filled(step.arguments, values),
                meta=_filled(step.meta, values),
                answers=step.elicitation or (),
                profile=Profile(elicitation=step.elicitation is not None),
            )
            self._signed_in[key] |= self._captured(step.capture, call, step.id)
            unmet = self._unmet(step.expect, call, values)
            if unmet is not None:
                raise TargetFailure(f"set-up step {step.id}: {unmet}")

    def _list_tools(self, connection: Connection) -> tuple[dict[str, Json], list[WireMessage]]:
        tools, messages = connection.list_tools()
        self._tools = {str(tool.get("name")): tool for tool in tools}
        return self._tools, messages

    def _tool(self, name: str) -> Json | None:
        """Find a tool in the server's list, read again where it is missing."""
        if name not in self._tools:
            self._list_tools(self._connection(Profile()))
        return self._tools.get(name)

    # What calls no tool

    def _judge_greeting(self, connection: Connection) -> None:
        greeting = connection.greeting
        assert greeting is not None  # noqa: S101 - connect() greets or raises
        capabilities = connection.server_capabilities
        places = [capabilities.get("extensions")]
        check, where = "advertises-in-discover", "capabilities.extensions"
        if self._judge.era is Era.LEGACY:
            places.append(capabilities.get("experimental"))
            check, where = "advertises-in-initialize", f"{where} or capabilities.experimental"
        found = [
            place[IDENTIFIER] for place in places if isinstance(place, dict) and IDENTIFIER in place
        ]
        self._found(
            check,
            bool(found),
            "greeting",
            f"{IDENTIFIER} in {where}",
            f"capabilities {_show(capabilities)}",
            greeting.messages,
        )
        for settings in found:
            self._found(
                "settings-valid",
                _settings_schema().is_valid(settings),
                "greeting",
                "a settings object whose version, if there is one, is an integer of at least 1",
                _show(settings),
                greeting.messages,
            )

    def _judge_other_results(self, connection: Connection, listing: Sequence[WireMessage]) -> None:
        greeting = connection.greeting
        assert greeting is not None  # noqa: S101 - connect() greets or raises
        messages = [*greeting.messages, *listing]
        with_directive = [message for message in messages if _carries_directive(message)]
        self._found(
            "no-directive-on-other-methods",
            not with_directive,
            "greeting",
            f"no _meta.{META_KEY} on results other than that of tools/call",
            f"{len(with_directive)} such results with one" if with_directive else "none",
            with_directive or messages,
        )

    # What calls tools

    def play(self) -> None:
        """Make the steps, and judge them. Raises TargetFailure."""
        # Tools may be listed only after signing in, which comes with the connection.
        connection = self._connection(Profile())
        _, messages = self._list_tools(connection)
        self._judge_other_results(connection, messages)
        if self._scenario is None:
            return
        for step in self._scenario.steps:
            if step.wait_seconds is not None:
                time.sleep(step.wait_seconds)
            call = self._make(step, Profile(elicitation=step.elicitation is not None))
            self._values |= self._captured(step.capture, call, step.id)
            self._look_at(call, step.id, declared=True)
            unmet = self._unmet(step.expect, call, self._values)
            if unmet is not None:
                self._miss(step, call, unmet)
                continue
            if step.refused:
                self._chained_call_is_refused_too(step, call)
            elif step.repeatable:
                self._repeat(step, call)
            if step.follow is not None:
                self._follow(step, call)
        self._judge_secrets()

    def _miss(self, step: Step, call: ToolCall, unmet: str) -> None:
        """Say of what the step was to show that it did not come to it."""
        self._problem(f"step {step.id}: {unmet}")
        missed: set[str] = set()
        wanted = step.expect.next_tool
        if _directive(call.final) is None and wanted not in (None, "any", "none"):
            missed |= NEED_DIRECTIVE
        if step.refused:
            missed.add("chained-call-authorized")
        elif step.repeatable:
            missed |= NEED_REPEATING
        if step.follow is not None:
            missed |= NEED_FOLLOWING
        for check in sorted(missed):
            self._judge.untestable(
                PREFIX + check, unmet, step=step.id, messages=call.final.messages
            )

    def _make(self, step: Step, profile: Profile, provenance: Any = None) -> ToolCall:
        connection = self._connection(profile)
        values = {**self._values, **self._signed_in[self._key(profile)]}
        meta = _filled(step.meta, values)
        if provenance is not None:
            meta = {**meta, IDENTIFIER: provenance}
        return connection.call_tool(
            step.call,
            _filled(step.arguments, values),
            meta=meta,
            answers=step.elicitation or (),
            profile=profile,
        )

    def _captured(
        self, captures: Mapping[str, Capture], call: ToolCall, step: str
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, capture in captures.items():
            value = _find(capture, call.final.result or {})
            if value is None:
                self._problem(f"step {step}: nothing to capture as {name!r}: {_outcome(call)}")
                continue
            values[name] = value
            if capture.secret:
                self._secrets[name] = str(value)
                self._redaction.add(str(value))
        return values

    def _unmet(
        self, expect: StepExpectation, call: ToolCall, values: Mapping[str, Any]
    ) -> str | None:
        """Say what a call did not produce that the scenario expected, or return None."""
        sent = _directive(call.final)
        wanted = expect.next_tool
        if wanted is not None and wanted != "any":
            names = [wanted] if isinstance(wanted, str) else wanted
            if ("none" if sent is None else sent.tool) not in names:
                return f"expected nextTool {' or '.join(names)}, saw {_outcome(call)}"
        if expect.is_error is not None:
            is_error = (call.final.result or {}).get("isError") is True
            if call.final.error is not None or is_error != expect.is_error:
                return f"expected isError {str(expect.is_error).lower()}, saw {_outcome(call)}"
        if expect.arguments is not None and sent is not None:
            arguments = sent.arguments or {}
            for name, value in _filled(expect.arguments, values).items():
                if name not in arguments or not same(arguments[name], value):
                    return (
                        f"expected the directive's argument {name!r} to be {_show(value)}, "
                        f"saw {_show(sent.value)}"
                    )
        return None

    def _problem(self, sentence: str) -> None:
        self._run.problems.append(f"{self._judge.scenario}, {self._judge.era}, {sentence}")

    # Judgements on one call

    def _found(
        self,
        check: str,
        holds: bool,
        step: str,
        expected: str,
        seen: str,
        messages: Iterable[WireMessage],
    ) -> None:
        self._judge.found(
            PREFIX + check, holds, step=step, expected=expected, seen=seen, messages=messages
        )

    def _look_at(self, call: ToolCall, step: str, *, declared: bool) -> None:
        """Judge everything that one call shows by itself."""
        for interim in call.replies[:-1]:
            self._found(
                "no-directive-on-interim-result",
                _directive(interim) is None,
                step,
                f"no _meta.{META_KEY} on a result with resultType input_required",
                "none" if _directive(interim) is None else "one",
                interim.messages,
            )
        sent = _directive(call.final)
        if sent is None:
            return
        messages = call.final.messages
        self._directives.append((step, sent, messages))
        self._look_at_form(sent, step, messages)
        self._look_at_target(sent, step, messages)
        self._look_at_content(call, sent, step, declared=declared)

    def _look_at_form(self, sent: _Sent, step: str, messages: Sequence[WireMessage]) -> None:
        value = sent.value
        well_formed = isinstance(value, dict) and sent.arguments is not None
        shown = f"{META_KEY}: {_show(value)}"
        self._found(
            "directive-well-formed",
            well_formed,
            step,
            "an object, with an object for `arguments` if it has that member",
            shown,
            messages,
        )
        if not isinstance(value, dict):
            return
        self._found(
            "directive-names-tool",
            sent.tool is not None,
            step,
            "a member `tool` that is a non-empty string",
            shown,
            messages,
        )
        self._found("no-name-alias", "name" not in value, step, "no member `name`", shown, messages)
        unknown = sorted(set(value) - {"tool", "arguments", "name"})
        self._found(
            "no-unknown-members",
            not unknown,
            step,
            "no members besides `tool` and `arguments`",
            f"also {', '.join(unknown)}" if unknown else shown,
            messages,
        )

    def _look_at_target(self, sent: _Sent, step: str, messages: Sequence[WireMessage]) -> None:
        if sent.tool is None:
            return
        tool = self._tool(sent.tool)
        self._found(
            "names-listed-tool",
            tool is not None,
            step,
            f"a tool of tools/list: {', '.join(sorted(self._tools))}",
            sent.tool,
            messages,
        )
        if tool is None:
            return
        visibility = _visibility(tool)
        self._found(
            "names-visible-tool",
            visibility is None or "model" in visibility,
            step,
            "a tool whose _meta.ui.visibility, if present, includes model",
            f"{sent.tool} with visibility {_show(visibility)}",
            messages,
        )
        schema = tool.get("inputSchema")
        if sent.arguments is None or not isinstance(schema, dict):
            return
        problem = argument_problem(schema, sent.arguments)
        self._found(
            "arguments-valid",
            problem is None,
            step,
            f"arguments that are complete and valid against the input schema of {sent.tool}",
            problem or "valid arguments",
            messages,
        )
        undeclared = _undeclared(schema, sent.arguments)
        if undeclared is None:
            self._judge.not_applicable(
                PREFIX + "arguments-declared",
                f"the input schema of {sent.tool} does not declare its arguments by name alone",
                step=step,
            )
            return
        self._found(
            "arguments-declared",
            not undeclared,
            step,
            f"only arguments that the input schema of {sent.tool} declares",
            f"also {', '.join(undeclared)}" if undeclared else "only such",
            messages,
        )

    def _look_at_content(self, call: ToolCall, sent: _Sent, step: str, *, declared: bool) -> None:
        messages = call.final.messages
        content = (call.final.result or {}).get("content")
        items = (
            [item for item in content if isinstance(item, dict)]
            if isinstance(content, list)
            else []
        )
        wordings = [item for item in items if _is_wording(item, sent)]
        others = len(items) - len(wordings)
        self._found(
            "content-without-directive",
            others > 0,
            step,
            "at least one content item besides the one that words the directive",
            f"{others} such items",
            messages,
        )
        if declared:
            if sent.tool is not None and sent.arguments is not None:
                self._found(
                    "no-extra-text-for-declared-client",
                    not wordings,
                    step,
                    "no item that words the directive, since this client declared the extension",
                    f"{len(wordings)} such items",
                    messages,
                )
            return
        if sent.tool is None or sent.arguments is None:
            return
        last = items[-1] if items else {}
        self._found(
            "names-next-tool-in-text",
            _words_fully(last, sent),
            step,
            'a last item of type text with annotations.audience ["assistant"] that names '
            f"{sent.tool} and holds its arguments as one JSON object: {_show(sent.arguments)}",
            f"the last item: {_show(last)}",
            messages,
        )
        for item in wordings:
            self._found(
                "marks-next-tool-text",
                _is_marked(item),
                step,
                f'_meta: {{"{IDENTIFIER}": {{"describes": "{META_KEY}"}}}} on that item',
                f"_meta: {_show(item.get('_meta'))}",
                messages,
            )

    # Judgements that need further calls

    def _repeat(self, step: Step, first: ToolCall) -> None:
        """Make a step's call again in every way that must not change its outcome."""
        profile = Profile(elicitation=step.elicitation is not None)
        undeclared = replace(profile, settings=None)
        later = replace(profile, settings=LATER_SETTINGS)
        provenance = Provenance(
            chain_id=str(uuid.uuid4()), level=2, previous_tool=step.call
        ).model_dump(by_alias=True)

        self._compare("same-input-same-directive", step, first, profile)
        if self._judge.failed(PREFIX + "same-input-same-directive", step.id):
            for check in sorted(NEED_REPEATING - {"same-input-same-directive"}):
                self._judge.untestable(
                    PREFIX + check,
                    "the server answers the very same call differently every time",
                    step=step.id,
                )
            return
        repeated = self._compare("emits-to-undeclared-client", step, first, undeclared)
        self._look_at(repeated, step.id, declared=False)
        if _directive(first.final) is not None and _directive(repeated.final) is None:
            for check in ("names-next-tool-in-text", "marks-next-tool-text"):
                self._judge.untestable(
                    PREFIX + check, "a client that did not declare got no directive", step=step.id
                )
        self._compare("ignores-unknown-settings", step, first, later)
        self._compare("provenance-changes-nothing", step, first, profile, provenance)
        for malformed in MALFORMED_PROVENANCE:
            self._compare("ignores-malformed-provenance", step, first, profile, malformed)

    def _compare(
        self, check: str, step: Step, first: ToolCall, profile: Profile, provenance: Any = None
    ) -> ToolCall:
        """Make the call again and judge whether it ends like `first`."""
        again = self._make(step, profile, provenance)
        same = _same(first, again)
        if same and _directive(first.final) is None:
            return again  # Two calls without a directive are no evidence.
        # On 2025-11-25 another declaration takes another connection, with perhaps another state.
        elsewhere = self._judge.era is Era.LEGACY and profile.settings != SETTINGS
        if elsewhere and _fate(first)[:2] != _fate(again)[:2]:
            self._judge.untestable(
                PREFIX + check,
                f"on a connection of its own the call ended otherwise: {_outcome(again)}",
                step=step.id,
                messages=[*first.final.messages, *again.final.messages],
            )
            return again
        self._found(
            check,
            same,
            step.id,
            f"the same as before: {_outcome(first)}",
            _outcome(again),
            [*first.final.messages, *again.final.messages],
        )
        return again

    def _chained_call_is_refused_too(self, step: Step, first: ToolCall) -> None:
        """A call that is refused stays refused, whatever chain it claims to belong to."""
        if not _refused(first):
            self._problem(f"step {step.id}: expected a refusal, saw {_outcome(first)}")
            return
        directive = self._directives[-1][1] if self._directives else None
        provenance = Provenance(
            chain_id=str(uuid.uuid4()),
            level=2,
            previous_tool=(directive.tool if directive else None) or step.call,
        ).model_dump(by_alias=True)
        profile = Profile(elicitation=step.elicitation is not None)
        again = self._make(step, profile, provenance)
        self._found(
            "chained-call-authorized",
            _refused(again),
            step.id,
            "refused as without a chain: " + _outcome(first),
            _outcome(again),
            [*first.final.messages, *again.final.messages],
        )

    def _follow(self, step: Step, first: ToolCall) -> None:
        """Follow the chain as far as the scenario allows."""
        chain_id = str(uuid.uuid4())
        call, name = first, step.call
        made = {(step.call, identity(_filled(step.arguments, self._values)))}
        messages = list(first.final.messages)
        planned: Iterator[FollowUp] = (
            iter([FollowUp()] * FOLLOW_UPS) if step.follow is True else iter(step.follow or ())
        )
        level = 1
        while (sent := _directive(call.final)) is not None:
            if sent.key is None or sent.tool is None or sent.arguments is None:
                return
            if sent.key in made:
                self._found(
                    "no-cycle",
                    False,
                    step.id,
                    "a directive to a call that the chain does not contain yet",
                    f"call {level} leads back to {sent.tool} with the same arguments",
                    messages,
                )
                return
            planned_call = next(planned, None)
            if planned_call is None or self._tool(sent.tool) is None:
                break
            provenance = Provenance(
                chain_id=chain_id, level=level + 1, previous_tool=name
            ).model_dump(by_alias=True)
            level, name = level + 1, sent.tool
            profile = Profile(elicitation=planned_call.elicitation is not None)
            call = self._call_planned(planned_call, sent, profile, provenance)
            made.add(sent.key)
            messages += call.final.messages
            place = f"{step.id}, call {level}"
            self._values |= self._captured(planned_call.capture, call, place)
            self._look_at(call, place, declared=True)
            unmet = self._unmet(planned_call.expect, call, self._values)
            if unmet is not None:
                self._problem(f"step {place}: {unmet}")
                for check in sorted(NEED_FOLLOWING):
                    self._judge.untestable(PREFIX + check, unmet, step=place, messages=messages)
                return
        ended = _directive(call.final) is None
        if not ended and level <= DEFAULT_LIMIT:
            return  # The scenario allows no further call, so nothing is known of the rest.
        if level > 1:
            self._found(
                "chain-within-default-limit",
                ended and level <= DEFAULT_LIMIT,
                step.id,
                f"at most {DEFAULT_LIMIT} calls",
                f"{level} calls" + ("" if ended else " and a directive to another"),
                messages,
            )
        if ended and level > 1:
            self._found(
                "no-cycle", True, step.id, "no call twice", f"{level} different calls", messages
            )

    def _call_planned(
        self, planned: FollowUp, sent: _Sent, profile: Profile, provenance: Json
    ) -> ToolCall:
        answers: Sequence[ElicitationAnswer] = planned.elicitation or ()
        return self._connection(profile).call_tool(
            str(sent.tool),
            sent.arguments or {},
            meta={IDENTIFIER: provenance},
            answers=answers,
            profile=profile,
        )

    def _judge_secrets(self) -> None:
        if not self._secrets:
            return
        for step, sent, messages in self._directives:
            shown = json.dumps(sent.value, ensure_ascii=False)
            held = [name for name, secret in self._secrets.items() if secret in shown]
            self._found(
                "no-secret-in-arguments",
                not held,
                step,
                "none of the values that the scenario calls secret",
                f"the value of {', '.join(held)}" if held else "none",
                messages,
            )


def _carries_directive(message: WireMessage) -> bool:
    result = message.body.get("result")
    meta = result.get("_meta") if isinstance(result, dict) else None
    return isinstance(meta, dict) and META_KEY in meta


def _is_marked(item: Json) -> bool:
    meta = item.get("_meta")
    mark = meta.get(IDENTIFIER) if isinstance(meta, dict) else None
    return isinstance(mark, dict) and mark.get("describes") == META_KEY


def _is_wording(item: Json, sent: _Sent) -> bool:
    """Whether an item words the directive: by its mark, or because it says it all."""
    return _is_marked(item) or _words_fully(item, sent)


def _words_fully(item: Json, sent: _Sent) -> bool:
    annotations = item.get("annotations")
    audience = annotations.get("audience") if isinstance(annotations, dict) else None
    text = item.get("text")
    return (
        item.get("type") == "text"
        and audience == ["assistant"]
        and isinstance(text, str)
        and sent.tool is not None
        and sent.tool in text
        and any(same(found, sent.arguments) for found in _objects_in(text))
    )


def _objects_in(text: str) -> Iterator[Any]:
    """Yield every JSON object that stands somewhere in a text."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        yield found
        start = text.find("{", end)


def _visibility(tool: Json) -> Any:
    meta = tool.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return visibility if isinstance(visibility, list | str) else None


def _undeclared(schema: Json, arguments: Json) -> list[str] | None:
    """Return the arguments that the schema does not declare; None where it says so elsewhere."""
    elsewhere = (
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
        "patternProperties",
    )
    if any(keyword in schema for keyword in elsewhere):
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    properties = schema.get("properties")
    return sorted(set(arguments) - set(properties if isinstance(properties, dict) else {}))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _settings_schema() -> Draft202012Validator:
    schema = json.loads((packaged("specs") / "next-tool.schema.json").read_text("utf-8"))
    return Draft202012Validator({**schema["$defs"]["settings"], "$defs": schema["$defs"]})


# Values of the scenario

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_]*)\}")


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Put captured values in the place of `${name}`."""
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _REFERENCE.sub(lambda match: str(values.get(match[1], match[0])), value)
    return value


def _find(capture: Capture, result: Json) -> Any:
    """Return the value that a capture means, or None where the result does not have it."""
    if capture.pointer is not None:
        value: Any = result
        for part in capture.pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            elif isinstance(value, dict) and name in value:
                value = value[name]
            else:
                return None
        return value
    content = result.get("content")
    for item in content if isinstance(content, list) else []:
        text = item.get("text") if isinstance(item, dict) else None
        match = re.search(capture.text or "", text) if isinstance(text, str) else None
        if match is not None:
            return match[1] if match.re.groups else match[0]
    return None
