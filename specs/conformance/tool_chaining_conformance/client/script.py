"""Client scripts: a mock server, and what a conforming client does with it.

The format is `specs/conformance/schemas/client-script.schema.json`; a test compares the two.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.names import SETTINGS
from tool_chaining_conformance.scenario_file import (
    Kebab,
    Name,
    Ordinal,
    SentenceId,
    Several,
    Strict,
)
from tool_chaining_conformance.server.references import filled
from tool_chaining_conformance.specification import SPECS, read_text, read_yaml
from tool_chaining_conformance.target.era import Era

LONG_TEXT: Final = "".join(f"Paragraph {number} of a long text.\n" for number in range(1, 401))
"""The value of `${long}` in a script: about 12,000 characters."""


class ScriptTool(BaseModel):
    """A tool of the mock server. The other members are as in `tools/list`."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    name: Name
    listed_after_calls: int = Field(default=0, ge=0)
    """List the tool only after this number of answered calls."""
    listed_until_calls: Ordinal | None = None
    """Stop listing the tool after this number of answered calls."""

    def is_listed(self, answered: int) -> bool:
        """Return whether `tools/list` has the tool after this number of answered calls."""
        return self.listed_after_calls <= answered and (
            self.listed_until_calls is None or answered < self.listed_until_calls
        )

    def to_wire(self) -> Json:
        """Return the tool as `tools/list` shows it."""
        return self.model_dump(exclude={"listed_after_calls", "listed_until_calls"})


class Elicit(Strict):
    """A question to the user in the middle of a call."""

    key: Name
    message: str
    requested_schema: Json = Field(alias="requestedSchema")
    meta: Json | None = Field(default=None, alias="_meta")


Broken = Literal["stream", "silence", 400, 401, 403, 404, 429, 500, 502, 503, 504]


class Round(Strict):
    """How the mock server answers one round of a call: with a result, a question, an error, or not.

    A round has exactly one of `result`, `elicit`, `error` and `broken`.
    """

    result: Json | None = None
    elicit: Elicit | None = None
    error: Json | None = None
    broken: Broken | None = None
    """`stream`: the stream ends before the answer. `silence`: the same, after the client gave up
    or five seconds passed. A number: the answer is this HTTP status, without a message."""
    meta_text: str | None = Field(default=None, alias="metaText")
    """The JSON text of the result's `_meta`, for values that YAML cannot write."""
    together: Annotated[int, Field(ge=2)] | None = None
    """The answer waits until this number of calls of the tool run at once, or the client has sent
    nothing for a second."""
    waits_ms: Annotated[int, Field(ge=0)] = 0
    """The answer waits for so many milliseconds."""
    held: bool = False
    """The user cancels when the call arrives. The server answers only after the client cancelled
    the call. For cases with `cancel: true`."""


class ScriptAnswer(Strict):
    """How the mock server answers calls of one tool."""

    tool: Name
    arguments: Json | None = None
    until_call: Annotated[int, Field(ge=2)] | None = None
    rounds: Several[Round]
    """Every round but the last one is a question."""


class ScriptCall(Strict):
    """A call with its arguments."""

    tool: Name
    arguments: Json = Field(default_factory=dict)


class AddedStep(ScriptCall):
    """A step that a rule of the user adds after each result of a tool."""

    after: Name


def _optional(*names: str) -> ConfigDict:
    """Make members optional in the schema, since `ClientScript` fills them in."""

    def leave_out(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema.get("required", []) if name not in names]

    return ConfigDict(json_schema_extra=leave_out)


class ScriptExpectation(Strict):
    """What a conforming client does."""

    model_config = _optional("calls")

    calls: tuple[ScriptCall, ...]
    """The calls that it makes, in order; empty if the host does not allow the first one. Left out
    in a case with `directive`."""
    outcome: str | None = None
    """The outcome of the chain that it prints."""


class Provided(Strict):
    """What another run of the client must have shown before this check applies."""

    case: Name
    """The other case, as `scenario/case`, in the same era."""
    calls: Annotated[int, Field(ge=0)]
    """The client made this number of calls there, and ended by itself."""


