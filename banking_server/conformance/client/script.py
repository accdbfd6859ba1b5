"""Client scripts: a mock server, and what a conforming client does with it.

The format is `specs/conformance/schemas/client-script.schema.json`; tests hold these models to it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from banking_server.chaining.directive import SETTINGS
from banking_server.conformance.client import vectors
from banking_server.conformance.scenario_file import (
    BOTH_ERAS,
    Json,
    Kebab,
    Name,
    Ordinal,
    SentenceId,
    Several,
    SeveralDistinct,
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
    """It is listed only once so many calls were answered."""
    listed_until_calls: Ordinal | None = Field(default=None, alias="listed_until_calls")
    """It is listed only while fewer calls were answered."""

    def is_listed(self, answered: int) -> bool:
        """Say whether `tools/list` has it after so many calls were answered."""
        return self.listed_after_calls <= answered and (
            self.listed_until_calls is None or answered < self.listed_until_calls
        )

    def to_wire(self) -> Json:
        """Return the tool as `tools/list` has it."""
        return self.model_dump(
            by_alias=True,
            exclude_none=True,
            exclude={"listed_after_calls", "listed_until_calls"},
        )


class Elicit(_Wire):
    """A question to the user in the middle of a call."""

    key: Name
    message: str
    requested_schema: Json
    meta: Json | None = Field(default=None, alias="_meta")


class Round(Strict):
    """How the mock server answers one round of a call, in one of four ways."""

    result: Json | None = None
    elicit: Elicit | None = None
    error: Json | None = None
    broken: Literal["stream", "status"] | None = None
    """`stream`: it ends before the answer. `status`: the answer is HTTP 500."""
    meta_text: str | None = Field(default=None, alias="metaText")
    """The `_meta` of the result as it stands on the wire, for what YAML cannot write."""
    held: bool = False
    """The answer waits until the client gives the call up, or its patience is proven."""
    list_changed: bool = False
    """On 2025-11-25, `notifications/tools/list_changed` goes before the result."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set & {"result", "elicit", "error", "broken"}) != 1:
            raise ValueError("a round has exactly one of result, elicit, error and broken")
        if self.result is None and self.model_fields_set & {"meta_text", "held", "list_changed"}:
            raise ValueError("metaText, held and list_changed go with a result")
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
            raise ValueError("only the last round may be anything but a question")
        if self.rounds[-1].elicit is not None:
            raise ValueError("the last round must be no question")
        return self


class ScriptCall(Strict):
    """A call with its arguments."""

    tool: Name
    arguments: Json = Field(default_factory=dict)


def _optional(*names: str) -> ConfigDict:
    """Let members be left out in a file that `ClientScript` fills in before it is read."""

    def leave_out(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema.get("required", []) if name not in names]

    return ConfigDict(json_schema_extra=leave_out)


class ScriptExpectation(Strict):
    """What a conforming client does."""

    model_config = _optional("calls")

    calls: tuple[ScriptCall, ...]
    """The calls that it makes; none where its host keeps it from the first. Left out in a case
    that is a directive."""
    outcome: str | None = None
    """How it reports that the chain ended."""


Assert = Literal[
    "called",
    "arguments",
    "not_called",
    "calls_end",
    "call_count",
    "list_read_again",
    "authorization_kept",
    "ends_when_cancelled",
    "declared",
    "settings_valid",
    "provenance_present",
    "provenance_well_formed",
    "printed_content",
    "printed_without",
    "printed_outcome",
    "printed_one_result",
    "printed_is_error",
    "printed_structured_content",
    "printed_no_directive",
    "printed_follow_ups",
]


class Provided(Strict):
    """What another run of the client must have shown, for a check to be made."""

    case: Name
    """The other case, as `scenario/case`, in the same era."""
    calls: Annotated[int, Field(ge=0)] | None = None
    """So many calls were made there, and the client ended by itself."""
    gave_up: Ordinal | None = None
    """There the client gave up this call while its answer was held."""


_MEMBERS: Final = {
    "called": ({"call"}, {"call"}),
    "arguments": ({"call"}, {"call"}),
    "not_called": ({"tool"}, {"tool", "arguments", "at_most", "other_server"}),
    "call_count": (set[str](), {"at_most", "exactly"}),
    "declared": ({"in"}, {"in"}),
    "printed_without": ({"text"}, {"text"}),
}
"""The members that a check of a kind must have, and those that it may; other kinds have none."""
_ALL_MEMBERS: Final = {name for _, may in _MEMBERS.values() for name in may}


