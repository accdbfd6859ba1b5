"""A server on FastMCP with our half, and the two clients that it is asked by."""

from typing import Any

from fastmcp import Client, Context, FastMCP
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp_types import InputRequiredResult

from banking_server.adapters.fastmcp import ChainingClient
from banking_server.adapters.fastmcp_server import ToolChainingMiddleware

__all__ = ["ChainingClient", "Client", "server"]


class Hiding(Middleware):
    """Keeps a tool out of the list, though it could be called."""

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        return [tool for tool in await call_next(context) if tool.name != "hidden"]


def server() -> FastMCP[Any]:
    mcp: Any = FastMCP("orders", middleware=[Hiding(), ToolChainingMiddleware()])

    @mcp.tool
    def send(directive: Any, text: str = "It has shipped.") -> ToolResult:
        content = text or []
        meta = {"nextTool": directive, "kept": True}
        return ToolResult(content, structured_content={"nextStep": directive}, meta=meta)

    @mcp.tool(annotations={"readOnlyHint": True})
    async def target(order: str, ctx: Context) -> str:
        await ctx.report_progress(2)
        return f"Returned {order}."

    @mcp.tool(meta={"ui": {"visibility": ["app"]}})
    def for_people() -> str:
        return "Only in the app."

    @mcp.tool
    def hidden() -> str:
        return "Not listed."

    @mcp.tool
    def disabled() -> str:
        return "Not listed."

    @mcp.tool
    async def ask(ctx: Context) -> Any:
        directive = {"tool": "target", "arguments": {"order": "A-17"}}
        return InputRequiredResult(request_state="s", _meta={"nextTool": directive})

    mcp.disable(names={"disabled"})
    return mcp  # type: ignore[no-any-return]
