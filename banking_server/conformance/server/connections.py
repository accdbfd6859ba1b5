"""The connections of one exercise: for each caller, signed in as the scenario says."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from banking_server.chaining.directive import IDENTIFIER, SETTINGS
from banking_server.conformance.message import Json
from banking_server.conformance.server.expectation import unmet
from banking_server.conformance.server.reading import ending
from banking_server.conformance.server.references import filled, references
from banking_server.conformance.server.scenario import ServerScenario
from banking_server.conformance.server.values import Values
from banking_server.conformance.server.variants import Absent
from banking_server.conformance.target.channel import NotServed, Target
from banking_server.conformance.target.connection import (
    Connection,
    Profile,
    Reply,
    ToolCall,
    connect,
)
from banking_server.conformance.target.elicitation import ElicitationAnswer
from banking_server.conformance.target.era import Era

Key = tuple[str | None, str, bool]


@dataclass(frozen=True)
class Calling:
    """Who makes a call, and as what kind of client."""

    profile: Profile = field(default_factory=Profile)
    caller: str | None = None
    """A caller of the scenario; None: the scenario's own."""
    second: bool = False
    """On a second connection of the same kind."""

    @property
    def is_ordinary(self) -> bool:
        """Whether it is the scenario's own caller, who declares the extension as everybody does."""
        declares = (self.profile.settings, self.profile.place) == (SETTINGS, "extensions")
        return self.caller is None and declares


@dataclass
class _Open:
    connection: Connection
    captured: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its set-up captured."""


def connection_of(era: Era, calling: Calling) -> Key:
    """Return what tells the connection of a call from others.

    From 2026-07-28 on, requests carry the capabilities: one connection serves all profiles.
    """
    profile = json.dumps(calling.profile.capabilities()) if era is Era.LEGACY else ""
    return calling.caller, profile, calling.second


class Connections:
    """Opens a connection when it is needed, and makes the set-up steps on it."""

    def __init__(
        self,
        target: Target,
        headers: Mapping[str, Mapping[str, str]],
        scenario: ServerScenario | None,
        era: Era,
        values: Values,
        problem: Callable[[str], None],
    ) -> None:
        """
        Args:
            target: The server, as the scenario's own caller reaches it.
            headers: The headers of each other caller.
            scenario: Who calls, and how each signs in; None: nobody does.
            era: The era that is spoken.
            values: What `${name}` stands for.
            problem: Takes what went wrong, in words.
        """
        self._target = target
        self._headers = headers
        self._scenario = scenario
        self._era = era
        self._values = values
        self._problem = problem
        self._open: dict[Key, _Open] = {}
        self._ready: set[Key] = set()
        """Those whose set-up was made."""

    def close(self) -> None:
        """Close every connection."""
        if self._open:
            # All at once: a server over stdio may take its time to end.
            with ThreadPoolExecutor(len(self._open)) as pool:
                list(pool.map(lambda each: each.connection.close(), self._open.values()))

    def first(self) -> Connection:
        """Open the era. Raises TargetFailure if the server does not speak it."""
        calling = Calling()
        opened = self._open[connection_of(self._era, calling)] = _Open(
            connect(self._target, self._era, Profile(), meta=self._meta(None, {}))
        )
        return opened.connection

    def to(self, calling: Calling) -> Connection:
        """Return the connection for a call. Raises TargetFailure."""
        return self._opened(calling).connection

    def known(self, calling: Calling) -> dict[str, Any]:
        """Return every value that may stand in the place of a `${name}` for this caller."""
        try:
            captured = self._opened(calling).captured
        except NotServed:
            if calling.is_ordinary:
                raise
            captured = {}
        return {**self._values.named, **captured}

    def _opened(self, calling: Calling) -> _Open:
        key = connection_of(self._era, calling)
        opened = self._open.get(key)
        if opened is None:
            opened = self._open[key] = _Open(
                connect(
                    self._target_of(calling.caller),
                    self._era,
                    calling.profile,
                    meta=self._meta(calling.caller, {}),
                    greet=calling.caller is None,
                )
            )
        if key not in self._ready:
            self._set_up(opened, calling)
            self._ready.add(key)
        return opened

    def _target_of(self, caller: str | None) -> Target:
        if caller is None or self._scenario is None:
            return self._target
        told = self._scenario.callers[caller]
        return replace(
            self._target,
            command=(*self._target.command, *told.options) if self._target.command else (),
            headers=self._headers[caller],
            environment={**self._target.environment, **told.environment},
        )

    def _meta(self, caller: str | None, captured: Mapping[str, Any]) -> Json:
        """Return what goes with every request: without what is not captured yet."""
        if self._scenario is None:
            return {}
        known = {**self._values.named, **captured}
        return {
            name: filled(value, known)
            for name, value in self._scenario.caller(caller).meta.items()
            if all(reference in known for reference in references(value))
        }

    def _set_up(self, opened: _Open, calling: Calling) -> None:
        """Make the set-up steps of the caller, which are not judged."""
        for step in self._scenario.caller(calling.caller).setup if self._scenario else ():
            values = {**self._values.named, **opened.captured}
            call = opened.connection.call_tool(
                step.call,
                filled(step.arguments, values),
                meta=filled(step.meta, values),
                answers=answers(step.elicitation, values),
                profile=replace(calling.profile, elicitation=step.elicitation is not None),
            )
            found, absent = self._values.captured(step.capture, call)
            for name in absent:
                self._problem(f"step {step.id}: nothing to capture as {name!r}: {ending(call)}")
            opened.captured |= found
            opened.connection.standing_meta = self._meta(calling.caller, opened.captured)
            fault = unmet(step.expect, call, {**values, **opened.captured})
            if fault is not None:
                raise NotServed(f"set-up step {step.id}: {fault}", None)

    def call(
        self,
        calling: Calling,
        tool: str,
        arguments: Json,
        *,
        meta: Json,
        elicitation: Sequence[ElicitationAnswer] | None,
        provenance: Any = Absent.ABSENT,
    ) -> ToolCall:
        """Call a tool. `meta` and the answers may hold `${name}`. Raises TargetFailure.

        A caller or a kind of client that is refused before any call counts as refused this one.
        """
        try:
            connection = self.to(calling)
            values = self.known(calling)
            own = filled(meta, values)
            if provenance is not Absent.ABSENT:
                own = {**own, IDENTIFIER: provenance}
            return connection.call_tool(
                tool,
                arguments,
                meta=own,
                answers=answers(elicitation, values),
                profile=calling.profile,
            )
        except NotServed as refusal:
            if calling.is_ordinary:
                raise
            error = {"code": refusal.code, "message": str(refusal)}
            return ToolCall(tool, arguments, (Reply(None, error, ()),))


def answers(
    given: Sequence[ElicitationAnswer] | None, values: Mapping[str, Any]
) -> list[ElicitationAnswer]:
    """Return the answers of a step, with values in the place of `${name}`."""
    return [
        ElicitationAnswer.model_validate(filled(each.model_dump(exclude_unset=True), values))
        for each in given or ()
    ]
