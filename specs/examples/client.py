"""A client of `orders.py`: it makes one call, and follows the chain."""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

from tool_chaining import (
    CLIENT_EXTENSION,
    CallsInDoubt,
    FollowNonDestructive,
    call_tool_with_chaining,
)

ORDERS = str(Path(__file__).with_name("orders.py"))
IN_DOUBT = CallsInDoubt()  # One for the conversation, also over a new connection.


async def main() -> None:
    """Cancel an order, and print what was called and what the server said."""
    server = StdioServerParameters(command=sys.executable, args=[ORDERS])
    async with Client(server, extensions=[CLIENT_EXTENSION]) as client:
        chain = await call_tool_with_chaining(
            client,
            "cancel_order",
            {"order": "A-17"},
            consent=FollowNonDestructive(),
            in_doubt=IN_DOUBT,
        )
        print(chain.outcome, [step.tool for step in chain.steps])
        for block in chain.content:
            if block.type == "text":
                print(block.text)


asyncio.run(main())
