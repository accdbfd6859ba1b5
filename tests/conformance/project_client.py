"""This project's client under test: a host around `call_tool_with_chaining`.

What `specs/conformance/README.md` asks of a client under test, with both ways to be run: once, with
the URL as its last argument, or many times, a run on each line of its standard input.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitResult

from banking_server.chaining import (
    CLIENT_EXTENSION,
    ChainFailed,
    ChainResult,
    ChainStop,
    FollowNonDestructive,
    Proposal,
    ToolCatalog,
    call_tool_with_chaining,
)


@dataclass
class Policy:
    """What the host lets its model call, and what it asks the user about; one for all calls."""

    granted: bool
    """What the user answers."""
    denied: list[str]

    async def allows(self, proposal: Proposal) -> bool:
        if proposal.tool.name in self.denied:
            return False
        return self.granted or await FollowNonDestructive().allows(proposal)


@dataclass
class Caller:
    """The client, which asks for the progress of the first call if it is told to."""

    client: Client
    progress: bool
    numbers: list[float] = field(default_factory=list[float])

    async def call_tool(self, *arguments: Any, **options: Any) -> CallToolResult:
        if self.progress:
            options["progress_callback"] = self.note
            self.progress = False
        return await self.client.call_tool(*arguments, **options)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.numbers.append(progress)

    async def list_tools(self, **options: Any) -> Any:
        return await self.client.list_tools(**options)


async def follow(url: str, context: Mapping[str, Any], legacy: bool) -> dict[str, Any]:
    """Make the first call, follow the chain, and return what the host hands on."""

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    policy = Policy(context.get("consent") == "grant", context.get("deniedTools", []))
    stop = ChainStop()
    token = context.get("bearerToken")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=30
            )
        )
        client = await stack.enter_async_context(
            Client(
                streamable_http_client(url, http_client=http),
                mode="legacy" if legacy else "auto",
                extensions=[CLIENT_EXTENSION],
                elicitation_callback=answer,
            )
        )
        if context.get("firstCallBy") == "model":
            tool = await ToolCatalog(client).find(context["tool"])
            first = tool and Proposal(tool, context["arguments"], level=1, previous_tool="")
            if first is None or not await policy.allows(first):
                return {"outcome": "declined", "content": []}
        waiting = asyncio.create_task(wait_for_user(http, context.get("cancelUrl"), stop))
        try:
            chain = await call_tool_with_chaining(
                Caller(client, context.get("progress", False)),
                context["tool"],
                context["arguments"],
                consent=policy,
                total_timeout=context.get("timeoutSeconds"),
                stop=stop,
            )
        except ChainFailed as failed:
            chain = failed.result
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    return handed_on(chain)


async def wait_for_user(http: httpx2.AsyncClient, cancel_url: str | None, stop: ChainStop) -> None:
    """Stop the chain when the user cancels, if the user may."""
    if cancel_url is not None:
        await http.get(cancel_url)
        stop.stop()


def handed_on(chain: ChainResult) -> dict[str, Any]:
    merged = chain.merged() if chain.steps else CallToolResult(content=[])
    result = merged.model_dump(by_alias=True, exclude_none=True, mode="json")
    members = ("content", "isError", "structuredContent", "_meta")
    return {
        **{name: result[name] for name in members if name in result},
        "outcome": chain.outcome,
        "followUps": [{"tool": each.tool, "fate": each.fate} for each in chain.follow_ups],
    }


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"
    return json.dumps(asyncio.run(follow(url, context, legacy)))


def run_many() -> None:
    """Make a run for each line of standard input, and answer each with a line."""
    for line in sys.stdin:
        told = json.loads(line)
        legacy = told["protocolVersion"] == "2025-11-25"
        print(json.dumps(asyncio.run(follow(told["url"], told["context"], legacy))), flush=True)


if __name__ == "__main__":
    if os.environ.get("MCP_CONFORMANCE_RUNS") == "stdin":
        run_many()
    else:
        print(run_once(sys.argv[-1], os.environ))
