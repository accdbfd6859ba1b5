"""A shop: an order above the limit goes to a manager. It keeps its orders until it ends.

python shop.py              # stdio
python shop.py --http 8000  # Streamable HTTP, http://127.0.0.1:8000/mcp
"""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.tool_chaining import ToolChaining, with_next_tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

LIMIT = 100
"""More pieces than this need a manager."""

HARMLESS = ToolAnnotations(destructive_hint=False)

mcp = MCPServer("shop", extensions=[ToolChaining()])
orders: dict[str, str] = {}


def said(text: str, *, is_error: bool = False) -> CallToolResult:
    """Return a result of one text."""
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)


@mcp.tool(annotations=HARMLESS)
def place_order(
    sku: Annotated[str, Field(min_length=1)], quantity: Annotated[int, Field(ge=1)]
) -> CallToolResult:
    """Orders goods. An order above the limit waits for a manager."""
    order = f"order-{len(orders) + 1}"
    orders[order] = "waiting" if quantity > LIMIT else "placed"
    if quantity <= LIMIT:
        return said(f"{order}: {quantity} of {sku} are on their way.")
    result = said(f"{order}: a manager has to agree to more than {LIMIT} pieces.")
    return with_next_tool(
        result, "ask_manager", {"order": order}, title="Ask a manager to agree to a large order"
    )


@mcp.tool(annotations=HARMLESS)
def ask_manager(order: str) -> CallToolResult:
    """Asks a manager to agree to an order that waits."""
    if orders.get(order) != "waiting":
        return said(f"No order {order} waits for a manager.", is_error=True)
    orders[order] = "asked"
    return said(f"A manager will look at {order} today.")


if __name__ == "__main__":
    if "--http" in sys.argv:
        mcp.run("streamable-http", port=int(sys.argv[-1]))
    else:
        mcp.run("stdio")
