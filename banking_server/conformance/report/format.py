"""The format of report.json, as types: its schema in `specs/conformance/schemas` is made from them.

They are no models, since a report tells of what a target sent, whatever that was.
"""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config

# Pydantic reads that of `typing` only from Python 3.12 on.
from typing_extensions import TypedDict

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.formats import CheckId, SentenceId
from banking_server.conformance.report.judgement import Status
from banking_server.conformance.report.verdict import Verdict
from banking_server.conformance.requirements import Side
from banking_server.conformance.scenario_file import Name
from banking_server.conformance.target.era import Era

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Revisions = Annotated[list[Era], Field(json_schema_extra={"uniqueItems": True})]
Count = Annotated[int, Field(ge=0)]

STRICT: Final = ConfigDict(extra="forbid", use_attribute_docstrings=True)
URL_OR_COMMAND: Final = ConfigDict(
    **STRICT, json_schema_extra={"oneOf": [{"required": ["url"]}, {"required": ["command"]}]}
)
UNTESTABLE_IS_NO_SUCCESS: Final = ConfigDict(
    **STRICT,
    json_schema_extra={
        "if": {"properties": {"untestable": {"const": True}}, "required": ["untestable"]},
        "then": {"properties": {"status": {"not": {"const": "SUCCESS"}}}},
    },
)


@with_config(STRICT)
class SuiteJson(TypedDict):
    """What made the report."""

    name: Name
    version: Name


@with_config(URL_OR_COMMAND)
class TargetJson(TypedDict):
    """What was judged."""

    url: NotRequired[str]
    """Without credentials."""
    command: NotRequired[list[str]]
    name: NotRequired[str]
    """As the target calls itself."""
    version: NotRequired[str]


@with_config(STRICT)
class SentenceJson(TypedDict):
    """A sentence of the specification."""

    id: SentenceId
    text: Name


MessageJson = TypedDict(
    "MessageJson", {"from": Literal["client", "server"], "message": dict[str, Any]}
)
"""A message as it went over the wire; secrets are redacted, and long parts are cut."""
with_config(STRICT)(MessageJson)


@with_config(STRICT)
class PlaceJson(TypedDict):
    """The member of a message that is at fault, or is missing."""

    message: Count
    """Which of `messages`, counted from 0."""
    pointer: str
    """A JSON Pointer (RFC 6901) into it."""


@with_config(UNTESTABLE_IS_NO_SUCCESS)
class JudgementJson(TypedDict):
    """What was found at one place of a scenario."""

    status: Status
    expected: str
    seen: str
    scenario: NotRequired[str]
    step: NotRequired[str]
    """Step of the server scenario, or case of the client script."""
    untestable: NotRequired[bool]
    """Nothing was reached that could be judged; the status is then never SUCCESS."""
    broke_off: NotRequired[bool]
    """It is untestable because the target crashed, hung, or stopped talking."""
    expected_failure: NotRequired[bool]
    """Listed in the file of expected failures."""
    messages: NotRequired[list[MessageJson]]
    """Wire messages in order. Present for FAILURE and WARNING."""
    place: NotRequired[PlaceJson]
    """What is at fault, where it is a member of a message."""


@with_config(UNTESTABLE_IS_NO_SUCCESS)
class CheckJson(JudgementJson):
    """One check on one protocol revision: the worst of its judgements, and all of them."""

    id: CheckId
    spec_version: Era
    requirements: Annotated[list[SentenceJson], Field(min_length=1)]
    remedy: str
    """What to change."""
    judgements: Annotated[list[JudgementJson], Field(min_length=1)]
    """One for each place that the check was made at, in the order in which they were played."""


@with_config(STRICT)
class NotExercisedJson(TypedDict):
    """A check on which nothing was judged: the verdict says nothing about it there."""

    id: CheckId
    requirements: list[SentenceId]
    spec_versions: Revisions
    """Where it was not exercised."""
    reason: str
    untestable: bool
    """It applies, and nothing was reached that it could judge."""
    places: NotRequired[list[str]]
    """Scenario and step, or case: only there was nothing judged on it. Absent: everywhere."""


@with_config(STRICT)
class ReportJson(TypedDict):
    """What one run of the conformance suite found."""

    schema_version: Literal[2]
    suite: SuiteJson
    extension: Annotated[str, Field(json_schema_extra={"const": IDENTIFIER})]
    side: Side
    """Which half of the extension was judged."""
    target: TargetJson
    spec_versions: Revisions
    """Those that the target speaks, of those that were asked for."""
    scenarios: list[str]
    """Names of the scenarios that were run."""
    started: Time
    finished: Time
    verdict: Verdict
    reason: str
    """Why the verdict is what it is, in a sentence."""
    summary: dict[Status, Count]
    """Number of entries in checks by status."""
    not_exercised: list[NotExercisedJson]
    problems: NotRequired[list[str]]
    """What kept the suite from examining everything: an unmet expectation, a crash."""
    checks: list[CheckJson]
