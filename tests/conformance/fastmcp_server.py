"""A shop on FastMCP: a server that nobody here wrote, with two tools of ours.

`python fastmcp_server.py [--chaining] PORT`: with the option it has the server half, too.
"""

import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from mcp.types import TextContent

mcp: Any = FastMCP("fastmcp-shop")
if "--chaining" in sys.argv:
    from banking_server.adapters.fastmcp_server import ToolChainingMiddleware

    mcp.add_middleware(ToolChainingMiddleware())


@mcp.tool
def place_order(sku: str, quantity: int) -> ToolResult:
    """Order something."""
    order = f"{quantity} x {sku}"
    return ToolResult(
        content=[TextContent(type="text", text="A manager has to agree.")],
        meta={"nextTool": {"tool": "ask_manager", "arguments": {"order": order}}},
    )


@mcp.tool(annotations={"readOnlyHint": True})
def ask_manager(order: str) -> str:
    """Ask the manager."""
    return f"The manager was asked about {order}."


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[-1]), show_banner=False)
