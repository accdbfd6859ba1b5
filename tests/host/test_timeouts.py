"""How long a call may take: the time in which a person answers is not the server's."""

from math import inf
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitResult
from pydantic import BaseModel

from banking_server.host.timeouts import CallTimer, TimeoutClient
from tool_chaining import call_tool_with_chaining

pytestmark = pytest.mark.anyio


class Form(BaseModel):
    agree: bool


async def test_the_time_of_the_person_is_not_the_servers() -> None:
    mcp: MCPServer[Any] = MCPServer("curious")

    @mcp.tool()
    async def ask(ctx: Context[Any, Any]) -> str:
        for _ in range(2):
            await ctx.elicit("Again?", Form)
        return "asked"

    deadlines: list[float] = []
    timer = CallTimer()

    async def agree(*_: Any) -> ElicitResult:
        deadlines.append(timer._call.scope.deadline)
        return ElicitResult(action="accept", content={"agree": True})

    client = TimeoutClient(mcp, mode="legacy", elicitation_callback=timer.on(agree))
    client.timer = timer
    async with client:
        await call_tool_with_chaining(client, "ask", {}, call_timeout=60)
    assert deadlines == [inf, inf]
    assert timer._call.scope.deadline <= anyio.current_time() + 60
