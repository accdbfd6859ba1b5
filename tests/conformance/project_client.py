"""This project's client under test: a few lines around `call_tool_with_chaining`."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp.types import ElicitResult

from banking_server.chaining import CLIENT_EXTENSION, ChainFailed, call_tool_with_chaining


async def follow(url: str, environment: Mapping[str, str]) -> str:
    """Make the first call, follow the chain, and return the merged result as JSON."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    async with Client(
        url,
        mode="legacy" if legacy else "auto",
        extensions=[CLIENT_EXTENSION],
        elicitation_callback=answer,
    ) as client:
        try:
            chain = await call_tool_with_chaining(client, context["tool"], context["arguments"])
        except ChainFailed as failed:
            chain = failed.result
    content = [item.model_dump(by_alias=True, exclude_none=True) for item in chain.content]
    return json.dumps({"outcome": chain.outcome, "content": content})


if __name__ == "__main__":
    print(asyncio.run(follow(sys.argv[-1], os.environ)))
