"""What a client may ask of `multiplex_tools`: a list of `tools/call` requests, with conditions."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Literal

from mcp.types import CallToolResult
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from banking_server.bank.rules import excerpt
from banking_server.chaining.values import is_json
from banking_server.tools.declaration import WholeNumber, whole_number
from banking_server.tools.multiplex.expressions import MAX_EXPRESSION
from banking_server.tools.multiplex.inference import MAX_PROMPT, marked, prompt_problem
from banking_server.tools.multiplex.places import is_larger, name_of
from banking_server.tools.multiplex.references import (
    Expression,
    Reference,
    mistyped,
    references,
)
from banking_server.tools.prompts import is_nearly_prompt
from banking_server.tools.results import refuse
from banking_server.tools.titles import READABLE

NAME: Final = "multiplex_tools"
MAX_STEPS: Final = 10
MAX_PROMPTS: Final = 20
"""Arguments to be inferred in one call: each costs somebody a model's answer."""
MAX_VALUES: Final = 1_000
"""Values in the arguments of one call, in lists and objects too: each is read several times."""
MAX_REFERENCES: Final = 100
"""References in one call."""
MAX_REFERENCES_LENGTH: Final = 10_000
"""Characters of all references in one call: to read them takes some 0.1 s at most."""


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", **READABLE)


def _scalar(value: Any) -> str | float | bool | None:
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("must be a text, a number, true, false or null")


Scalar = Annotated[
    Any,
    BeforeValidator(_scalar),
    WithJsonSchema({"anyOf": [{"type": name} for name in ("string", "number", "boolean", "null")]}),
]
"""What a value can be compared with."""


def _as_written(schema: dict[str, Any]) -> None:
    """Say of a condition what is to be written: what it looks at, and one of the comparisons.

    Its defaults stand for what is not written, so that nobody must see them and fill them in.
    """
    for member in schema["properties"].values():
        member.pop("default", None)


class Condition(_Given):
    """Run the step only if an earlier result is so: exactly one of the three comparisons."""

    model_config = ConfigDict(json_schema_extra=_as_written)

    jmespath: Annotated[str, WithJsonSchema({"type": "string", "maxLength": MAX_EXPRESSION})] = (
        Field(
            title="JMESPath expression",
            description="What to look at in the list of earlier results: "
            '"[0].structuredContent.status".',
        )
    )
    equals: Scalar = Field(default=None, description="Run if the value is this.")
    not_equals: Scalar = Field(
        default=None, alias="notEquals", description="Run if there is a value that is not this."
    )
    exists: StrictBool = Field(default=True, description="Run if there is such a value, or none.")

    @property
    def looks_at(self) -> Expression:
        """What is compared."""
        return Expression(self.jmespath)


def _object(value: Any) -> Any:
    """Return no arguments as an empty object, which some clients write as null."""
    return {} if value is None else value


def _open(schema: dict[str, Any]) -> None:
    """Let a whole request through a client's check of its arguments, and show nobody its extras."""
    del schema["additionalProperties"]


class StepParams(_Given):
    """The tool and its arguments."""

    model_config = ConfigDict(json_schema_extra=_open)

    name: str = Field(description="The tool's name.")
    arguments: Annotated[dict[str, Any], BeforeValidator(_object)] = Field(
        default_factory=dict,
        description="The tool's arguments. A string that begins PROMPT_ARGUMENT: is inferred by a "
        f"model (at most {MAX_PROMPTS} in a call, of {MAX_PROMPT} characters); "
        '{"jmespath": "[0].structuredContent.…"} is '
        'taken from an earlier result, and {"text": "{[0].structuredContent.…}-dup"} is a text '
        "with such values in it.",
    )
    meta: SkipJsonSchema[dict[str, Any] | None] = Field(default=None, alias="_meta")
    task: SkipJsonSchema[dict[str, Any] | None] = None
    input_responses: SkipJsonSchema[dict[str, Any] | None] = Field(
        default=None, alias="inputResponses"
    )
    request_state: SkipJsonSchema[str | None] = Field(default=None, alias="requestState")
    """These four are what else MCP's own requests have, so that one can be pasted as it is. None
    has an effect: revision, client, capabilities, progress token and provenance are those of the
    whole call, whose questions are answered in its own rounds, and a step is no task."""


