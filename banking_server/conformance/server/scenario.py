"""Server scenarios: a file that says how one server is exercised.

`specs/conformance/schemas/server-scenario.schema.json` is made from these models (`publish`).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from banking_server.conformance.scenario_file import (
    BOTH_ERAS,
    Eras,
    Json,
    Kebab,
    Name,
    Several,
    Strict,
    load,
)
from banking_server.conformance.server.references import references
from banking_server.conformance.target.elicitation import ElicitationAnswer

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class Value(Strict):
    """A value that the file gives a name; `${name}` stands for it in every step."""

    value: Any = None
    environment: Name | None = None
    """The environment variable that holds the value, read when the suite starts."""
    secret: bool | None = None
    """No directive may contain the value, and reports redact it. Absent: so it is with a value
    from the environment, and not with one that stands in the file. A secret of fewer than 4
    characters is redacted only where it stands as a word by itself, and a note says so."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if ("value" in self.model_fields_set) == (self.environment is not None):
            raise ValueError("give either value or environment")
        return self

    @property
    def is_secret(self) -> bool:
        """Whether no directive and no report may hold it."""
        return self.environment is not None if self.secret is None else self.secret


class Capture(Strict):
    """A value that is kept from a result; `${name}` stands for it in later steps."""

    pointer: Annotated[str, Field(pattern=r"^(/([^~/]|~[01])*)*$")] | None = None
    """JSON Pointer into the result, for example /structuredContent/transferId."""
    text: Name | None = None
    """Regular expression looked for in the text items in order; its first group is the value, or
    the whole match where it has none."""
    secret: bool = False
    """No directive of the run may contain the value, and reports redact it, as under `values`."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.pointer is None) == (self.text is None):
            raise ValueError("give either pointer or text")
        if self.text is not None:
            try:
                re.compile(self.text)
            except re.error as error:
                raise ValueError(f"text is not a regular expression: {error}") from error
        return self


class StepExpectation(Strict):
    """What a call has to bring for the scenario to reach what it means to test.

    Where it is not met, the checks of the step are untestable: it is no finding about the server.
    """

    next_tool: Name | Several[Name] | None = Field(default=None, alias="nextTool")
    """The tool that the directive names; none: no directive. A list: one of these, where none may
    be among them."""
    arguments: Json | None = None
    """Members that the directive's arguments contain with these values."""
    is_error: bool | None = Field(default=None, alias="isError")


class AnyCall(Strict):
    """What a file says of a call, be it that of a step or a follow-up call."""

    meta: Json = Field(default_factory=dict)
    """Members of the request's _meta, besides those of the protocol and of the caller."""
    elicitation: Several[ElicitationAnswer] | None = None
    """Answers to the elicitations of this call, in order. A step with this member, or with a
    follow-up call that has it, is made and followed by a client that declares form elicitation;
    any other step by one that does not."""
    capture: Mapping[VariableName, Capture] = Field(default_factory=dict)
    """Values kept from this result under a name."""
    expect: StepExpectation = StepExpectation()
    repeatable: bool = False
    """The call may be made again, in the same state, as often as checks need it. A step: unchanged,
    as a client that did not declare the extension, with provenance, with malformed provenance, with
    settings from a later version. A follow-up call: without provenance and with it. A difference is
    confirmed by more such calls."""


class FollowUp(AnyCall):
    """One follow-up call that may be made."""


class Step(AnyCall):
    """One call; the steps of a file are made in its order."""

    id: Kebab
    description: str = ""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] | None = None
    """Wait before the call, for servers where something has to expire."""
    caller: Kebab | None = None
    """Who calls: a name under `callers`. Absent: the scenario's own caller."""
    call: Name
    """Name of the tool."""
    arguments: Json = Field(default_factory=dict)
    """A whole value "${name}" is replaced by the value of that name with its type, ${name} inside
    a longer text by its text."""
    refused: Literal[True] | None = None
    """The server refuses this caller this call (isError, a JSON-RPC error, or HTTP 401 or 403).
    Needs repeatable. Another caller has to have made the very same call before, with success."""
    followed: Literal[True] | None = None
    """This server is an intermediary that follows the directive of this call by itself."""
    crosses: Literal[True] | None = None
    """This server is an intermediary of several servers. The one behind this call names, in a
    directive, a tool of another one."""
    follow: Literal[True] | Several[FollowUp] | None = None
    """The directive's target may be called. true: follow to the end of the chain, at most ten
    calls. A list: one entry for each follow-up call; no more calls are made than entries."""

    @field_validator("follow", mode="before")
    @classmethod
    def _true_or_a_list(cls, follow: object) -> object:
        if follow is None or follow is True or isinstance(follow, list | tuple):
            return follow
        raise ValueError("must be true, or a list of entries such as [{repeatable: true}, {}]")

    @property
    def follow_ups(self) -> Sequence[FollowUp]:
        """The follow-up calls that have an entry of their own."""
        return self.follow if isinstance(self.follow, tuple) else ()

    @property
    def elicits(self) -> bool:
        """Whether the client that makes and follows this step declares elicitation."""
        own = self.elicitation is not None
        return own or any(each.elicitation is not None for each in self.follow_ups)

    @property
    def is_silent_on_its_end(self) -> bool:
        """Whether nothing in the step says that it may end without a directive."""
        others = self.refused or self.followed or self.crosses or self.capture
        return not others and self.expect == StepExpectation()

    @model_validator(mode="after")
    def _refused_is_repeatable(self) -> Self:
        if self.refused and not self.repeatable:
            raise ValueError("a refused step needs repeatable: true")
        if self.refused and self.follow is not None:
            raise ValueError("a refused step has nothing to follow")
        return self


