"""A client of `orders.py`: it makes one call, and follows the chain."""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

from tool_chaining import CLIENT_EXTENSION, Follower, TrustHints

ORDERS = str(Path(__file__).with_name("orders.py"))


async def main() -> None:
    """Cancel an order, and print what was called and what the server said."""
    server = StdioServerParameters(command=sys.executable, args=[ORDERS])
    async with Client(server, extensions=[CLIENT_EXTENSION]) as client:
        follower = Follower(client, consent=TrustHints())
        chain = await follower.call_tool("cancel_order", {"order": "A-17"})
        print(chain.outcome, [step.tool for step in chain.steps])
        for item in chain.content:
            if item["type"] == "text":
                print(item["text"])


asyncio.run(main())
