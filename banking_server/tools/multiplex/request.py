"""The arguments of `multiplex_tools`: a list of `tools/call` requests, with conditions."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic.json_schema import SkipJsonSchema

from banking_server.bank.rules import excerpt
from banking_server.tools.multiplex.inference import MAX_PROMPT, prompt_problem, prompts
from banking_server.tools.multiplex.references import Reference, references
from banking_server.tools.prompts import is_nearly_prompt
from banking_server.tools.titles import READABLE
from tool_chaining.expressions import MAX_EXPRESSION
from tool_chaining.text import is_json

NAME: Final = "multiplex_tools"
MAX_STEPS: Final = 10
MAX_PROMPTS: Final = 20
"""The most prompts in one call: a model must answer each of them."""
MAX_REFERENCES: Final = 10_000
"""The most characters of all references in one call. Parsing them takes at most some 0.1 s."""


def _one_of(words: str, *types: type) -> BeforeValidator:
    """Check the type of a value with several possible types, so that there is one error message."""

    def check(value: Any) -> Any:
        if type(value) not in types:
            raise ValueError(f"must be {words}")
        return value

    return BeforeValidator(check)


StepId = Annotated[int | str, _one_of("a whole number or a string", int, str)]
"""The id of a JSON-RPC request."""

Scalar = Annotated[
    str | float | bool | None,
    _one_of("a string, a number, true, false or null", str, int, float, bool, type(None)),
]
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
        f"model (at most {MAX_PROMPTS} in a call, of {MAX_PROMPT} characters); "
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
    ids = [step.id for step in steps]
    asked = read = 0
    for index, step in enumerate(steps):
        name, arguments, when = step.params.name, step.params.arguments, step.when
        if step.id in ids[:index]:
            yield f"tools.{index}.id: the id {excerpt(str(step.id))!r} occurs twice"
        if name == NAME:
            yield f"tools.{index}.params.name: {NAME} cannot be called inside itself"
        if name not in known:
            yield (
                f"tools.{index}.params.name: there is no tool {excerpt(name)!r}; there are "
                f"{', '.join(one for one in known if one != NAME)}"
            )
        if not is_json(arguments):
            yield f"tools.{index}.params.arguments: is not valid JSON, or has broken Unicode"
        looked_up = {
            f"params.arguments.{excerpt(name)}": one for name, one in references(arguments).items()
        }
        if when is not None:
            looked_up["when.jmespath"] = Reference("jmespath", when.jmespath)
            if len(when.model_fields_set - {"jmespath"}) != 1:
                yield f"tools.{index}.when: give exactly one of equals, notEquals and exists"
            for value in (when.equals, when.not_equals):
                if isinstance(value, str) and is_nearly_prompt(value):
                    yield f"tools.{index}.when: looks like a prompt, but no model is asked here"
        for place, reference in looked_up.items():
            # The length is checked first, so that the work of parsing is limited.
            read += len(reference.written)
            if read > MAX_REFERENCES:
                yield f"tools: the references of a call have at most {MAX_REFERENCES} characters"
            problem = reference.problem(index)
            if problem is not None:
                yield f"tools.{index}.{place}: {problem}"
        for name, value in arguments.items():
            problem = prompt_problem(value)
            if problem is not None:
                yield f"tools.{index}.params.arguments.{excerpt(name)}: {problem}"
        asked += len(prompts(arguments))
    if asked > MAX_PROMPTS:
        yield f"tools: at most {MAX_PROMPTS} arguments can be inferred in one call"
