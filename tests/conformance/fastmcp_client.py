"""FastMCP's client under test: a host that follows chains, written around its `Client`."""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Mapping
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from banking_server.chaining import (
    CLIENT_EXTENSION,
    IDENTIFIER,
    Found,
    Malformed,
    hidden_from_model,
    read_directive,
)
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.caller import advertised
from banking_server.chaining.values import canonical


class Host:
    """One chain, and what came of it."""

    def __init__(self, client: Any, context: Mapping[str, Any]) -> None:
        self.client, self.context = client, context
        self.made: list[tuple[str, str]] = []
        self.results: list[Any] = []
        self.not_made: list[str] = []

    async def follow(self, name: str, arguments: Any) -> str:
        """Call a tool and follow its directives; return the outcome."""
        if self.context.get("firstCallBy") == "model" and await self.obstacle(name, arguments):
            return "declined"
        provenance: dict[str, Any] = {"chainId": str(uuid.uuid4()), "level": 1}
        while True:
            self.made.append((name, canonical(arguments)))
            try:
                result = await self.client.call_tool_mcp(
                    name, arguments, meta={IDENTIFIER: provenance}
                )
            except Exception:
                return "failed"
            if result.result_type != "complete":
                return "failed"
            self.results.append(result)
            reading = read_directive(result.meta)
            if not isinstance(reading, Found):
                return "malformed_directive" if isinstance(reading, Malformed) else "completed"
            provenance = {**provenance, "level": len(self.made) + 1, "previousTool": name}
            name, arguments = reading.directive.tool, reading.directive.arguments
            outcome = await self.obstacle(name, arguments)
            if outcome is not None:
                self.not_made = [name]
                return outcome

    async def obstacle(self, name: str, arguments: Any) -> str | None:
        """Return how the chain ends before this call, or None."""
        if len(self.made) == 5:
            return "limit_reached"
        tools = await self.client.list_tools(cache_mode="refresh")
        named = [tool for tool in tools if tool.name == name]
        if len(named) != 1:
            return "unknown_tool"
        [tool] = named
        if argument_problem(tool.input_schema, arguments):
            return "invalid_arguments"
        if (name, canonical(arguments)) in self.made:
            return "cycle"
        hints = tool.annotations
        harmless = hints and (hints.read_only_hint or hints.destructive_hint is False)
        agreed = harmless or self.context.get("consent") == "grant"
        denied = name in self.context.get("deniedTools", []) or hidden_from_model(tool.meta)
        unknown = self.made and advertised(self.client) is False
        return None if agreed and not denied and not unknown else "declined"

    def handed_on(self, outcome: str) -> dict[str, Any]:
        """Return what a model would be told."""
        follow_ups = [
            {"tool": name, "fate": "made" if place < len(self.results) else "unknown"}
            for place, (name, _) in enumerate(self.made)
            if place
        ] + [{"tool": name, "fate": "not_made"} for name in self.not_made]
        results = [result.model_dump(by_alias=True, exclude_none=True) for result in self.results]
        content = [
            item
            for result in results
            for item in result["content"]
            if IDENTIFIER not in item.get("_meta", {})
        ]
        said = "; ".join(f"{each['tool']}: {each['fate']}" for each in follow_ups)
        return {
            "outcome": outcome,
            "content": [*content, {"type": "text", "text": f"Follow-up calls: {said}."}],
            "isError": bool(results and results[-1].get("isError")),
            "followUps": follow_ups,
        }


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

    async def answer(*question: Any) -> Any:
        return ElicitResult(**context["elicitation"])

    async with Client(
        url,
        mode="legacy" if legacy else "auto",
        auth=context.get("bearerToken"),
        extensions=[CLIENT_EXTENSION],
        elicitation_handler=answer,
    ) as client:
        host = Host(client, context)
        cancelled = asyncio.create_task(when_cancelled(context.get("cancelUrl")))
        chain = asyncio.create_task(host.follow(context["tool"], context["arguments"]))
        await asyncio.wait(
            {chain, cancelled},
            timeout=context.get("timeoutSeconds"),
            return_when=asyncio.FIRST_COMPLETED,
        )
        outcome = "cancelled" if cancelled.done() else "failed"
        if chain.done():
            outcome = chain.result()
        cancelled.cancel()
        chain.cancel()
        await asyncio.gather(chain, cancelled, return_exceptions=True)
    return json.dumps(host.handed_on(outcome))


if __name__ == "__main__":
    print(asyncio.run(follow(sys.argv[-1], os.environ)))
