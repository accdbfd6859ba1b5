"""Client scripts: a mock server, and what a conforming client does with it.

The format is `specs/conformance/schemas/client-script.schema.json`; tests hold these models to it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from banking_server.chaining.directive import SETTINGS
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
)
from banking_server.conformance.server.references import filled
from banking_server.conformance.specification import read_text, read_yaml
from banking_server.conformance.target.era import Era
from banking_server.packaged import packaged

LONG_TEXT: Final = "".join(f"Paragraph {number} of a long text.\n" for number in range(1, 401))
"""What `${long}` in a script stands for: about 12,000 characters."""


class ScriptTool(BaseModel):
    """A tool of the mock server; what is not explained here is as `tools/list` has it."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    name: Name
    listed_after_calls: int = Field(default=0, ge=0)
    """It is listed only once so many calls were answered."""
    listed_until_calls: Ordinal | None = None
    """It is listed only while fewer calls were answered."""

    def is_listed(self, answered: int) -> bool:
        """Say whether `tools/list` has it after so many calls were answered."""
        return self.listed_after_calls <= answered and (
            self.listed_until_calls is None or answered < self.listed_until_calls
        )

    def to_wire(self) -> Json:
        """Return the tool as `tools/list` has it."""
        return self.model_dump(exclude={"listed_after_calls", "listed_until_calls"})


class Elicit(Strict):
    """A question to the user in the middle of a call."""

    key: Name
    message: str
    requested_schema: Json = Field(alias="requestedSchema")
    meta: Json | None = Field(default=None, alias="_meta")


class Round(Strict):
    """How the mock server answers one round of a call: by a result, a question, an error, or not.

    It has one of the first four members.
    """

    result: Json | None = None
    elicit: Elicit | None = None
    error: Json | None = None
    broken: Literal["stream", "status"] | None = None
    """`stream`: it ends before the answer. `status`: the answer is HTTP 500."""
    meta_text: str | None = Field(default=None, alias="metaText")
    """The `_meta` of the result as it stands on the wire, for what YAML cannot write."""
    held: bool = False
    """The user cancels when the call arrives, and the answer waits until the client gives it up;
    for cases with `cancel: true`."""


class ScriptAnswer(Strict):
    """How calls of one tool are answered."""

    tool: Name
    arguments: Json | None = None
    until_call: Annotated[int, Field(ge=2)] | None = None
    rounds: Several[Round]
    """The last one is no question; all others are."""


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


class Provided(Strict):
    """What another run of the client must have shown, for a check to be made."""

    case: Name
    """The other case, as `scenario/case`, in the same era."""
    calls: Annotated[int, Field(ge=0)]
    """So many calls were made there, and the client ended by itself."""


class ScriptCheck(Strict):
    """One check that is made in a case; which members it has depends on its kind.

    The kinds, each under its word `assert`, are the functions of `client.checks`.
    """

    id: str
    kind: Name = Field(alias="assert")
    """A word under which `client.checks` registers a kind; conformance/README.md explains them."""
    witness: Annotated[int, Field(ge=0)]
    """Number of the expected call that must have been made and answered."""
    spec_versions: Several[Era] = BOTH_ERAS
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


Consent = Literal["grant", "refuse"]
Place = Literal["experimental", "extensions"]


class CaseContext(Strict):
    """What else the client is told in `MCP_CONFORMANCE_CONTEXT`."""

    consent: Consent = "grant"
    """What the user answers, whatever the client asks."""
    consent_by_tool: Mapping[Name, Consent | Several[Consent]] | None = Field(
        default=None, alias="consentByTool"
    )
    """What the user answers, in place of `consent`, when asked about a call of these tools. A
    list: to the first question, to the second, and so on; its last answer holds for the rest."""
    first_call_by: Literal["user", "model"] | None = Field(default=None, alias="firstCallBy")
    """Who makes the first call; the host's policy for the model holds where it is the model."""
    denied_tools: tuple[Name, ...] | None = Field(default=None, alias="deniedTools")
    """Tools that the host does not let its model call."""
    trust_hints: Literal[False] | None = Field(default=None, alias="trustHints")
    """False: nobody said that the hints of the server are trusted."""
    bearer_token: Name | None = Field(default=None, alias="bearerToken")
    """With which authorization the first call is made."""
    chains: Literal[2] | None = None
    """How often the first call is made in one session; each begins a chain."""
    cancel: Literal[True] | None = Field(default=None, exclude=True)
    """The user cancels: the client is told a `cancelUrl`."""


class Case(Strict):
    """One run of the client under test."""

    model_config = _optional("first_call", "expect")

    name: Kebab
    description: Name
    spec_versions: Several[Era] | None = None
    advertise: Any = None
    advertise_in: Mapping[Place, Any] | None = None
    """The settings that are advertised in each place, in place of wherever the revision has
    them."""
    context: CaseContext = CaseContext()
    first_call: ScriptCall
    """Left out: that of the script."""
    elicitation: Json | None = None
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

    tools: Several[ScriptTool]
    answers: tuple[ScriptAnswer, ...] = ()


