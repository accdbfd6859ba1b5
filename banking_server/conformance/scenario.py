"""The two kinds of scenario files: how a server is exercised, and scripts for a mock server.

The formats are `specs/conformance/schemas/server-scenario.schema.json` and
`client-script.schema.json`; tests hold these models to them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from banking_server.conformance.era import Era
from banking_server.packaged import packaged

Json = dict[str, Any]
Kebab = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Name = Annotated[str, Field(min_length=1)]
Ordinal = Annotated[int, Field(ge=1)]
M = TypeVar("M", bound=BaseModel)
BOTH_ERAS = tuple(Era)


class ScenarioError(Exception):
    """A scenario file cannot be used; the message names the file, the place and the mistake."""


class _JsonLoader(yaml.SafeLoader):
    """YAML as JSON: a plain date stays text, since a tool's arguments have no dates."""


_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# How a server is exercised.


class ElicitationAnswer(_Strict):
    """What the user says to one question."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None
    value: Any = None
    """Short form of `content` for a form with one property."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if {"content", "value"} <= self.model_fields_set:
            raise ValueError("give either content or value, not both")
        return self

    def to_wire(self, requested_schema: Mapping[str, Any]) -> Json:
        """Return the result of the question whose form is `requested_schema`."""
        if self.action != "accept":
            return {"action": self.action}
        content = self.content or {}
        if "value" in self.model_fields_set:
            properties = requested_schema.get("properties")
            names = list(properties) if isinstance(properties, dict) else []
            content = dict.fromkeys(names[:1], self.value)
        return {"action": self.action, "content": content}


class Capture(_Strict):
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
                raise ValueError(f"text is no regular expression: {error}") from error
        return self


class StepExpectation(_Strict):
    """What a call should produce, so that the scenario reaches what it means to test."""

    next_tool: Name | Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None, alias="nextTool"
    )
    arguments: Json | None = None
    is_error: bool | None = Field(default=None, alias="isError")


class FollowUp(_Strict):
    """One follow-up call that may be made."""

    elicitation: Annotated[tuple[ElicitationAnswer, ...], Field(min_length=1)] | None = None
    capture: Mapping[str, Capture] = Field(default_factory=dict)
    expect: StepExpectation = StepExpectation()


class Step(_Strict):
    """One call, in the order of the file."""

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


class ServerScenario(_Strict):
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


# Scripts for a mock server.


class _Wire(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class ScriptTool(_Wire):
    """A tool of the mock server."""

    name: Name
    title: str | None = None
    description: str | None = None
    input_schema: Json
    annotations: Json | None = None
    meta: Json | None = Field(default=None, alias="_meta")
    listed_after_calls: int = Field(default=0, ge=0, alias="listed_after_calls")

    def to_wire(self) -> Json:
        """Return the tool as `tools/list` has it."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"listed_after_calls"})


class Elicit(_Wire):
    """A question to the user in the middle of a call."""

    key: Name
    message: str
    requested_schema: Json
    meta: Json | None = Field(default=None, alias="_meta")


class Round(_Strict):
    """What the mock server does with one round of a call: exactly one of the three."""

    result: Json | None = None
    elicit: Elicit | None = None
    error: Json | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("a round is one of result, elicit, error")
        return self


class ScriptAnswer(_Strict):
    """How calls of one tool are answered."""

    tool: Name
    arguments: Json | None = None
    until_call: Annotated[int, Field(ge=2)] | None = None
    rounds: Annotated[tuple[Round, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _questions_first(self) -> Self:
        if any(asked.elicit is None for asked in self.rounds[:-1]):
            raise ValueError("only the last round may be a result or an error")
        if self.rounds[-1].elicit is not None:
            raise ValueError("the last round must be a result or an error")
        return self


class ScriptCall(_Strict):
    """A call with its arguments."""

    tool: Name
    arguments: Json


class ScriptExpectation(_Strict):
    """What a conforming client does."""

    calls: Annotated[tuple[ScriptCall, ...], Field(min_length=1)]
    outcome: str | None = None
    content: list[Json] | None = None


Assert = Literal[
    "called",
    "arguments",
    "not_called",
    "calls_end",
    "call_count",
    "listed_again",
    "not_fetched",
    "declared",
    "settings_valid",
    "provenance_present",
    "provenance_well_formed",
    "provenance_one_chain_id",
    "provenance_new_chain_id",
    "provenance_level",
    "provenance_previous_tool",
    "printed_content",
    "printed_content_without",
    "printed_outcome",
]


class ScriptCheck(_Strict):
    """One judgement on a case; which members it needs depends on `assert`."""

    id: str
    kind: Assert = Field(alias="assert")
    witness: Ordinal
    """Number of the expected call that must have been made and answered."""
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)] = BOTH_ERAS
    call: Ordinal | None = None
    tool: Name | None = None
    arguments: Json | None = None
    at_most: Ordinal | None = None
    exactly: Ordinal | None = None
    other_server: Literal[True] | None = None
    after_call: Ordinal | None = None
    path: str | None = None
    place: Literal["requests", "initialize"] | None = Field(default=None, alias="in")
    text: str | None = None


class Case(_Strict):
    """One run of the client under test."""

    name: Kebab
    description: Name
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)] | None = None
    advertise: Json | None = None
    first_call: ScriptCall
    elicitation: Json | None = None
    result_meta: Mapping[str, Json] = Field(default_factory=dict)
    answers: tuple[ScriptAnswer, ...] = ()
    expect: ScriptExpectation
    checks: Annotated[tuple[ScriptCheck, ...], Field(min_length=1)]


class OtherServer(_Strict):
    """A second mock server, which a client must not confuse with the first."""

    tools: Annotated[tuple[ScriptTool, ...], Field(min_length=1)]
    answers: tuple[ScriptAnswer, ...] = ()


class ClientScript(_Strict):
    """A mock server, and what a conforming client does with it, in several cases."""

    scenario: Kebab
    description: Name
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)]
    requires_client: tuple[Literal["elicitation"], ...] = ()
    advertise: Json | None = None
    page_size: Ordinal | None = None
    tools: Annotated[tuple[ScriptTool, ...], Field(min_length=1)]
    other_server: OtherServer | None = None
    documents: Mapping[str, Json] = Field(default_factory=dict)
    answers: tuple[ScriptAnswer, ...] = ()
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    def eras_of(self, case: Case) -> tuple[Era, ...]:
        """Return the eras in which `case` is run."""
        return tuple(era for era in self.spec_versions if era in (case.spec_versions or Era))

    def advertised(self, case: Case) -> Json | None:
        """Return the settings that the mock server advertises in `case`, or None for none."""
        for part in (case, self):
            if "advertise" in part.model_fields_set:
                return part.advertise
        return {"version": 1}


def load_server_scenario(path: Path) -> ServerScenario:
    """Read a server scenario file. Raises ScenarioError."""
    return _load(path, ServerScenario)


def load_client_scripts() -> tuple[ClientScript, ...]:
    """Read the scripts for clients that come with the specification."""
    folder = packaged("specs") / "conformance" / "client"
    return tuple(_load(path, ClientScript) for path in sorted(folder.glob("*.yaml")))


def _load(path: Path, model: type[M]) -> M:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from error
    try:
        return model.model_validate(yaml.load(text, _JsonLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ScenarioError(f"{path}: {place or 'the file'}: {first['msg']}") from error
