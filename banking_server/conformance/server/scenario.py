"""Server scenarios: a file that says how one server is exercised.

The format is `specs/conformance/schemas/server-scenario.schema.json`; tests hold these
models to it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from banking_server.conformance.scenario_file import BOTH_ERAS, Json, Kebab, Name, Strict, load
from banking_server.conformance.target.elicitation import ElicitationAnswer
from banking_server.conformance.target.era import Era


class Capture(Strict):
    """A value that is kept from a result."""

    pointer: Annotated[str, Field(pattern=r"^(/([^~/]|~[01])*)*$")] | None = None
    text: Name | None = None
    secret: bool = False

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
    """What a call has to bring for the scenario to reach what it means to test."""

    next_tool: Name | Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None, alias="nextTool"
    )
    arguments: Json | None = None
    is_error: bool | None = Field(default=None, alias="isError")


class FollowUp(Strict):
    """One follow-up call that may be made."""

    elicitation: Annotated[tuple[ElicitationAnswer, ...], Field(min_length=1)] | None = None
    capture: Mapping[str, Capture] = Field(default_factory=dict)
    expect: StepExpectation = StepExpectation()


class Step(Strict):
    """One call; the steps of a file are made in its order."""

    id: Kebab
    description: str = ""
    wait_seconds: Annotated[float, Field(gt=0, le=60)] | None = None
    call: Name
    arguments: Json = Field(default_factory=dict)
    meta: Json = Field(default_factory=dict)
    elicitation: Annotated[tuple[ElicitationAnswer, ...], Field(min_length=1)] | None = None
    capture: Mapping[str, Capture] = Field(default_factory=dict)
    expect: StepExpectation = StepExpectation()
    repeatable: bool = False
    refused: Literal[True] | None = None
    follow: Literal[True] | Annotated[tuple[FollowUp, ...], Field(min_length=1)] | None = None

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
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)] = BOTH_ERAS
    environment: Mapping[str, str] = Field(default_factory=dict)
    setup: tuple[Step, ...] = ()
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]

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
