"""Sequences of calls, and the client's model that is asked for arguments."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    InputRequiredResult,
    TextContent,
)

from ..kit.bank import Customer, one_round, structured, words
from ..kit.words import PREPARE, TO_SAVINGS

MULTIPLEX = "multiplex_tools"


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
    return message.content.text.rpartition("What is wanted: ")[2]  # type: ignore[union-attr]


def noted(request_id: int | str, memo: Any, **more: Any) -> dict[str, Any]:
    """A step that gives back the memo that it was given."""
    return request(request_id, PREPARE, {**TO_SAVINGS, "amount": 1, "memo": memo}, **more)


def memo(result: CallToolResult, index: int = -1) -> Any:
    """The memo that a step was given."""
    step = results(result)[index]
    assert step["status"] == "done", step
    return step["structuredContent"].get("memo")
