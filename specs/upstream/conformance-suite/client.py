"""The Python half as a client of the scenario `tool-chaining-client`."""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client

from tool_chaining import CLIENT_EXTENSION, Proposal, call_tool_with_chaining


class User:
    """Agrees to each follow-up call but those of some tools."""

    def __init__(self, refused: list[str]) -> None:
        self.refused = refused

    async def allows(self, proposal: Proposal) -> bool:
        """Answer for the tool of the proposal."""
        return proposal.tool.name not in self.refused


async def run(url: str, revision: str, context: dict[str, Any]) -> None:
    """Call the tools of the context one after the other, and follow their chains."""
    mode = "legacy" if revision == "2025-11-25" else "auto"
    async with Client(url, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
        for tool in context["calls"]:
            await call_tool_with_chaining(client, tool, {}, consent=User(context["refused"]))


version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
asyncio.run(run(sys.argv[-1], version, json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])))
