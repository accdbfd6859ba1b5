"""A client that makes a fixed number of chains, whose instructions can be counted.

`python -m tests.benchmark.one_client URL TOKEN CHAINS two|chain` makes each chain's two calls by
itself, or lets the library follow the directive.
"""

import asyncio
import sys
from functools import partial

from mcp import Client

from tool_chaining import Follower, TrustHints

from ..kit.servers import http_client
from .load import MONEY

FIRST, SECOND = "prepare_money_transfer", "request_agent_handoff"


async def two_calls(client: Client) -> None:
    one = await client.call_tool(FIRST, MONEY)
    two = await client.call_tool(SECOND, (one.meta or {})["nextTool"]["arguments"])
    assert not two.is_error, two


async def follow(follower: Follower) -> None:
    done = await follower.call_tool(FIRST, MONEY)
    assert [step.tool for step in done.steps] == [FIRST, SECOND], done


async def main(url: str, token: str, chains: str, way: str) -> None:
    async with http_client(url, token, "auto") as client:
        follower = Follower(client, consent=TrustHints())
        ways = {"two": partial(two_calls, client), "chain": partial(follow, follower)}
        for make in (*ways.values(), *[ways[way]] * int(chains)):
            await make()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