class ClientScript(Strict):
    """A mock server, and what a conforming client does with it, in several cases."""

    model_config = _optional("cases")

    scenario: Kebab
    description: Name
    spec_versions: Several[Era]
    requires_client: tuple[Literal["elicitation"], ...] = ()
    advertise: Any = None
    page_size: Ordinal | None = None
    tools: Several[ScriptTool]
    other_server: OtherServer | None = None
    first_call: ScriptCall | None = None
    """The first call of the cases that name none."""
    carrier: ScriptCall | None = None
    """The second call of the cases that are a `directive`, or made from vectors."""
    vectors: VectorCases | None = None
    """Cases that are not written out here; those of `cases` come after them."""
    answers: tuple[ScriptAnswer, ...] = ()
    cases: Several[Case]

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, script: Any) -> Any:
        """Write out the cases that are a directive, and the first calls that are left out."""
        script = filled(script, {"long": LONG_TEXT})
        if not isinstance(script, dict) or not isinstance(script.get("cases", []), list):
            return script
        cases = [_expanded(case, script) for case in script.get("cases", [])]
        if "vectors" in script:
            template = VectorCases.model_validate(script["vectors"])
            first_call, carrier = (
                _as_written(ScriptCall.model_validate(script.get(name)))
                for name in ("first_call", "carrier")
            )
            cases = [*_cases_of(template, first_call, carrier), *cases]
        return {**script, "cases": cases}

    def eras_of(self, case: Case) -> tuple[Era, ...]:
        """Return the eras in which `case` is run."""
        return tuple(era for era in self.spec_versions if era in (case.spec_versions or Era))

    def advertised(self, case: Case, places: Sequence[Place]) -> Mapping[Place, Any]:
        """Return the settings that the mock server advertises in `case`, in each of its places.

        `places` are those of the era.
        """
        if case.advertise_in is not None:
            return case.advertise_in
        part = next((part for part in (case, self) if "advertise" in part.model_fields_set), None)
        settings = SETTINGS if part is None else part.advertise
        return {} if settings is None else dict.fromkeys(places, settings)


def _as_written(part: Strict) -> Json:
    return part.model_dump(mode="json", by_alias=True, exclude_unset=True)


OUTCOMES: Final = {
    "valid": "completed",
    "malformed": "malformed_directive",
    "absent": "completed",
}
"""How the chain ends, by what a reader makes of the directive on the carrier's result."""


def _cases_of(template: VectorCases, first_call: Json, carrier: Json) -> Iterator[Json]:
    """Yield a case for each vector that a template lists: what a reader makes of it says which call
    comes next, if any.

    Raises ValueError if there is no vector of that name, or no check for it.
    """
    for name in template.ids:
        if (vector := _vectors().get(name)) is None:
            raise ValueError(f"no vector has the id {name}")
        yield _case(vector, template, first_call, carrier)


@cache
def _vectors() -> dict[str, Json]:
    vectors = json.loads(read_text("conformance/directives.json"))["vectors"]
    return {vector["id"]: vector for vector in vectors}


def _case(vector: Json, template: VectorCases, first_call: Json, carrier: Json) -> Json:
    reading = vector["reading"]
    calls = [first_call, carrier]
    if reading["status"] == "valid":
        calls.append({"tool": reading["tool"], "arguments": reading["arguments"]})
    answer: Json = {"result": {"content": template.content}}
    if "text" in vector:
        answer["metaText"] = vector["text"]
    elif vector["meta"] is not None:
        answer["result"]["_meta"] = vector["meta"]
    return {
        "name": vector["id"],
        "description": vector["description"],
        "first_call": first_call,
        "answers": [{"tool": carrier["tool"], "rounds": [answer]}],
        "expect": {"calls": calls, "outcome": OUTCOMES[reading["status"]]},
        "checks": list(_checks(vector, template)),
    }


def _checks(vector: Json, template: VectorCases) -> Iterator[Json]:
    """Yield the checks for every such reading, and the first one that cites a sentence of it."""
    own = False
    for row in template.checks:
        if row.reading != vector["reading"]["status"]:
            continue
        if row.cites is not None and (own or row.cites not in vector["requirements"]):
            continue
        own = own or row.cites is not None
        yield _as_written(row.check)
    if not own:
        raise ValueError(f"no check cites a sentence of the vector {vector['id']}")


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
    files = sorted(folder.glob("*.yaml"))
    return tuple(
        ClientScript.model_validate(read_yaml(f"conformance/client/{file.name}")) for file in files
    )