class Caller(Strict):
    """Somebody else who calls; nothing of what the scenario says of its own caller holds here."""

    meta: Json = Field(default_factory=dict)
    """Members of _meta that go with every request."""
    headers: Mapping[str, Name] = Field(default_factory=dict)
    """With a URL: for each HTTP header, the environment variable that holds its value."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Where the suite starts the server: variables that it is started with for this caller."""
    options: tuple[str, ...] = ()
    """Likewise: what is added to its command for this caller, where an option of the command wins
    over the environment."""
    setup: tuple[Step, ...] = ()
    """Steps called first on every connection of this caller."""


class ServerScenario(Strict):
    """How one server is exercised."""

    name: Kebab
    description: Name
    spec_versions: Eras = BOTH_ERAS
    """Protocol revisions that the scenario applies to. Absent: both."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables that the server needs for this scenario. Set where the suite starts the
    server; with a URL, whoever starts the server sets them."""
    intermediary: bool = False
    """The server passes on the tools of other servers, and may rename them."""
    values: Mapping[VariableName, Value] = Field(default_factory=dict)
    """Values under names, such as credentials from the environment."""
    meta: Json = Field(default_factory=dict)
    """Members of _meta that go with every request of the scenario's own caller. One whose
    `${name}` is captured in the set-up goes with every request after that."""
    callers: Mapping[Kebab, Caller] = Field(default_factory=dict)
    """Others who call, such as a stranger, each by a name."""
    setup: tuple[Step, ...] = ()
    """Steps called first on every connection, such as signing in. Nothing is judged on them."""
    steps: Several[Step]

    @model_validator(mode="after")
    def _distinct_steps(self) -> Self:
        setups = [self.setup, *(caller.setup for caller in self.callers.values())]
        ids = [step.id for steps in (*setups, self.steps) for step in steps]
        repeated = sorted({step_id for step_id in ids if ids.count(step_id) > 1})
        if repeated:
            raise ValueError(f"two steps have the id {repeated[0]!r}")
        return self

    @model_validator(mode="after")
    def _known_callers(self) -> Self:
        for step in self.steps:
            if step.caller is not None and step.caller not in self.callers:
                raise ValueError(
                    f"step {step.id}: there is no caller {step.caller!r}; "
                    f"there are {', '.join(self.callers) or 'none'} under callers"
                )
        return self

    @model_validator(mode="after")
    def _known_names(self) -> Self:
        """Every `${name}` stands for something that is there by then."""
        known = set(self.values)
        setups = [self.setup, *(caller.setup for caller in self.callers.values())]
        for step in (*(each for setup in setups for each in setup), *self.steps):
            known |= {name for part in (step, *step.follow_ups) for name in part.capture}
            _check_names(
                f"step {step.id}", step.model_dump(mode="json", exclude={"capture"}), known
            )
        _check_names("meta", [self.meta, *(each.meta for each in self.callers.values())], known)
        return self

    def caller(self, name: str | None) -> Caller:
        """Return a caller by name; without one that of the scenario itself."""
        if name is not None:
            return self.callers[name]
        return Caller(meta=self.meta, setup=self.setup)


def _check_names(place: str, value: Any, known: set[str]) -> None:
    for name in references(value):
        if name not in known:
            raise ValueError(
                f"{place}: nothing is called ${{{name}}} here; "
                f"known are {', '.join(sorted(known)) or 'no names'}"
            )


def load_server_scenario(path: Path) -> ServerScenario:
    """Read a server scenario file. Raises ScenarioError."""
    return load(path, ServerScenario)
