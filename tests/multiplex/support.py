"""Sequences of calls, the model of the client's that is asked for arguments, and a tool to ask."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mcp.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    InputRequiredResult,
    TextContent,
)
from pydantic import Field

from banking_server.tools.declaration import WholeNumber, bank_tool
from banking_server.tools.results import Structured
from banking_server.tools.scopes import READ_SCOPE

from ..kit.bank import Customer, one_round, structured, words
from ..kit.words import EVERYDAY, SAVINGS

MULTIPLEX = "multiplex_tools"

TO_SAVINGS = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS}


def request(
    request_id: int | str,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    when: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One `tools/call` request of a sequence."""
    made: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": dict(arguments or {})},
    }
    if when is not None:
        made["when"] = when
    return made


def take(expression: str) -> dict[str, str]:
    """What an expression gives of the earlier results."""
    return {"jmespath": expression}


def prompt(wanted: str) -> str:
    """An argument for a model to infer."""
    return f"PROMPT_ARGUMENT: {wanted}"


async def multiplex(person: Customer, *steps: dict[str, Any]) -> CallToolResult:
    return await person.call(MULTIPLEX, tools=list(steps))


async def multiplex_round(
    person: Customer, *steps: dict[str, Any], **more: Any
) -> CallToolResult | InputRequiredResult:
    """Make one request of a call, and be given the question if there is one."""
    return await one_round(person, MULTIPLEX, {"tools": list(steps)}, **more)


def answered(result: InputRequiredResult, text: str) -> dict[str, Any]:
    """Answer every question of the model's with `text`."""
    responses = dict.fromkeys(result.input_requests or (), answer_of(text))
    return {"input_responses": responses, "request_state": result.request_state}


def results(result: CallToolResult) -> list[dict[str, Any]]:
    """The list of the steps' results."""
    assert "results" in structured(result), words(result)
    return list(structured(result)["results"])


def statuses(result: CallToolResult) -> list[str]:
    return [step["status"] for step in results(result)]


class ClientModel:
    """The client's own model: it answers each prompt by the book, and keeps what it was told."""

    def __init__(self, answers: Mapping[str, Any] | Callable[[str], str]) -> None:
        self.answers = answers
        self.received: list[CreateMessageRequestParams] = []

    async def __call__(
        self, context: Any, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        self.received.append(params)
        wanted = self.wanted[-1]
        answer = self.answers(wanted) if callable(self.answers) else self.answers[wanted]
        if isinstance(answer, ErrorData | CreateMessageResult):
            return answer
        return answer_of(answer)

    @property
    def wanted(self) -> list[str]:
        """The prompts, in the order in which they came."""
        return [wanted_of(params) for params in self.received]

    @property
    def told(self) -> str:
        """Everything that ever went to the model."""
        return "\n".join(params.model_dump_json(by_alias=True) for params in self.received)


def answer_of(text: str) -> CreateMessageResult:
    content = TextContent(type="text", text=text)
    return CreateMessageResult(role="assistant", content=content, model="scripted")


def wanted_of(params: CreateMessageRequestParams) -> str:
    """What a question to the model asks for."""
    (message,) = params.messages
    return wanted_in(message.content.text)  # type: ignore[union-attr]


def wanted_in(question: str) -> str:
    return question.rpartition("What is wanted: ")[2]


class FormOut(Structured):
    given: dict[str, Any]


@bank_tool(title="Fill Form", scope=READ_SCOPE, read_only=True)
async def fill_form(
    count: Annotated[WholeNumber | None, Field(description="An integer.")] = None,
    ratio: Annotated[float | None, Field(description="A number.")] = None,
    agreed: Annotated[bool | None, Field(description="A boolean.", strict=True)] = None,
    colour: Annotated[str | None, Field(description="A colour.", pattern="^(red|blue)$")] = None,
    note: Annotated[str | None, Field(description="A string.")] = None,
) -> Annotated[CallToolResult, FormOut]:
    """Give back what it was given."""
    given = {"count": count, "ratio": ratio, "agreed": agreed, "colour": colour, "note": note}
    kept = {name: value for name, value in given.items() if value is not None}
    return CallToolResult(
        content=[TextContent(type="text", text="Filled in.")],
        structured_content={"given": kept, "message": "Filled in."},
    )


FORM = "fill_form"


def given(result: CallToolResult, index: int = -1) -> dict[str, Any]:
    """What reached `fill_form` in a step."""
    step = results(result)[index]
    assert step["status"] == "done", step
    return dict(step["structuredContent"]["given"])