def _by_kind(schema: Json) -> None:
    """Say in the schema which members go with which kind."""
    rules: list[Json] = []
    for kind, (must, may) in _MEMBERS.items():
        then: Json = {"properties": dict.fromkeys(sorted(_ALL_MEMBERS - may), False)}
        if must:
            then["required"] = sorted(must)
        if kind == "call_count":
            then["oneOf"] = [{"required": [name]} for name in sorted(may)]
        rules.append({"if": {"properties": {"assert": {"const": kind}}}, "then": then})
    rules.append(
        {
            "if": {"properties": {"assert": {"enum": [*_MEMBERS]}}},
            "else": {"properties": dict.fromkeys(sorted(_ALL_MEMBERS), False)},
        }
    )
    schema["allOf"] = rules


class ScriptCheck(Strict):
    """One check that is made in a case; which members it has depends on its kind.

    The kinds, each under its word `assert`, are the functions of `client.checks`.
    """

    model_config = ConfigDict(json_schema_extra=_by_kind)

    id: str
    kind: Assert = Field(alias="assert")
    """The kinds are explained in conformance/README.md."""
    witness: Annotated[int, Field(ge=0)]
    """Number of the expected call that must have been made and answered."""
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)] = BOTH_ERAS
    provided: tuple[Provided, ...] = ()
    """What other runs must have shown; otherwise the check does not apply."""
    excused: tuple[Name, ...] = ()
    """Where it does not hold and the client printed one of these outcomes, it does not apply."""
    call: Ordinal | None = None
    """Number of an expected call."""
    tool: Name | None = None
    arguments: Json | None = None
    """Only calls with these arguments count."""
    at_most: Ordinal | None = None
    """So many calls are allowed. Absent: none."""
    exactly: Ordinal | None = None
    other_server: Literal[True] | None = None
    """Calls that the other server received count."""
    place: Literal["requests", "initialize"] | None = Field(default=None, alias="in")
    text: str | None = None

    @model_validator(mode="after")
    def _members_of_its_kind(self) -> Self:
        given = {"in" if name == "place" else name for name in self.model_fields_set}
        must, may = _MEMBERS.get(self.kind, (set[str](), set[str]()))
        if missing := sorted(must - given):
            raise ValueError(f"assert: {self.kind} needs {missing[0]}")
        if foreign := sorted((given & _ALL_MEMBERS) - may):
            raise ValueError(f"assert: {self.kind} has no {foreign[0]}")
        if self.kind == "call_count" and (self.exactly is None) == (self.at_most is None):
            raise ValueError("assert: call_count has either exactly or at_most")
        return self


class CaseContext(Strict):
    """What else the client is told in `MCP_CONFORMANCE_CONTEXT`."""

    consent: Literal["grant", "refuse"] = "grant"
    """What the user answers, whatever the client asks."""
    consent_by_tool: Mapping[Name, Literal["grant", "refuse"]] | None = Field(
        default=None, alias="consentByTool"
    )
    """What the user answers, in place of `consent`, when asked about a call of these tools."""
    first_call_by: Literal["user", "model"] | None = Field(default=None, alias="firstCallBy")
    """Who makes the first call; the host's policy for the model holds where it is the model."""
    denied_tools: tuple[Name, ...] | None = Field(default=None, alias="deniedTools")
    """Tools that the host does not let its model call."""
    trust_hints: Literal[False] | None = Field(default=None, alias="trustHints")
    """False: nobody said that the hints of the server are trusted."""
    timeout_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None, alias="timeoutSeconds"
    )
    """How long the chain may take, in seconds."""
    bearer_token: Name | None = Field(default=None, alias="bearerToken")
    """With which authorization the first call is made."""
    chains: Literal[2] | None = None
    """How often the first call is made in one session; each begins a chain."""
    progress: Literal[True] | None = None
    """The host asks for the progress of its calls."""
    cancel: Literal[True] | None = Field(default=None, exclude=True)
    """The user cancels: the client is told a `cancelUrl`."""


class Case(Strict):
    """One run of the client under test."""

    model_config = _optional("first_call", "expect")

    name: Kebab
    description: Name
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)] | None = None
    advertise: Any = None
    advertise_in: Literal["experimental", "extensions"] | None = None
    """Where alone it is advertised, in place of wherever the revision has it."""
    context: CaseContext = CaseContext()
    time_limit: Ordinal | None = None
    """After so many seconds the client is taken not to end by itself."""
    first_call: ScriptCall
    """Left out: that of the script."""
    elicitation: Json | None = None
    ttl_ms: Annotated[int, Field(ge=0)] = 600_000
    """On 2026-07-28: how long a client may use the tool list, in milliseconds."""
    result_meta: Mapping[str, Json] = Field(default_factory=dict)
    directive: Any = None
    """Short for a case in which the carrier's result has this directive."""
    followed: bool = False
    """Whether a conforming client follows `directive`."""
    answers: tuple[ScriptAnswer, ...] = ()
    expect: ScriptExpectation
    checks: tuple[ScriptCheck, ...] = ()
    """Empty in a case that is only evidence for the checks of another."""


