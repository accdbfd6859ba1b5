"""This project's client under test: a host around `call_tool_with_chaining`.

What `specs/conformance/README.md` asks of a client under test, with both ways to be run: once, with
the URL as its last argument, or many times, a run on each line of its standard input.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitResult

from tool_chaining import (
    CLIENT_EXTENSION,
    ChainResult,
    Directive,
    FollowNonDestructive,
    Outcome,
    Proposal,
    Step,
    call_tool_with_chaining,
    list_all_tools,
)


def agrees(context: Mapping[str, Any], tool: str) -> bool:
    """Return whether the user of this context agrees to a call, and the host does not deny it.

    Of a list of answers it is one after the other; the last one holds for all further questions.
    """
    if tool in context.get("deniedTools", []):
        return False
    answer = context.get("consentByTool", {}).get(tool, context.get("consent"))
    if isinstance(answer, list):
        answer = answer.pop(0) if len(answer) > 1 else answer[0]
    return bool(answer == "grant")


@dataclass
class Policy:
    """What the host lets its model call, and what it asks the user about; one for all calls."""

    context: Mapping[str, Any]

    async def allows(self, proposal: Proposal) -> bool:
        if (
            proposal.tool.name not in self.context.get("deniedTools", [])
            and self.context.get("trustHints", True)
            and await FollowNonDestructive().allows(proposal)
        ):
            return True
        return agrees(self.context, proposal.tool.name)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Ask the user, whatever the hints say."""
        return agrees(self.context, proposal.tool.name)


@dataclass
class Told:
    """What the chain told of itself on the way."""

    steps: list[Step] = field(default_factory=list[Step])
    proposals: list[Proposal] = field(default_factory=list[Proposal])

    def broken_off(self, error: Exception) -> ChainResult:
        """Return a chain of which nothing more will be heard."""
        started = [each for each in self.proposals if each.level > len(self.steps)]
        calls = [Directive(tool=each.tool.name, arguments=each.arguments) for each in started]
        return ChainResult(
            chain_id="",
            outcome=Outcome.FAILED,
            detail=f"the connection broke: {error}",
            steps=tuple(self.steps),
            started=calls[0] if calls else None,
        )


async def follow(url: str, context: Mapping[str, Any], legacy: bool) -> dict[str, Any]:
    """Make the first call, follow the chain, and return what the host hands on."""

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    token = context.get("bearerToken")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    told = Told()
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(
                streamable_http_client(url, http_client=http),
                mode="legacy" if legacy else "auto",
                extensions=[CLIENT_EXTENSION],
                elicitation_callback=answer,
            ) as client,
        ):
            for _ in range(context.get("chains", 1)):
                chain = await chain_of(client, http, context, told)
    except Exception as error:
        # A connection that breaks takes the whole `async with` of the SDK's client with it.
        if not told.steps:
            raise
        chain = told.broken_off(error)
    return {"outcome": "declined", "content": []} if chain is None else handed_on(chain)


async def chain_of(
    client: Client, http: httpx2.AsyncClient, context: Mapping[str, Any], told: "Told"
) -> ChainResult | None:
    """Make the first call and follow the chain; None if the host does not allow the first call."""
    policy = Policy(context)
    if context.get("firstCallBy") == "model":
        tools = {tool.name: tool for tool in await list_all_tools(client)}
        first = Proposal(tools[context["tool"]], context["arguments"], level=1, previous_tool="")
        if not await policy.allows(first):
            return None
    ended: list[ChainResult] = []
    with anyio.CancelScope() as scope:
        waiting = asyncio.create_task(wait_for_user(http, context.get("cancelUrl"), scope))
        try:
            await call_tool_with_chaining(
                client,
                context["tool"],
                context["arguments"],
                consent=policy,
                call_timeout=context.get("timeoutSeconds", 30),
                on_step=told.steps.append,
                on_proposal=told.proposals.append,
                on_end=ended.append,
            )
        finally:
            waiting.cancel()
    return ended[0]


async def wait_for_user(
    http: httpx2.AsyncClient, cancel_url: str | None, scope: anyio.CancelScope
) -> None:
    """Stop the chain when the user cancels, if the user may."""
    if cancel_url is not None:
        await http.get(cancel_url)
        scope.cancel()


def handed_on(chain: ChainResult) -> dict[str, Any]:
    merged = chain.merged() if chain.steps else CallToolResult(content=[])
    result = merged.model_dump(by_alias=True, exclude_none=True, mode="json")
    members = ("content", "isError", "structuredContent", "_meta")
    return {
        **{name: result[name] for name in members if name in result},
        "outcome": chain.outcome,
        "followUps": [{"tool": each.tool, "status": each.status} for each in chain.follow_ups],
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
