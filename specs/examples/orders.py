"""A server of two tools: an order that was sent cannot be cancelled, and so a return is opened."""

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ToolAnnotations

from tool_chaining import add_tool_chaining, with_next_tool

mcp = MCPServer("orders")
add_tool_chaining(mcp)


@mcp.tool()
async def cancel_order(order: str) -> CallToolResult:
    """Cancel an order that was not sent yet."""
    return with_next_tool(f"{order} has shipped.", "open_return", {"order": order})


@mcp.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
async def open_return(order: str) -> str:
    """Send the customer a label to return an order."""
    return f"The label to return {order} is on its way."


if __name__ == "__main__":
    mcp.run()
