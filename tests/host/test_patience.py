"""How long a call may take, and how often a person is asked in it."""

from collections.abc import Callable
from math import inf
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitResult
from pydantic import BaseModel

from banking_server.chaining import call_tool_with_chaining
from banking_server.host.patience import Bounds, PatientClient

pytestmark = pytest.mark.anyio


class Form(BaseModel):
    agree: bool


def curious() -> MCPServer[Any]:
    mcp: MCPServer[Any] = MCPServer("curious")

    @mcp.tool()
    async def ask(times: int, ctx: Context[Any, Any]) -> str:
        for _ in range(times):
            await ctx.elicit("Again?", Form)
        return "asked"

    return mcp


def client(questions: int, answer: Callable[..., Any] | None = None) -> PatientClient:
    bounds = Bounds(questions)

    async def agree(*_: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"agree": True})

    made = PatientClient(curious(), mode="legacy", elicitation_callback=bounds.on(answer or agree))
    made.bounds = bounds
    return made


async def test_a_call_may_ask_so_many_questions_and_the_next_call_again() -> None:
    async with client(3) as asked:
        for _ in range(2):
            result = await call_tool_with_chaining(asked, "ask", {"times": 3})
            assert not result.steps[0].result.is_error
        chain = await call_tool_with_chaining(asked, "ask", {"times": 4})
        assert "asked more than 3 questions in one call" in chain.detail
        # The connection goes on.
        await call_tool_with_chaining(asked, "ask", {"times": 3})


async def test_the_time_of_the_person_is_not_the_servers() -> None:
    deadlines: list[float] = []

    async def note(*_: Any) -> ElicitResult:
        deadlines.append(asked.bounds._call.scope.deadline)
        return ElicitResult(action="accept", content={"agree": True})

    async with client(3, note) as asked:
        await call_tool_with_chaining(asked, "ask", {"times": 2}, call_timeout=60)
        assert deadlines == [inf, inf]
        assert asked.bounds._call.scope.deadline <= anyio.current_time() + 60
