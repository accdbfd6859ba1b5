"""The server half on FastMCP: what it keeps back."""

from typing import Any

import pytest
from mcp import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, InputRequiredResult

from ..chaining.support import errors
from .support import missing

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("fastmcp", "pip install '.[dev]'")),
]

GOOD = {"tool": "target", "arguments": {"order": "A-17"}}


@pytest.fixture
def client() -> Any:
    """A client of a server with some tools that a model cannot call."""
    from fastmcp import Client, Context, FastMCP
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools import ToolResult

    from tool_chaining.adapters.fastmcp_server import ToolChainingMiddleware

    class Hiding(Middleware):
        """Keeps a tool out of the list, though it could be called."""

        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return [tool for tool in await call_next(context) if tool.name != "hidden"]

    mcp: Any = FastMCP("orders", middleware=[Hiding(), ToolChainingMiddleware()])

    @mcp.tool
    def send(directive: Any) -> ToolResult:
        meta = {"nextTool": directive, "kept": True}
        return ToolResult("Sent.", structured_content={"nextStep": directive}, meta=meta)

    @mcp.tool(annotations={"readOnlyHint": True})
    def target(order: str) -> str:
        return f"Returned {order}."

    @mcp.tool
    async def ask(ctx: Context) -> Any:
        return InputRequiredResult(request_state="s", _meta={"nextTool": GOOD})

    @mcp.tool
    def pay() -> str:
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "a nested call was refused")

    mcp.tool(lambda: "Not listed.", name="hidden")
    return Client(mcp)


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        ({"tool": "hidden"}, '"hidden" of tool "send": this server lists no tool "hidden"'),
        ({"tool": "target"}, '"target" of tool "send": arguments: '),
    ],
    ids=str,
)
async def test_an_invalid_directive_is_logged_and_dropped(
    directive: Any, problem: str, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with client:
        result = await client.call_tool_mcp("send", {"directive": directive})
    assert result.meta is not None
    assert "nextTool" not in result.meta
    assert result.meta["kept"] is True
    assert len(result.content) == 1
    [dropped] = errors(caplog)
    assert problem in dropped


async def test_an_interim_result_names_no_tool(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with client:
        first = await client.session.call_tool("ask", {}, allow_input_required=True)
    assert isinstance(first, InputRequiredResult)
    assert first.meta is None or "nextTool" not in first.meta
    assert "interim" in errors(caplog)[0]


async def test_a_tool_that_has_begun_refuses_nothing(client: Any) -> None:
    """A client believes a refusal, and could make the call again (TC-S-36)."""
    async with client:
        result = await client.call_tool_mcp("pay", {})
    assert result.is_error
    assert [item.text for item in result.content] == ["a nested call was refused"]
