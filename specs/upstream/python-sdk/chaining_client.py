"""A client extension on the hook: `Client.call_tool` follows the chain.

    python chaining_client.py

It cancels an order of `specs/examples/orders.py`, and prints the texts of the one result.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client import ClientExtension, ToolCallContext, ToolCallNext
from mcp.types import CallToolRequestParams, CallToolResult

from tool_chaining import IDENTIFIER, Conversation, Follower, ToolCaller, TrustHints
from tool_chaining.directive import SETTINGS
from tool_chaining.tools import page_as_json

ORDERS = str(Path(__file__).parents[2] / "examples" / "orders.py")


class ToolChaining(ClientExtension):
    """Follows the chains of one client's calls. Each call has one result."""

    identifier = IDENTIFIER

    def __init__(self) -> None:
        self._conversation = Conversation()

    def settings(self) -> dict[str, Any]:
        """Declare the extension (TC-C-01)."""
        return SETTINGS

    def follower(self, caller: ToolCaller) -> Follower:
        """Return what follows one chain. A host that asks its user overrides this."""
        return Follower(caller, consent=TrustHints(), conversation=self._conversation)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ToolCallContext, call_next: ToolCallNext
    ) -> CallToolResult:
        """Make the call, and each call that the results name."""
        follower = self.follower(_Connection(ctx, call_next))
        chain = await follower.call_tool(params.name, params.arguments, meta=params.meta)
        if not chain.steps:
            chain.raise_for_failure()
        return chain.merged()


class _Connection:
    """The client below the hook, as the library wants it."""

    def __init__(self, ctx: ToolCallContext, call_next: ToolCallNext) -> None:
        self._session, self._call = ctx.session, call_next
        self.protocol_version = ctx.session.protocol_version
        self.server_capabilities = ctx.session.server_capabilities

    async def call_tool(
        self, name: str, arguments: dict[str, Any], /, *, read_timeout_seconds: Any, meta: Any
    ) -> CallToolResult:
        # The hook takes no time limit: the caller's holds for each call.
        return await self._call(CallToolRequestParams(name=name, arguments=arguments, _meta=meta))

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> dict[str, Any]:
        return await page_as_json(self._session, cursor)


async def main() -> None:
    """Cancel an order with one call."""
    server = StdioServerParameters(command=sys.executable, args=[ORDERS])
    async with Client(server, extensions=[ToolChaining()]) as client:
        result = await client.call_tool("cancel_order", {"order": "A-17"})
    for block in result.content:
        if block.type == "text":
            print(block.text)


if __name__ == "__main__":
    asyncio.run(main())
