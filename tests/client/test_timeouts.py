"""How long a call may take: the time in which a person answers is not the server's."""

from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitResult
from pydantic import BaseModel

from banking_server.client.timeouts import TimeoutClient
from tool_chaining import Follower

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

    async def agree(*_: Any) -> ElicitResult:
        await anyio.sleep(0.7)  # Twice: longer than the call may take.
        return ElicitResult(action="accept", content={"agree": True})

    async with TimeoutClient(mcp, mode="legacy", elicitation_callback=agree) as client:
        chain = await Follower(client, call_timeout=1).call_tool("ask")
    assert chain.error is None
