"""What a client may ask of `multiplex_tools`: a list of `tools/call` requests, with conditions."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Literal

from mcp.types import CallToolResult
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from banking_server.bank.rules import excerpt
from banking_server.chaining.values import is_json
from banking_server.tools.declaration import WholeNumber, whole_number
from banking_server.tools.multiplex.inference import prompts, references, step_of
from banking_server.tools.results import refuse

NAME: Final = "multiplex_tools"
MAX_STEPS: Final = 10
MAX_PROMPTS: Final = 20
"""Arguments to be inferred in one call: each costs somebody a model's answer."""


class Condition(BaseModel):
    """Run the step only if an earlier result is so: exactly one of the three comparisons."""

    model_config = ConfigDict(extra="forbid")

    ref: str = Field(
        alias="$ref", description='JSON Pointer into the results: "#/0/structuredContent/status".'
    )
    equals: Any = Field(default=None, description="Run if the value is this.")
    not_equals: Any = Field(default=None, alias="notEquals", description="Run if it is not this.")
    exists: StrictBool = Field(default=True, description="Run if there is such a value, or none.")


class StepParams(BaseModel):
    """The tool and its arguments."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="The tool's name.")
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description="The tool's arguments. A string that begins PROMPT_ARGUMENT: is inferred by a "
        'model; {"$ref": "#/0/structuredContent/…"} is taken from an earlier result.',
    )


def _whole_number_or_text(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    try:
        return whole_number(value)
    except ValueError:
        raise ValueError("must be a whole number or a text") from None


StepId = Annotated[WholeNumber | str, BeforeValidator(_whole_number_or_text)]
"""The id of a request, as JSON-RPC has it. Checked as one, so that a mistake is told once."""


class StepRequest(BaseModel):
    """One `tools/call` request."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(description="JSON-RPC version.")
    id: StepId = Field(description="The request's id, given back with its result.")
    method: Literal["tools/call"] = Field(description="The MCP method.")
    params: StepParams
    when: Condition | None = Field(default=None, description="Run only if this holds.")


def mistake(steps: Sequence[StepRequest], known: Collection[str]) -> CallToolResult | None:
    """Return the refusal of a sequence that cannot work; nothing of it is run."""
    ids = [step.id for step in steps]
    for index, step in enumerate(steps):
        place = f"tools.{index}"
        if step.params.name == NAME:
            return _refused(f"{place}.params.name", f"{NAME} cannot be called inside itself")
        if step.params.name not in known:
            return _refused(
                f"{place}.params.name",
                f"there is no tool {excerpt(step.params.name)!r}; there are {', '.join(known)}",
            )
        if ids.index(step.id) != index:
            return _refused(f"{place}.id", f"the id {excerpt(str(step.id))!r} is there twice")
        if not is_json(step.params.arguments):
            return _refused(f"{place}.params.arguments", "holds broken Unicode, or no JSON")
        pointers = [pointer for _, pointer in references(step.params.arguments)]
        if step.when is not None:
            pointers.append(step.when.ref)
            if len(step.when.model_fields_set - {"ref"}) != 1:
                return _refused(
                    f"{place}.when", "takes exactly one of equals, notEquals and exists"
                )
        for pointer in pointers:
            source = step_of(pointer)
            if source is None or source >= index:
                return _refused(
                    place,
                    f"{excerpt(pointer, 200)!r} must lead into an earlier result, like '#/0/…'",
                )
    if sum(1 for step in steps for _ in prompts(step.params.arguments)) > MAX_PROMPTS:
        return _refused("tools", f"at most {MAX_PROMPTS} arguments can be inferred in one call")
    return None


def _refused(place: str, why: str) -> CallToolResult:
    return refuse("refused", "tools", f"{place}: {why}. Nothing was run.")
