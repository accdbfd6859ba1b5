"""This project's client under test: a host around `Follower`.

What `specs/conformance/README.md` asks of a client under test, with both ways to be run: once, with
the URL as its last argument, or many times, a run on each line of its standard input.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client import ClientExtension
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tool_chaining import (
    CLIENT_EXTENSION,
    ChainResult,
    ConsentPolicy,
    Follower,
    NobodyToAsk,
    Proposal,
    Step,
)
from tool_chaining.result import Outcome
from tool_chaining.rules import Rule, Rules
from tool_chaining.tools import read_list
from tool_chaining_proxy.hosting.refused import note_status, telling_refusals


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


class Policy(ConsentPolicy):
    """What the host lets its model call, and what it asks the user about; one for all calls."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self.context = context
        self.trusts_hints = context.get("trustHints") is not False

    async def allows(self, proposal: Proposal) -> bool:
        denied = proposal.tool.name in self.context.get("deniedTools", [])
        if self.trusts_hints and proposal.tool.harmless and not denied:
            return True
        return await self.allows_again(proposal)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Ask the user, whatever the hints say."""
        name = proposal.tool.name
        if self.context.get("consent") == "nobody" and name not in self.context.get(
            "deniedTools", []
        ):
            raise NobodyToAsk
        return agrees(self.context, name)


async def _note_request(request: httpx2.Request) -> None:
    if b'"tools/call"' in request.content:
        note_status(None)


async def _note_response(response: httpx2.Response) -> None:
    if b'"tools/call"' in response.request.content:
        note_status(response.status_code)


NOTING: dict[str, list[Any]] = {"request": [_note_request], "response": [_note_response]}


class Caller(Client):
    """The SDK's client, whose errors do not show the HTTP status of a refusal."""

    async def call_tool(self, *given: Any, **options: Any) -> Any:
        """Make a call. Raises CallRefused if the server refused it over HTTP."""
        with telling_refusals():
            return await super().call_tool(*given, **options)


async def follow(
    url: str,
    context: Mapping[str, Any],
    legacy: bool,
    kind: type[Follower] = Follower,
    extension: ClientExtension = CLIENT_EXTENSION,
) -> dict[str, Any]:
    """Make the first calls, follow their chains, and return what the host hands on of the last."""

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    token = context.get("bearerToken")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    told: list[Step] = []
    chain: ChainResult | None = None
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, event_hooks=NOTING) as http,
            Caller(
                streamable_http_client(url, http_client=http),
                mode="legacy" if legacy else "auto",
                extensions=[extension],
                elicitation_callback=answer,
            ) as client,
        ):
            follower = kind(
                client,
                consent=Policy(context),
                call_timeout=context.get("timeoutSeconds", 30),
                on_step=told.append,
                rules=rules_of(context),
            )
            calls = [(context["tool"], context["arguments"])]
            calls += [(call["tool"], call["arguments"]) for call in context.get("furtherCalls", ())]
            urls = [context.get("cancelUrl"), *[None] * len(calls)]
            chains = [chain_of(follower, http, *each) for each in zip(calls, urls, strict=False)]
            if context.get("firstCallBy") == "model" and not await may_begin(follower, context):
                for each in chains:
                    each.close()
            elif context.get("atOnce"):
                chain = (await asyncio.gather(*chains))[-1]
            else:
                for each in chains:
                    chain = await each
    except Exception as error:
        # A connection that breaks takes the whole `async with` of the SDK's client with it.
        if not told:
            raise
        detail = f"the connection broke: {error}"
        chain = ChainResult("", Outcome.FAILED, detail, tuple(told))
    return {"outcome": "declined", "content": []} if chain is None else handed_on(chain)


def rules_of(context: Mapping[str, Any]) -> Rules | None:
    """Return the user's rule of this context, if it has one."""
    step = context.get("addedStep")
    if step is None:
        return None
    return Rules((Rule(1, step["after"], step["tool"], arguments=step["arguments"]),))


async def may_begin(follower: Follower, context: Mapping[str, Any]) -> bool:
    """Return whether the host lets its model make the first call."""
    listed = await read_list(follower.client, lambda _: None)
    tool = listed.tools[context["tool"]]
    assert follower.consent is not None
    return await follower.consent.allows(Proposal(tool, context["arguments"], 1, ""))


async def chain_of(
    follower: Follower, http: httpx2.AsyncClient, call: tuple[str, Any], cancel_url: str | None
) -> ChainResult:
    """Make a first call and follow its chain, until the user cancels it."""
    ended: list[ChainResult] = []
    with anyio.CancelScope() as scope:
        waiting = asyncio.create_task(wait_for_user(http, cancel_url, scope))
        try:
            await replace(follower, on_end=ended.append).call_tool(*call)
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
    result = chain.merged_json() if chain.steps else {"content": []}
    members = ("content", "isError", "structuredContent", "_meta")
    return {
        "isError": False,
        **{name: result[name] for name in members if name in result},
        "outcome": chain.outcome,
        "followUps": [{"tool": each.tool, "status": each.status} for each in chain.follow_ups],
    }


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"
    return json.dumps(asyncio.run(follow(url, context, legacy)))


def run_many(*how: Any) -> None:
    """Make a run for each line of standard input, and answer each with a line.

    `how`: the kind of `Follower` and the extension, if they are others than the library's own.
    """
    for line in sys.stdin:
        told = json.loads(line)
        legacy = told["protocolVersion"] == "2025-11-25"
        print(
            json.dumps(asyncio.run(follow(told["url"], told["context"], legacy, *how))),
            flush=True,
        )


if __name__ == "__main__":
    if os.environ.get("MCP_CONFORMANCE_RUNS") == "stdin":
        run_many()
    else:
        print(run_once(sys.argv[-1], os.environ))
