"""Server scenarios: a file that says how to exercise one server.

The format is `specs/conformance/schemas/server-scenario.schema.json`; a test compares the two.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.scenario_file import Kebab, Name, Several, Strict, load
from tool_chaining_conformance.server.references import references
from tool_chaining_conformance.target.elicitation import ElicitationAnswer

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class Value(Strict):
    """A named value. Every step can use it as `${name}`."""

    value: Any = None
    environment: Name | None = None
    """The environment variable that holds the value, read when the suite starts."""
    secret: bool | None = None
    """Reports redact the value. The default is true for a value from the environment, and false for
    a value in the file. A secret of fewer than 4 characters is redacted only as a whole word."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if ("value" in self.model_fields_set) == (self.environment is not None):
            raise ValueError("give either value or environment")
        return self

    @property
    def is_secret(self) -> bool:
        """Whether no report may contain it."""
        return self.environment is not None if self.secret is None else self.secret


class Capture(Strict):
    """A value from a result. Later steps can use it as `${name}`."""

    pointer: Annotated[str, Field(pattern=r"^(/([^~/]|~[01])*)*$")] | None = None
    """JSON Pointer into the result, for example /structuredContent/transferId."""
    text: Name | None = None
    """Regular expression to search for in the text items, in their order. Its first group is the
    value; without a group, the whole match is."""
    secret: bool = False
    """Reports redact the value, as under `values`."""

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
    """What a call must return. Otherwise the scenario does not reach what it tests.

    If it is not met, the checks of the step are untestable. It is not a violation by the server.
    """

    next_tool: Name | Several[Name] | None = Field(default=None, alias="nextTool")
    """Name of the tool in the directive; `none`: there is no directive. A list: one of these, and
    `none` may be one of them."""
    arguments: Json | None = None
    """Members that the arguments of the directive must have, with these values."""
    is_error: bool | None = Field(default=None, alias="isError")
    chain: Several[Name] | None = None
    """The tools of all follow-up calls, in order. Needs `follow`."""


class AnyCall(Strict):
    """The members that a step and a follow-up call have in common."""

    elicitation: Several[ElicitationAnswer] | None = None
    """Answers to the elicitations of this call, in order. If a step or one of its follow-up calls
    has this member, the client declares form elicitation for the whole chain. Otherwise it does
    not."""
    capture: Mapping[VariableName, Capture] = Field(default_factory=dict)
    """Values that are taken from this result, each under a name."""
    expect: StepExpectation = StepExpectation()
    repeatable: bool = False
    """The call may be made again as often as the checks need it, and always has the same result. A
    step is repeated unchanged, by a client that did not declare the extension, with provenance,
    with malformed provenance, and with settings of a later version. A follow-up call is repeated
    without provenance and with it. More such calls confirm a difference."""


class FollowUp(AnyCall):
    """One follow-up call that may be made."""


class Step(AnyCall):
    """One call. The steps are made in the order of the file."""

    id: Kebab
    description: str = ""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] | None = None
    """Seconds to wait before the call, for example until something expires."""
    caller: Kebab | None = None
    """Who makes the call: a name under `callers`. Absent: the scenario's own caller."""
    call: Name
    """Name of the tool."""
    arguments: Json = Field(default_factory=dict)
    """A value that is only "${name}" becomes the value of that name, with its type. Inside a longer
    text, ${name} becomes that value as text."""
    refused: Literal[True] | None = None
    """The server refuses this call to this caller (isError, a JSON-RPC error, HTTP 401 or 403).
    Needs repeatable, and an earlier step in which the same call succeeds for another caller."""
    followed: Literal[True] | None = None
    """This server is an intermediary that follows the chain of this call to its end by itself."""
    withheld: Literal[True] | None = None
    """This server is an intermediary that may not hand on the directive of this call: in its list
    the name is a tool of another server, or the server behind it does not advertise."""
    follow: Literal[True] | Several[FollowUp] | None = None
    """The tool that the directive names may be called. true: the chain is followed to its end, with
    at most ten follow-up calls. A list: one entry for each follow-up call that may be made."""

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
    def has_no_expectation(self) -> bool:
        """Whether the step does not say how its call ends. Then a directive is expected."""
        others = self.refused or self.followed or self.withheld or self.capture
        return not others and self.expect == StepExpectation()

    @model_validator(mode="after")
    def _refused_is_repeatable(self) -> Self:
        if self.refused and not self.repeatable:
            raise ValueError("a refused step needs repeatable: true")
        if self.refused and self.follow is not None:
            raise ValueError("a refused step has nothing to follow")
        if self.expect.chain is not None and self.follow is None:
            raise ValueError("expect.chain needs follow: true, or a list")
        return self


class Caller(Strict):
    """Another caller. The members of the scenario's own caller do not apply to this one."""

    meta: Json = Field(default_factory=dict)
    """Members of _meta in every request."""
    headers: Mapping[str, Name] = Field(default_factory=dict)
    """With a URL: for each HTTP header, the environment variable that holds its value."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the server that the suite starts for this caller."""
    options: tuple[str, ...] = ()
    """Options that the suite adds to the command when it starts the server for this caller: for a
    server that prefers its options to its environment."""
    setup: tuple[Step, ...] = ()
    """Steps that are made first on every connection of this caller."""


class ServerScenario(Strict):
    """How to exercise one server."""

    name: Kebab
    description: Name
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables that the server needs for this scenario. The suite sets them when it
    starts the server. With a URL, whoever starts the server sets them."""
    intermediary: bool = False
    """The server passes on the tools of other servers, and may rename them."""
    values: Mapping[VariableName, Value] = Field(default_factory=dict)
    """Named values, such as credentials from the environment."""
    meta: Json = Field(default_factory=dict)
    """Members of _meta in every request of the scenario's own caller. If the set-up captures the
    `${name}` of a member, the member is in every request after that."""
    callers: Mapping[Kebab, Caller] = Field(default_factory=dict)
    """Other callers, such as one without access, each under a name."""
    setup: tuple[Step, ...] = ()
    """Steps that are made first on every connection, such as a login. They are not judged."""
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
                    f"callers has {', '.join(self.callers) or 'none'}"
                )
        return self

    @model_validator(mode="after")
    def _known_names(self) -> Self:
        """Every `${name}` has a value before the step that uses it."""
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
        """Return the caller with this name; for None the scenario's own."""
        if name is not None:
            return self.callers[name]
        return Caller(meta=self.meta, setup=self.setup)


PASSIVE: Final = ServerScenario.model_construct(name="passive", description="", steps=())
"""What is played if the user gave no scenario: no tool is called."""


def _check_names(place: str, value: Any, known: set[str]) -> None:
    for name in references(value):
        if name not in known:
            raise ValueError(
                f"{place}: no value has the name ${{{name}}} here; "
                f"known: {', '.join(sorted(known)) or 'none'}"
            )


def load_server_scenario(path: Path) -> ServerScenario:
    """Read a server scenario file. Raises ScenarioError."""
    return load(path, ServerScenario)