def _whole_number_or_text(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    try:
        return whole_number(value)
    except ValueError:
        raise ValueError("must be a whole number or a text") from None


StepId = Annotated[WholeNumber | str, BeforeValidator(_whole_number_or_text)]
"""The id of a request, as JSON-RPC has it. Checked as one, so that a mistake is told once."""


class StepRequest(_Given):
    """One `tools/call` request."""

    jsonrpc: Literal["2.0"] = Field(title="JSON-RPC", description="JSON-RPC version.")
    id: StepId = Field(title="ID", description="The request's id, given back with its result.")
    method: Literal["tools/call"] = Field(description="The MCP method.")
    params: StepParams
    when: Condition | None = Field(default=None, description="Run only if this holds.")


def mistake(steps: Sequence[StepRequest], known: Collection[str]) -> CallToolResult | None:
    """Return the refusal of a sequence that cannot work; nothing of it is run."""
    ids = [step.id for step in steps]
    looked_up = read = asked = 0
    if is_larger([step.params.arguments for step in steps], MAX_VALUES):
        return _refused("tools", f"at most {MAX_VALUES} values are read in the arguments of a call")
    for index, step in enumerate(steps):
        place = f"tools.{index}"
        if step.params.name == NAME:
            return _refused(f"{place}.params.name", f"{NAME} cannot be called inside itself")
        if step.params.name not in known:
            return _refused(
                f"{place}.params.name",
                f"there is no tool {excerpt(step.params.name)!r}; there are "
                f"{', '.join(name for name in known if name != NAME)}",
            )
        if ids.index(step.id) != index:
            return _refused(f"{place}.id", f"the id {excerpt(str(step.id))!r} is there twice")
        if not is_json(step.params.arguments):
            return _refused(f"{place}.params.arguments", "holds broken Unicode, or no JSON")
        for path in mistyped(step.params.arguments):
            return _refused(
                f"{place}.params.{name_of(path)}",
                'a reference is {"jmespath": "…"} or {"text": "…"}: a text, and no member beside '
                "it",
            )
        for path, text in marked(step.params.arguments):
            problem = prompt_problem(text)
            if problem is not None:
                return _refused(f"{place}.params.{name_of(path)}", problem)
            asked += 1
        looked_at: list[Reference] = [found for _, found in references(step.params.arguments)]
        if step.when is not None:
            if len(step.when.model_fields_set - {"jmespath"}) != 1:
                return _refused(
                    f"{place}.when", "takes exactly one of equals, notEquals and exists"
                )
            for name, value in (("equals", step.when.equals), ("notEquals", step.when.not_equals)):
                if isinstance(value, str) and is_nearly_prompt(value):
                    return _refused(
                        f"{place}.when.{name}",
                        "reads like a prompt, and no model is asked whether a step is to run",
                    )
            looked_at.append(step.when.looks_at)
        for reference in looked_at:
            # Each in turn, its length first, so that no more is read than a call may have.
            problem = reference.problem(index)
            if problem is not None:
                return _refused(place, problem)
            looked_up += reference.looks
            read += len(reference.text)
            if looked_up > MAX_REFERENCES or read > MAX_REFERENCES_LENGTH:
                return _refused(
                    "tools",
                    f"at most {MAX_REFERENCES} references are looked up in a call, of "
                    f"{MAX_REFERENCES_LENGTH} characters in all",
                )
    if asked > MAX_PROMPTS:
        return _refused("tools", f"at most {MAX_PROMPTS} arguments can be inferred in one call")
    return None


def _refused(place: str, why: str) -> CallToolResult:
    return refuse("refused", "tools", f"{place}: {why}. Nothing was run.")
