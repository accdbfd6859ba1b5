"""The arguments of `multiplex_tools`: a list of `tools/call` requests, with conditions."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from banking_server.bank.rules import excerpt
from banking_server.tools.multiplex.references import check, expressions
from banking_server.tools.prompts import prompts
from banking_server.tools.titles import READABLE
from tool_chaining.expressions import MAX_EXPRESSION, ExpressionError
from tool_chaining.text import is_json

NAME: Final = "multiplex_tools"
MAX_STEPS: Final = 10
MAX_PROMPTS: Final = 20
"""The most prompts in one call: a model must answer each of them."""
MAX_EXPRESSIONS: Final = 10_000
"""The most characters of all expressions in one call. Parsing them takes at most some 0.1 s."""


def _any_of(*types: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": each} for each in types]})


StepId = Annotated[Any, _any_of("integer", "string")]
"""The id of a JSON-RPC request. It is only given back."""

Scalar = Annotated[Any, _any_of("string", "number", "boolean", "null")]
"""A value of a comparison."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", **READABLE)


class Condition(_Strict):
    """Run the step only if an earlier result meets exactly one of three comparisons."""

    jmespath: str = Field(
        title="JMESPath expression",
        description='What to look at in the list of earlier results: "[0].status".',
        json_schema_extra={"maxLength": MAX_EXPRESSION},
    )
    # The schema does not show the value of a factory, so that models do not fill in all members.
    equals: Scalar = Field(default_factory=lambda: None, description="Run if the value is this.")
    not_equals: Scalar = Field(
        default_factory=lambda: None,
        alias="notEquals",
        description="Run if there is a value that is not this.",
    )
    exists: StrictBool = Field(
        default_factory=lambda: True, description="Run if there is such a value, or none."
    )


class StepParams(_Strict):
    """The tool and its arguments."""

    # A client may check arguments; this allows a pasted request with `_meta`.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    name: str = Field(description="The tool's name.")
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="The tool's arguments. A string that begins PROMPT_ARGUMENT: is inferred by a "
        f"model (at most {MAX_PROMPTS} in a call); "
        '{"jmespath": "[0].structuredContent.…"} is taken from an earlier result, and '
        '{"text": "{[0].structuredContent.…}-dup"} is a text with such values in it.',
    )
    meta: SkipJsonSchema[dict[str, Any] | None] = Field(default=None, alias="_meta")
    """Not used: client, revision and chain are those of the whole call."""


class StepRequest(_Strict):
    """One `tools/call` request."""

    jsonrpc: Literal["2.0"] = Field(title="JSON-RPC", description="JSON-RPC version.")
    id: StepId = Field(title="ID", description="The request's id, given back with its result.")
    method: Literal["tools/call"] = Field(description="The MCP method.")
    params: StepParams
    when: Condition | None = Field(default=None, description="Run only if this holds.")


def mistakes(steps: Sequence[StepRequest], known: Collection[str]) -> Iterator[str]:
    """Yield why a sequence cannot work, and where. Only the first message is always correct."""
    asked = read = 0
    for index, step in enumerate(steps):
        name, when = step.params.name, step.when
        if name == NAME:
            yield f"tools.{index}.params.name: {NAME} cannot be called inside itself"
        if name not in known:
            there_are = ", ".join(tool for tool in known if tool != NAME)
            words = f"there is no tool {excerpt(name)!r}; there are {there_are}"
            yield f"tools.{index}.params.name: {words}"
        if not is_json(step.params.arguments):
            yield f"tools.{index}.params.arguments: is not valid JSON, or has broken Unicode"
        if when is not None and len(when.model_fields_set - {"jmespath"}) != 1:
            yield f"tools.{index}.when: give exactly one of equals, notEquals and exists"
        values = {f"params.arguments.{excerpt(n)}": v for n, v in step.params.arguments.items()}
        if when is not None:
            values["when.jmespath"] = {"jmespath": when.jmespath}
        for place, value in values.items():
            try:
                for expression in expressions(value):
                    read += len(expression)
                    if read > MAX_EXPRESSIONS:  # Before it is parsed.
                        yield f"tools: all expressions have at most {MAX_EXPRESSIONS} characters"
                    check(expression)
            except ExpressionError as error:
                yield f"tools.{index}.{place}: {error}"
        for place, prompt in prompts(values).items():
            asked += 1
            if not prompt:
                yield f"tools.{index}.{place}: the prompt is empty"
    if asked > MAX_PROMPTS:
        yield f"tools: at most {MAX_PROMPTS} arguments can be inferred in one call"