class ScriptCheck(Strict):
    """One check in a case. Its members depend on its kind.

    The kinds are the functions of `client.checks`; `assert` names one.
    """

    id: str
    kind: Name = Field(alias="assert")
    """The kind of the check. The function of this name in `client.checks` says when it holds."""
    witness: Annotated[int, Field(ge=0)]
    """Number of the expected call that must have been made and answered."""
    provided: tuple[Provided, ...] = ()
    """What other runs must have shown. Otherwise the check does not apply."""
    call: Ordinal | None = None
    """Number of an expected call."""
    tool: Name | None = None
    arguments: Json | None = None
    """Only calls with these arguments count."""
    at_most: Ordinal | None = None
    """The number of calls that are allowed. Absent: none."""
    exactly: Ordinal | None = None
    other_server: Literal[True] | None = None
    """Count the calls that the other server received."""
    text: str | None = None


Answer = Literal["grant", "refuse"]
Place = Literal["experimental", "extensions"]


class CaseContext(Strict):
    """The other members of `MCP_CONFORMANCE_CONTEXT`."""

    consent: Answer | Literal["nobody"] = "grant"
    """What the user answers to every question of the client; `nobody`: nobody can be asked."""
    consent_by_tool: Mapping[Name, Answer | Several[Answer]] | None = Field(
        default=None, alias="consentByTool"
    )
    """What the user answers to questions about calls of these tools, in place of `consent`. A list
    has one answer for each question; the last one is also the answer to all later questions."""
    first_call_by: Literal["user", "model"] | None = Field(default=None, alias="firstCallBy")
    """Who makes the first call: the model under the host's policy, the user without a question."""
    denied_tools: tuple[Name, ...] | None = Field(default=None, alias="deniedTools")
    """Tools that the host does not let its model call."""
    trust_hints: Literal[False] | None = Field(default=None, alias="trustHints")
    """False: the user did not say that the server's hints are trusted. Absent: the user did."""
    bearer_token: Name | None = Field(default=None, alias="bearerToken")
    """The token of the `Authorization` header with which the client makes the first call."""
    timeout_seconds: Literal[2] | None = Field(default=None, alias="timeoutSeconds")
    """How long the client waits for the result of a call."""
    further_calls: tuple[ScriptCall, ...] | None = Field(default=None, alias="furtherCalls")
    """Later calls in the conversation. Each begins a chain, and the last result is printed."""
    added_step: AddedStep | None = Field(default=None, alias="addedStep")
    """The user's rule: after each result of the tool `after`, this call is the next step."""
    at_once: Literal[True] | None = Field(default=None, alias="atOnce")
    """The client begins the chains of the first call and of `furtherCalls` at once."""
    again: tuple[Name, ...] | None = None
    """Tools that the user agreed beforehand to have called again, although they are in doubt."""
    answers_after_ms: Ordinal | None = Field(default=None, alias="answersAfterMs")
    """How many milliseconds the user takes to answer each question of the client."""
    cancel: Literal[True] | None = Field(default=None, exclude=True)
    """The user cancels the first chain: the context has a `cancelUrl`."""
    cancel_late: Literal[True] | None = Field(default=None, exclude=True)
    """The user cancels the first chain after its result: the context has a `cancelledUrl`."""


class Case(Strict):
    """One run of the client under test."""

    model_config = _optional("first_call", "expect")

    name: Kebab
    description: Name
    spec_versions: Several[Era] | None = None
    advertise: Any = None
    advertise_in: Mapping[Place, Any] | None = None
    """The settings that are advertised under each of these members of the capabilities. Absent:
    where the revision has them."""
    context: CaseContext = CaseContext()
    first_call: ScriptCall
    """Absent: the first call of the script."""
    elicitation: Json | None = None
    ttl_ms: Several[Annotated[int, Field(ge=0)]] | None = None
    """`ttl_ms` of each page of the list; the last one is that of all further pages, too."""
    last_page_fails: bool = False
    """The last page of `tools/list` gets an error after the first call."""
    list_held: bool = False
    """The user cancels when `tools/list` is requested after the second call. For cases with
    `cancel: true`."""
    result_meta: Mapping[str, Json] = Field(default_factory=dict)
    directive: Any = None
    """The directive in the result of the carrier; the calls and answers are filled in."""
    followed: bool = False
    """Whether a conforming client follows `directive`."""
    answers: tuple[ScriptAnswer, ...] = ()
    expect: ScriptExpectation
    checks: tuple[ScriptCheck, ...] = ()
    """Empty if the case is only evidence for the checks of another case."""


