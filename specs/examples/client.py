import asyncio
import sys

from mcp import Client, StdioServerParameters

from banking_server.chaining import CLIENT_EXTENSION, FollowNonDestructive, call_tool_with_chaining


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=["orders.py"])
    async with Client(server, extensions=[CLIENT_EXTENSION]) as client:
        chain = await call_tool_with_chaining(
            client, "cancel_order", {"order": "A-17"}, consent=FollowNonDestructive()
        )
        print(chain.outcome, [step.tool for step in chain.steps])
        for block in chain.content:
            if block.type == "text":
                print(block.text)


asyncio.run(main())
