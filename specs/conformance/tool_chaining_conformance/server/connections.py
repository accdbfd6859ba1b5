"""The connections of one exercise. Each caller signs in as the scenario says."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.server.expectation import unmet
from tool_chaining_conformance.server.references import filled, references
from tool_chaining_conformance.server.scenario import AnyCall, ServerScenario
from tool_chaining_conformance.server.values import Values
from tool_chaining_conformance.server.ways import ABSENT
from tool_chaining_conformance.target.channel import NotServed, Target
from tool_chaining_conformance.target.connection import (
    ORDINARY,
    Connection,
    Profile,
    Reply,
    ToolCall,
    connect,
)
from tool_chaining_conformance.target.elicitation import ElicitationAnswer
from tool_chaining_conformance.target.era import Era

Key = tuple[str | None, str, bool]


@dataclass(frozen=True)
class Calling:
    """The caller of a call, and the kind of client."""

    profile: Profile = field(default_factory=Profile)
    caller: str | None = None
    """A caller of the scenario; None: the scenario's own."""
    second: bool = False
    """On a second connection of the same kind."""
    anew: bool = False
    """On a connection whose first request declares the same."""

    @property
    def is_ordinary(self) -> bool:
        """Whether it is the scenario's own caller, with the usual declaration."""
        return self.caller is None and self.profile.declares == ORDINARY


@dataclass
class _Open:
    connection: Connection
    ready: bool = False
    """Whether the set-up was made."""
    captured: dict[str, Any] = field(default_factory=dict[str, Any])
    """The values that the set-up captured."""


def connection_of(era: Era, calling: Calling) -> Key:
    """Return the key of the connection for a call.

    From 2026-07-28 on, requests carry the capabilities: one connection serves all profiles,
    except for a client that is to have one of its own.
    """
    apart = era is Era.LEGACY or calling.anew
    profile = json.dumps(calling.profile.capabilities()) if apart else ""
    return calling.caller, profile, calling.second


class Connections:
    """Opens a connection when it is needed, and makes the set-up steps on it."""

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario,
        era: Era,
        values: Values,
    ) -> None:
        """
        Args:
            target: The server, for the scenario's own caller.
            scenario: The callers and their set-up.
            era: The protocol era.
            values: The values of each `${name}`, and the headers of each other caller.
        """
        self._target = target
        self._scenario = scenario
        self._era = era
        self._values = values
        self._open: dict[Key, _Open] = {}

    def close(self) -> None:
        """Close every connection."""
        if self._open:
            # All at once, since a server over stdio may be slow to end.
            with ThreadPoolExecutor(len(self._open)) as pool:
                list(pool.map(lambda each: each.connection.close(), self._open.values()))

    def first(self) -> Connection:
        """Open a first connection. Raises TargetFailure if the server does not support the era."""
        return self._connected(Calling()).connection

    def to(self, calling: Calling) -> Connection:
        """Return the connection for a call. Raises TargetFailure."""
        return self._ready(calling).connection

    def new_errors(self, calling: Calling) -> str:
        """Return the standard error of a call's server since the last call of this method."""
        opened = self._open.get(connection_of(self._era, calling))
        return "" if opened is None else opened.connection.new_errors()

    def known(self, calling: Calling) -> dict[str, Any]:
        """Return the values of each `${name}` for this caller."""
        try:
            captured = self._ready(calling).captured
        except NotServed:
            if calling.is_ordinary:
                raise
            captured = {}
        return {**self._values.named, **captured}

    def _connected(self, calling: Calling) -> _Open:
        key = connection_of(self._era, calling)
        if key not in self._open:
            self._open[key] = _Open(
                connect(
                    self._target_of(calling.caller),
                    self._era,
                    calling.profile,
                    meta=self._meta(calling.caller, {}),
                )
            )
        return self._open[key]

    def _ready(self, calling: Calling) -> _Open:
        opened = self._connected(calling)
        if not opened.ready:
            self._set_up(opened, calling)
            opened.ready = True
        return opened

    def _target_of(self, caller: str | None) -> Target:
        if caller is None:
            return self._target
        other = self._scenario.callers[caller]
        return replace(
            self._target,
            command=(*self._target.command, *other.options) if self._target.command else (),
            headers=self._values.headers.get(caller, {}),
            environment={**self._target.environment, **other.environment},
        )

    def _meta(self, caller: str | None, captured: Mapping[str, Any]) -> Json:
        """Return the `_meta` of every request, without values that are not captured yet."""
        known = {**self._values.named, **captured}
        return {
            name: filled(value, known)
            for name, value in self._scenario.caller(caller).meta.items()
            if all(reference in known for reference in references(value))
        }

    def _set_up(self, opened: _Open, calling: Calling) -> None:
        """Make the set-up steps of the caller, which are not judged."""
        for step in self._scenario.caller(calling.caller).setup:
            values = {**self._values.named, **opened.captured}
            profile = replace(calling.profile, elicitation=step.elicitation is not None)
            arguments = filled(step.arguments, values)
            call = _called(opened.connection, step, profile, step.call, arguments, values)
            opened.captured |= self._values.captured(step.id, step.capture, call)
            opened.connection.standing_meta = self._meta(calling.caller, opened.captured)
            fault = unmet(step, call, {**values, **opened.captured})
            if fault is not None:
                raise NotServed(f"set-up step {step.id}: {fault}", None)

    def call(
        self,
        part: AnyCall,
        calling: Calling,
        tool: str,
        arguments: Json,
        provenance: Any = ABSENT,
    ) -> ToolCall:
        """Call a tool, as a part of the scenario says. Raises TargetFailure.

        If the server refuses the connection, that counts as a refusal of this call.
        """
        try:
            connection, values = self.to(calling), self.known(calling)
            return _called(connection, part, calling.profile, tool, arguments, values, provenance)
        except NotServed as refusal:
            if calling.is_ordinary:
                raise
            error = {"code": refusal.code, "message": str(refusal)}
            return ToolCall(tool, arguments, (Reply(None, error, ()),))


def _called(
    connection: Connection,
    part: AnyCall,
    profile: Profile,
    tool: str,
    arguments: Json,
    values: Mapping[str, Any],
    provenance: Any = ABSENT,
) -> ToolCall:
    meta = {} if provenance is ABSENT else {IDENTIFIER: provenance}
    answers = [
        ElicitationAnswer.model_validate(filled(each.model_dump(exclude_unset=True), values))
        for each in part.elicitation or ()
    ]
    return connection.call_tool(tool, arguments, meta=meta, answers=answers, profile=profile)
