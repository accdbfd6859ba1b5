"""FastMCP's client under test: following chains, written in a few lines around its `Client`."""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from banking_server.chaining import CLIENT_EXTENSION, IDENTIFIER, Found, Malformed, read_directive
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.values import canonical


async def obstacle(client: Any, name: str, arguments: Any, made: list[Any]) -> str | None:
    """Return how the chain ends before this call, or None."""
    if len(made) == 5:
        return "limit_reached"
    tools = {tool.name: tool for tool in await client.list_tools(cache_mode="refresh")}
    tool = tools.get(name)
    if tool is None:
        return "unknown_tool"
    if argument_problem(tool.input_schema, arguments):
        return "invalid_arguments"
    if (name, canonical(arguments)) in made:
        return "cycle"
    visibility = ((tool.meta or {}).get("ui") or {}).get("visibility", ["model"])
    hints = tool.annotations
    harmless = hints and (hints.read_only_hint or hints.destructive_hint is False)
    return None if "model" in visibility and harmless else "declined"


async def chain(client: Any, name: str, arguments: Any) -> tuple[str, list[Any]]:
    """Call a tool and follow its directives; return the outcome and all results."""
    made: list[Any] = []
    results: list[Any] = []
    provenance: dict[str, Any] = {"chainId": str(uuid.uuid4()), "level": 1}
    while True:
        made.append((name, canonical(arguments)))
        try:
            result = await client.call_tool_mcp(name, arguments, meta={IDENTIFIER: provenance})
        except Exception:
            return "failed", results
        results.append(result)
        reading = read_directive(result.meta)
        if not isinstance(reading, Found):
            malformed = isinstance(reading, Malformed)
            return "malformed_directive" if malformed else "completed", results
        provenance = {**provenance, "level": len(made) + 1, "previousTool": name}
        name, arguments = reading.directive.tool, reading.directive.arguments
        outcome = await obstacle(client, name, arguments, made)
        if outcome is not None:
            return outcome, results


async def follow(url: str, environment: Mapping[str, str]) -> str:
    """Make the first call, follow the chain, and return the merged result as JSON."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"

    async def answer(*question: Any) -> Any:
        return ElicitResult(**context["elicitation"])

    async with Client(
        url,
        mode="legacy" if legacy else "auto",
        extensions=[CLIENT_EXTENSION],
        elicitation_handler=answer,
    ) as client:
        outcome, results = await chain(client, context["tool"], context["arguments"])
    items = [
        item.model_dump(by_alias=True, exclude_none=True)
        for result in results
        for item in result.content
    ]
    content = [item for item in items if IDENTIFIER not in item.get("_meta", {})]
    return json.dumps({"outcome": outcome, "content": content})


if __name__ == "__main__":
    print(asyncio.run(follow(sys.argv[-1], os.environ)))
