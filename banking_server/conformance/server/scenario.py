"""Server scenarios: a file that says how one server is exercised.

`specs/conformance/schemas/server-scenario.schema.json` is made from these models (`publish`).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

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
from banking_server.conformance.target.elicitation import ElicitationAnswer

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class Capture(Strict):
    """A value that is kept from a result; `${name}` stands for it in later steps."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["pointer"]}, {"required": ["text"]}]}
    )

    pointer: Annotated[str, Field(pattern=r"^(/([^~/]|~[01])*)*$")] | None = None
    """JSON Pointer into the result, for example /structuredContent/transferId."""
    text: Name | None = None
    """Regular expression looked for in the text items in order; its first group is the value, or
    the whole match where it has none."""
    secret: bool = False
    """No directive of the run may contain the value, and reports redact it."""

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
    """The tool that the directive names; none: no directive; any: either, not looked at. A list:
    one of these, where none may be among them."""
    arguments: Json | None = None
    """Members that the directive's arguments contain with these values."""
    is_error: bool | None = Field(default=None, alias="isError")


class FollowUp(Strict):
    """One follow-up call that may be made."""

    elicitation: Several[ElicitationAnswer] | None = None
    capture: Mapping[VariableName, Capture] = Field(default_factory=dict)
    expect: StepExpectation = StepExpectation()


_REFUSED: Final[dict[str, Any]] = {
    "dependentSchemas": {
        "refused": {
            "required": ["repeatable"],
            "properties": {"repeatable": {"const": True}, "follow": False},
        }
    }
}


class Step(Strict):
    """One call; the steps of a file are made in its order."""

    model_config = ConfigDict(json_schema_extra=_REFUSED)

    id: Kebab
    description: str = ""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] | None = None
    """Wait before the call, for servers where something has to expire."""
    call: Name
    """Name of the tool."""
    arguments: Json = Field(default_factory=dict)
    """A whole value "${name}" is replaced by the captured value with its type, ${name} inside a
    longer text by its text."""
    meta: Json = Field(default_factory=dict)
    """Members of the request's _meta, besides those of the protocol."""
    elicitation: Several[ElicitationAnswer] | None = None
    """Answers to the elicitations of this call, in order. A step with this member is sent by a
    client that declares form elicitation, a step without it by one that does not."""
    capture: Mapping[VariableName, Capture] = Field(default_factory=dict)
    """Values kept from this result under a name."""
    expect: StepExpectation = StepExpectation()
    repeatable: bool = False
    """The call may be made again, in the same state, as often as checks need it: unchanged, as a
    client that did not declare the extension, with provenance, with malformed provenance, with
    settings from a later version."""
    refused: Literal[True] | None = None
    """The server refuses this caller this call (isError or a JSON-RPC error). Needs repeatable."""
    follow: Literal[True] | Several[FollowUp] | None = None
    """The directive's target may be called. true: follow to the end of the chain, at most ten
    calls. A list: one entry for each follow-up call; no more calls are made than entries."""

    @model_validator(mode="after")
    def _refused_is_repeatable(self) -> Self:
        if self.refused and not self.repeatable:
            raise ValueError("a refused step needs repeatable: true")
        if self.refused and self.follow is not None:
            raise ValueError("a refused step has nothing to follow")
        return self


class ServerScenario(Strict):
    """How one server is exercised."""

    name: Kebab
    description: Name
    spec_versions: Eras = BOTH_ERAS
    """Protocol revisions that the scenario applies to. Absent: both."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables that the server needs for this scenario. Set where the suite starts the
    server; with a URL, whoever starts the server sets them."""
    setup: tuple[Step, ...] = ()
    """Steps called first on every connection, such as signing in. Nothing is judged on them."""
    steps: Several[Step]

    @model_validator(mode="after")
    def _distinct_steps(self) -> Self:
        ids = [step.id for step in (*self.setup, *self.steps)]
        repeated = sorted({step_id for step_id in ids if ids.count(step_id) > 1})
        if repeated:
            raise ValueError(f"two steps have the id {repeated[0]!r}")
        return self


def load_server_scenario(path: Path) -> ServerScenario:
    """Read a server scenario file. Raises ScenarioError."""
    return load(path, ServerScenario)
