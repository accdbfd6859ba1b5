"""The models that read the data of `specs/conformance`; their JSON Schemas are made from them.

Scenarios have models of their own, in `server.scenario` and `client.script`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from banking_server.conformance.scenario_file import (
    BOTH_ERAS,
    Distinct,
    Eras,
    Json,
    Kebab,
    Name,
    Several,
    SeveralDistinct,
    Strict,
)

SentenceId = Annotated[str, Field(pattern=r"^TC-[DSC]-[0-9]{2}$")]
CheckId = Annotated[str, Field(pattern=r"^tool-chaining-(server|client)-[a-z0-9]+(-[a-z0-9]+)*$")]


class CheckRow(Strict):
    """One check, as the registry has it."""

    id: CheckId
    tests: SeveralDistinct[SentenceId]
    """The sentences that it tests."""
    reads: Literal["wire", "printed"] = "wire"
    """Whether it reads the messages alone, or what the client prints too."""
    needs: Name | None = None
    """What a run has to bring for it, as `needs` explains it. Absent: nothing."""
    at: Annotated[str, Field(pattern="^/")] | None = None
    """The member that a failure is about, as a JSON Pointer into a message: reports mark it."""
    judges: Name
    """What it compares, in one sentence."""
    remedy: Name
    """What an implementer changes when it fails."""
    spec_versions: Eras = BOTH_ERAS
    """Protocol revisions on which it can be made. Absent: both."""


class NotTested(Strict):
    """A sentence that no check tests."""

    id: SentenceId
    excluded: Name
    """Why no check tests it."""
    testable_if: Name
    """What would have to be there for a check to test it."""


class Registry(Strict):
    """`checks.yaml`: every check, and every sentence that none tests."""

    needs: Mapping[Kebab, Name]
    """What a run has to bring for a check, in words."""
    checks: Several[CheckRow]
    not_tested: tuple[NotTested, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [check.id for check in self.checks]
        for check in self.checks:
            if ids.count(check.id) > 1:
                raise ValueError(f"{check.id} is described twice")
            if check.needs is not None and check.needs not in self.needs:
                raise ValueError(f"{check.id} needs {check.needs}, which needs does not explain")
        tested = {sentence for check in self.checks for sentence in check.tests}
        for row in self.not_tested:
            if row.id in tested:
                raise ValueError(f"{row.id} is tested and not tested")
        return self


class TestedSentence(Strict):
    """A sentence, and what tests it."""

    id: SentenceId
    check: CheckId | SeveralDistinct[CheckId]
    text: Name


class UntestedSentence(NotTested):
    """A sentence that no check tests."""

    text: Name


class Requirements(Strict):
    """`requirements.yaml`, which is made from the text and the registry."""

    extension: Literal["com.example/tool-chaining"]
    spec: Literal["tool-chaining.md"]
    requirements: Several[TestedSentence | UntestedSentence]


class Mutant(Strict):
    """A deliberately wrong implementation."""

    name: Kebab
    check: CheckId
    """The check that it fails."""
    wrong: Name
    """What is wrong with it."""
    collateral: Distinct[CheckId] = ()
    """Related checks that fail for the same reason, or can no longer be made."""


class Mutants(Strict):
    """`mutants.yaml`: the wrong implementations that prove each check."""

    mutants: Several[Mutant]


class ValidReading(Strict):
    """The directive is followed, unless a rule for clients ends the chain."""

    status: Literal["valid"]
    tool: Name
    arguments: Json
    """Compared as RFC 8785 writes them: numbers are doubles."""
    alias: bool
    """Whether the directive has the deprecated member `name`."""
    title: Name | None = None
    """Absent where the directive has no title, or one that is ignored."""


class OtherReading(Strict):
    """There is no directive, or none that can be followed."""

    status: Literal["malformed", "absent"]


class Vector(Strict):
    """The `_meta` of a complete result of `tools/call`, and what a reader makes of it."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["meta"]}, {"required": ["text"]}]}
    )

    id: Kebab
    description: Name
    meta: Annotated[Json | None, WithJsonSchema({"type": ["object", "null"]})] = None
    """The value of `_meta`; null: the result has none."""
    text: Name | None = None
    """The JSON text of `_meta`, byte for byte: for what a parser may lose."""
    reading: Annotated[ValidReading | OtherReading, Field(discriminator="status")]
    emittable: bool
    """A server that keeps every MUST and every SHOULD on the form of a directive may send it."""
    requirements: SeveralDistinct[SentenceId]
    parser: Literal["duplicates", "surrogates"] | None = None
    """For readers with certain parsers alone. `duplicates`: one that can tell that a name stands
    twice; `surrogates`: one that does not refuse the whole text for half a character."""

    @model_validator(mode="after")
    def _meta_or_text(self) -> Self:
        if len(self.model_fields_set & {"meta", "text"}) != 1:
            raise ValueError(f"{self.id} has either meta or text")
        return self


class Pair(Strict):
    """Two values of arguments, and whether they are the same call of a tool."""

    description: Name
    one: Json
    other: Json
    same: bool
    """Whether RFC 8785 writes one text for both."""


class Vectors(Strict):
    """`directives.json`: what a reader makes of a directive, and when two calls are the same."""

    schema_: Literal["schemas/directives.schema.json"] = Field(alias="$schema")
    extension: Literal["com.example/tool-chaining"]
    vectors: Several[Vector]
    pairs: Several[Pair]
