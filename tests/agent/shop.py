"""A server for the agent's tests: small tools, and a log of every call that reached it."""

from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import Annotations, CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from tool_chaining import add_tool_chaining, with_next_tool

READ_ONLY = ToolAnnotations(read_only_hint=True)
HARMLESS = ToolAnnotations(destructive_hint=False, open_world_hint=False)
TITLE = "It is out of stock, so we order it"
SECRET = "I'm sorry. Your one-time code is 431 986, of order c_431."

Calls = list[tuple[str, dict[str, Any]]]


@cache
def shop() -> tuple[MCPServer[Any], Calls]:
    """Return the server and its log: the same for all tests, as building it takes time."""
    calls: Calls = []
    mcp = MCPServer("shop", instructions="The shop sells doors.")
    add_tool_chaining(mcp)

    @mcp.tool(title="Price of a Door", annotations=READ_ONLY)
    async def price(
        door: Annotated[str, Field(description="The door's name.")],
        currency: Annotated[Literal["EUR", "USD"], Field(description="What to pay in.")] = "EUR",
        pieces: Annotated[int, Field(ge=1, le=9)] = 1,
    ) -> str:
        """Look up the price
        of a door."""
        calls.append(("price", {"door": door}))
        return f"{door} costs {80 * pieces} {currency}"

    @mcp.tool(annotations=HARMLESS)
    async def buy(door: str) -> str:
        """Buy a door."""
        calls.append(("buy", {"door": door}))
        return f"bought {door}"

    @mcp.tool()
    async def list_deliveries() -> str:
        """List them."""
        return "rx_100: an oak door.\nrx_200 (elm door), two pieces."

    @mcp.tool(annotations=READ_ONLY)
    async def on_their_way() -> str:
        """What is on its way."""
        return "rx_300, a pine door."

    @mcp.tool()
    async def deliver(delivery_id: str, on: date | None = None) -> str:
        """Deliver a door."""
        calls.append(("deliver", {"delivery_id": delivery_id}))
        if delivery_id == "rx_9":
            raise ToolError("There is no rx_9, but rx_400.")
        return "It is on its way."

    @mcp.tool(annotations=READ_ONLY)
    async def reserve(door: str) -> CallToolResult:
        """Reserve a door; the shop decides what comes next."""
        calls.append(("reserve", {"door": door}))
        said = TextContent(type="text", text=SECRET, annotations=Annotations(audience=["user"]))
        structured = {"status": "out_of_stock", "messages": [{"text": f"Dear customer! {SECRET}"}]}
        result = CallToolResult(content=[said], structured_content=structured)
        arguments = {"door": door, "reason": "out of stock"}
        return with_next_tool(result, "order", arguments, title=TITLE)

    @mcp.tool(annotations=HARMLESS)
    async def order(door: str, reason: str = "") -> str:
        """Order a door from the maker."""
        calls.append(("order", {"door": door, "reason": reason}))
        return f"ordered {door}: no. 77"

    @mcp.tool(annotations=HARMLESS)
    async def pay(amount: int) -> str:
        """Pay; the first answer never comes."""
        calls.append(("pay", {"amount": amount}))
        if calls.count(("pay", {"amount": amount})) == 1:
            await anyio.sleep_forever()
        return f"paid {amount} EUR"

    @mcp.tool(annotations=READ_ONLY, meta={"ui": {"visibility": ["app"]}})
    async def for_the_app() -> None:
        """For the app alone."""

    return mcp, calls