class VectorCheck(Strict):
    """A check of the cases that are made from vectors."""

    reading: Literal["valid", "malformed", "absent"]
    """It is made where a reader makes this of the vector,"""
    cites: SentenceId | None = None
    """and where the vector cites this sentence, and none of an earlier check. Absent: always."""
    check: ScriptCheck


class VectorCases(Strict):
    """Cases made from vectors of `directives.json`: the carrier's result has their `_meta`."""

    ids: SeveralDistinct[Kebab]
    content: list[Json]
    """The content of that result."""
    checks: Several[VectorCheck]


class OtherServer(Strict):
    """A second mock server, which a client must not confuse with the first."""

    tools: Annotated[tuple[ScriptTool, ...], Field(min_length=1)]
    answers: tuple[ScriptAnswer, ...] = ()


class ClientScript(Strict):
    """A mock server, and what a conforming client does with it, in several cases."""

    model_config = _optional("cases")

    scenario: Kebab
    description: Name
    spec_versions: Annotated[tuple[Era, ...], Field(min_length=1)]
    requires_client: tuple[Literal["elicitation"], ...] = ()
    advertise: Any = None
    page_size: Ordinal | None = None
    tools: Annotated[tuple[ScriptTool, ...], Field(min_length=1)]
    other_server: OtherServer | None = None
    documents: Mapping[str, Json] = Field(default_factory=dict)
    first_call: ScriptCall | None = None
    """The first call of the cases that name none."""
    carrier: ScriptCall | None = None
    """The second call of the cases that are a `directive`, or made from vectors."""
    vectors: VectorCases | None = None
    """Cases that are not written out here; those of `cases` come after them."""
    answers: tuple[ScriptAnswer, ...] = ()
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, script: Any) -> Any:
        """Write out the cases that are a directive, and the first calls that are left out."""
        if not isinstance(script, dict) or not isinstance(script.get("cases", []), list):
            return script
        cases = [_expanded(case, script) for case in script.get("cases", [])]
        if "vectors" in script:
            template = _as_written(VectorCases.model_validate(script["vectors"]))
            first_call, carrier = (
                _as_written(ScriptCall.model_validate(script.get(name)))
                for name in ("first_call", "carrier")
            )
            cases = [*vectors.cases_of(template, first_call, carrier), *cases]
        return {**script, "cases": cases}

    def eras_of(self, case: Case) -> tuple[Era, ...]:
        """Return the eras in which `case` is run."""
        return tuple(era for era in self.spec_versions if era in (case.spec_versions or Era))

    def advertised(self, case: Case) -> Any:
        """Return the settings that the mock server advertises in `case`; None if it does not."""
        for part in (case, self):
            if "advertise" in part.model_fields_set:
                return part.advertise
        return SETTINGS


def _as_written(part: Strict) -> Json:
    return part.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _expanded(case: Any, script: Json) -> Any:
    if not isinstance(case, dict):
        return case
    if "first_call" not in case and "first_call" in script:
        case = {**case, "first_call": script["first_call"]}
    if "directive" not in case or not isinstance(script.get("carrier"), dict):
        return case
    directive, carrier, expect = case["directive"], script["carrier"], case.get("expect", {})
    result = {
        "content": [{"type": "text", "text": "Here is what comes next."}],
        "_meta": {"nextTool": directive},
    }
    calls = [case.get("first_call"), carrier]
    if case.get("followed"):
        calls.append({key: directive[key] for key in ("tool", "arguments") if key in directive})
    return {
        **case,
        "answers": [
            {"tool": carrier.get("tool"), "rounds": [{"result": result}]},
            *case.get("answers", []),
        ],
        "expect": {"calls": calls, **expect} if isinstance(expect, dict) else expect,
    }


@cache
def load_client_scripts() -> tuple[ClientScript, ...]:
    """Read the scripts for clients that come with the specification."""
    folder = packaged("specs") / "conformance" / "client"
    return tuple(load(path, ClientScript, own=True) for path in sorted(folder.glob("*.yaml")))
