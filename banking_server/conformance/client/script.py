"""Client scripts: a mock server, and what a conforming client does with it.

The format is `specs/conformance/schemas/client-script.schema.json`; tests hold these models to it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from banking_server.chaining.directive import SETTINGS
from banking_server.conformance.scenario_file import (
    BOTH_ERAS,
    Json,
    Kebab,
    Name,
    Ordinal,
    Strict,
    load,
)
from banking_server.conformance.target.era import Era
from banking_server.packaged import packaged


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


class Round(Strict):
    """How the mock server answers one round of a call, in one of three ways."""

    result: Json | None = None
    elicit: Elicit | None = None
    error: Json | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("a round has exactly one of result, elicit and error")
        return self


class ScriptAnswer(Strict):
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


class ScriptCall(Strict):
    """A call with its arguments."""

    tool: Name
    arguments: Json


class ScriptExpectation(Strict):
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


class ScriptCheck(Strict):
    """One check that is made in a case; which members it has depends on its kind.

    The kinds, each under its word `assert`, are the functions of `client.checks`.
    """

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
    path: str | None = None
    place: Literal["requests", "initialize"] | None = Field(default=None, alias="in")
    text: str | None = None


class Case(Strict):
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


class OtherServer(Strict):
    """A second mock server, which a client must not confuse with the first."""

    tools: Annotated[tuple[ScriptTool, ...], Field(min_length=1)]
    answers: tuple[ScriptAnswer, ...] = ()


class ClientScript(Strict):
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
        """Return the settings that the mock server advertises in `case`; None if it does not."""
        for part in (case, self):
            if "advertise" in part.model_fields_set:
                return part.advertise
        return SETTINGS


@cache
def load_client_scripts() -> tuple[ClientScript, ...]:
    """Read the scripts for clients that come with the specification."""
    folder = packaged("specs") / "conformance" / "client"
    return tuple(load(path, ClientScript) for path in sorted(folder.glob("*.yaml")))
