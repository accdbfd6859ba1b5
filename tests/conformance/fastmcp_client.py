"""FastMCP's client under test: a host around the adapter for it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2
from fastmcp.client.elicitation import ElicitResult

from banking_server.adapters.fastmcp import ChainingClient
from banking_server.chaining import ChainResult, Proposal

from .project_client import Policy, handed_on


async def when_cancelled(url: str | None) -> None:
    """Wait until the user cancels."""
    if url is None:
        await asyncio.Event().wait()
    else:
        async with httpx2.AsyncClient(timeout=None) as http:
            await http.get(url)


async def follow(url: str, environment: Mapping[str, str]) -> str:
    """Make the first call, follow the chain, and return the merged result as JSON."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"
    policy = Policy(context.get("consent") == "grant", context.get("deniedTools", []))
    ended: list[ChainResult] = []

    async def answer(*question: Any) -> Any:
        return ElicitResult(**context["elicitation"])

    async def made_progress(*progress: Any) -> None:
        """Nobody looks at it."""

    async with ChainingClient(
        url,
        mode="legacy" if legacy else "auto",
        auth=context.get("bearerToken"),
        elicitation_handler=answer,
        progress_handler=made_progress,
        chaining={
            "consent": policy,
            "total_timeout": context.get("timeoutSeconds"),
            "on_end": ended.append,
        },
    ) as client:
        name, arguments = context["tool"], context["arguments"]
        if context.get("firstCallBy") == "model":
            tools = {tool.name: tool for tool in await client.list_tools()}
            if not await policy.allows(Proposal(tools[name], arguments, 1, previous_tool="")):
                return json.dumps({"outcome": "declined", "content": []})
        called = asyncio.create_task(client.call_tool_mcp(name, arguments))
        cancelled = asyncio.create_task(when_cancelled(context.get("cancelUrl")))
        await asyncio.wait({called, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        cancelled.cancel()
        called.cancel()
        [result, _] = await asyncio.gather(called, cancelled, return_exceptions=True)
    [chain] = ended
    told = handed_on(chain)
    if not isinstance(result, BaseException):
        told |= result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(told)