class VectorCheck(Strict):
    """A check of cases made from vectors, and the vectors it applies to."""

    reading: Literal["valid", "malformed", "absent"]
    """The reading of the vectors to which the check applies."""
    cites: SentenceId | None = None
    """Only for vectors that cite this sentence, and no sentence of a check above."""
    check: ScriptCheck


class VectorCases(Strict):
    """Cases from vectors of `directives.json`. The carrier's result has the vector's `_meta`."""

    ids: Several[Kebab]
    content: list[Json]
    """The content of that result."""
    checks: Several[VectorCheck]


class OtherServer(Strict):
    """A second mock server. A client must not confuse it with the first one."""

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
    ttl_ms: Annotated[int, Field(ge=0)] = 600_000
    """On 2026-07-28: for how many milliseconds the list of tools claims to be fresh."""
    tools: Several[ScriptTool]
    other_server: OtherServer | None = None
    first_call: ScriptCall | None = None
    """The first call of each case that has none of its own."""
    carrier: ScriptCall | None = None
    """The second call of the cases with `directive`, and of those made from vectors."""
    vectors: VectorCases | None = None
    """Cases made from vectors. They come before those of `cases`."""
    answers: tuple[ScriptAnswer, ...] = ()
    cases: Several[Case]

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, script: Any) -> Json:
        """Fill in the cases with `directive`, and the first calls that are left out."""
        script = filled(script, {"long": LONG_TEXT})
        cases = [_expanded(case, script) for case in script.get("cases", [])]
        if "vectors" in script:
            template = VectorCases.model_validate(script["vectors"])
            cases = [*_cases_of(template, script["first_call"], script["carrier"]), *cases]
        return {**script, "cases": cases}

    def eras_of(self, case: Case) -> tuple[Era, ...]:
        """Return the eras in which `case` is run."""
        return tuple(era for era in self.spec_versions if era in (case.spec_versions or Era))

    def advertised(self, case: Case, places: Sequence[Place]) -> Mapping[Place, Any]:
        """Return the settings that the mock server advertises in `case`, by capabilities member.

        `places` are the members of the era.
        """
        if case.advertise_in is not None:
            return case.advertise_in
        part = next((part for part in (case, self) if "advertise" in part.model_fields_set), None)
        settings = SETTINGS if part is None else part.advertise
        return {} if settings is None else dict.fromkeys(places, settings)


OUTCOMES: Final = {
    "valid": "completed",
    "malformed": "malformed_directive",
    "absent": "completed",
}
"""The outcome of the chain, by the reading of the directive in the carrier's result."""


def _cases_of(template: VectorCases, first_call: Json, carrier: Json) -> Iterator[Json]:
    """Yield a case for each vector that a template lists. The vector's reading decides which call
    comes next, if any.
    """
    for name in template.ids:
        yield _case(_vectors()[name], template, first_call, carrier)


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
    """Yield the checks for the reading of a vector, and the first one that cites its sentence."""
    own = False
    for row in template.checks:
        if row.reading != vector["reading"]["status"]:
            continue
        if row.cites is not None and (own or row.cites not in vector["requirements"]):
            continue
        own = own or row.cites is not None
        yield row.check.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if not own:
        raise ValueError(f"no check cites a sentence of the vector {vector['id']}")


def _expanded(case: Json, script: Json) -> Json:
    if "first_call" not in case and "first_call" in script:
        case = {**case, "first_call": script["first_call"]}
    if "directive" not in case:
        return case
    directive, carrier = case["directive"], script["carrier"]
    result = {
        "content": [{"type": "text", "text": "Here is what comes next."}],
        "_meta": {"nextTool": directive},
    }
    calls = [case["first_call"], carrier]
    if case.get("followed"):
        calls.append({key: directive[key] for key in ("tool", "arguments") if key in directive})
    return {
        **case,
        "answers": [
            {"tool": carrier["tool"], "rounds": [{"result": result}]},
            *case.get("answers", []),
        ],
        "expect": {"calls": calls, **case.get("expect", {})},
    }


@cache
def load_client_scripts() -> tuple[ClientScript, ...]:
    """Read the scripts for clients that come with the specification."""
    folder = SPECS / "conformance" / "client"
    files = sorted(folder.glob("*.yaml"))
    return tuple(
        ClientScript.model_validate(read_yaml(f"conformance/client/{file.name}")) for file in files
    )
