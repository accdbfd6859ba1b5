"""Results that arrive, and that the SDK's client then refuses: its check of structured content."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent

from banking_server.chaining import (
    META_KEY,
    FollowUpStatus,
    Step,
)

from ..kit.words import MODES
from .support import follow, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def listed(*_: Any) -> ListToolsResult:
    return ListToolsResult(tools=[tool("a"), tool("pay", outputSchema=NUMBERS)])


def server(list_tools: Callable[..., Awaitable[ListToolsResult]] = listed) -> Server[Any]:
    """A server whose `a` names `pay`, which does not keep to its output schema."""

    async def call_tool(_: Any, params: Any) -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text=f"{params.name} was done")],
            structured_content={"n": "seven"},
            _meta={META_KEY: {"tool": "pay"}} if params.name == "a" else None,
        )

    return Server("s", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.parametrize("mode", MODES)
async def test_a_result_that_breaks_its_schema_is_kept(mode: str) -> None:
    told: list[Step] = []
    async with Client(server(), mode=mode) as client:
        chain = await follow(client, "a", on_step=told.append, follow_unadvertised=True)
        # What the client does outside a chain is as before.
        with pytest.raises(RuntimeError, match="Invalid structured content"):
            await client.call_tool("pay", {})

    assert chain.detail.startswith('the client\'s check of what "pay" returned failed: ')
    assert [step.tool for step in chain.steps] == ["a", "pay"]
    assert tuple(told) == chain.steps
    assert [(call.tool, call.status) for call in chain.follow_ups] == [("pay", FollowUpStatus.MADE)]
    assert "pay was done" in str(chain.content)
