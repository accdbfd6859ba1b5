"""The program around a client that follows chains, for the conformance suite.

    tool-chaining-conformance client --one-process -- python client_under_test.py

Replace `follow`, `User` and `Caller` by your client. `Your client` in `specs/conformance/README.md`
names the members of a context. Your program may ignore those that your client has no use for.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tool_chaining import (
    CLIENT_EXTENSION,
    ChainResult,
    ConsentPolicy,
    Follower,
    NobodyToAsk,
    Proposal,
)
from tool_chaining.hosting.refused import telling_refusals
from tool_chaining.hosting.untrusted import ResilientHttpClient


async def follow(url: str, revision: str, context: dict[str, Any]) -> dict[str, Any]:
    """Make the first calls, let the client follow the chains, and return what its host gets.

    Return a result however the chain ends: an exception counts as a crash. Without any result,
    return {"content": [], "outcome": "failed"}.
    """

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    token = context.get("bearerToken")
    http = ResilientHttpClient(
        headers={"Authorization": f"Bearer {token}"} if token else {},
        # The mock server is on this machine: it needs no proxy, and no certificates.
        transport=httpx2.AsyncHTTPTransport(verify=False),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(http)
        clients = []
        for each in (url, context.get("otherServerUrl")):
            if each is not None:
                client = Caller(
                    streamable_http_client(each, http_client=http),
                    mode="legacy" if revision == "2025-11-25" else "auto",
                    extensions=[CLIENT_EXTENSION],
                    elicitation_callback=answer,
                )
                clients.append(await stack.enter_async_context(client))
        ended: list[ChainResult] = []
        user = User(context)
        follower = Follower(
            clients[0],
            consent=user,
            call_timeout=context.get("timeoutSeconds", 30),
            on_end=ended.append,
            rules=rules_of(context),
        )

        async def chain(call: dict[str, Any]) -> None:
            with anyio.CancelScope() as scope:
                waiting = asyncio.create_task(wait_for_user(http, call.get("cancelUrl"), scope))
                try:
                    result = await follower.call_tool(call["tool"], call["arguments"])
                finally:
                    waiting.cancel()
                if "cancelledUrl" in call:  # The user cancels now, too late.
                    follower.not_delivered(result)
                    await http.get(call["cancelledUrl"])

        if context.get("firstCallBy") == "model":
            listed = await follower.tools.read(clients[0], context["tool"])
            if not (listed and await user.allows(Proposal(listed, context["arguments"], 1, ""))):
                return {"content": [], "outcome": "declined"}
        begun = [context, *context.get("furtherCalls", ())]
        if context.get("atOnce"):
            await asyncio.gather(*map(chain, begun))
        else:
            for call in begun:
                await chain(call)
    last = ended[-1]
    result = last.merged_json() if last.steps else {"content": []}
    calls = [{"tool": each.tool, "status": each.status} for each in last.follow_ups]
    return {"isError": False, **result, "outcome": last.outcome, "followUps": calls}


def rules_of(context: dict[str, Any]) -> Any:
    """Return the rules of the user, if the context adds a step."""
    if (step := context.get("addedStep")) is None:
        return None
    from tool_chaining.rules import Rule, Rules

    return Rules((Rule(1, step["after"], step["tool"], arguments=step["arguments"]),))


async def wait_for_user(
    http: httpx2.AsyncClient, url: str | None, scope: anyio.CancelScope
) -> None:
    """Cancel a chain when the user does, if the context has a `cancelUrl`."""
    if url is not None:
        await http.get(url)
        scope.cancel()


class User(ConsentPolicy):
    """The user of one run, who is asked before each follow-up call that the hints do not excuse."""

    def __init__(self, context: dict[str, Any]) -> None:
        self.answers = context.get("consentByTool", {})
        self.otherwise = context["consent"]
        self.denied = context.get("deniedTools", ())
        self.again = context.get("again", ())
        self.takes = context.get("answersAfterMs", 0) / 1000
        self.trusts_hints = context.get("trustHints", True)

    async def allows(self, proposal: Proposal) -> bool:
        """Ask the user, unless trusted hints call the tool harmless."""
        harmless = self.trusts_hints and proposal.tool.harmless
        return proposal.tool.name not in self.denied and (
            harmless or await self.allows_again(proposal)
        )

    async def may_repeat(self, proposal: Proposal) -> bool:
        """Return whether the user agreed beforehand that the tool may be called again."""
        return proposal.tool.name in self.again

    async def allows_again(self, proposal: Proposal) -> bool:
        """Answer as the context of the run says."""
        await anyio.sleep(self.takes)
        answer = self.answers.get(proposal.tool.name, self.otherwise)
        if isinstance(answer, list):  # One for each question.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if answer == "nobody":
            raise NobodyToAsk
        return answer == "grant"


class Caller(Client):
    """The SDK's client. Its errors do not show the HTTP status, so this class raises others."""

    async def call_tool(self, *given: Any, **options: Any) -> Any:
        """Make a call. Raises CallRefused if the server refused it before it acted."""
        with telling_refusals():
            return await super().call_tool(*given, **options)


def run(url: str, revision: str, context: dict[str, Any]) -> None:
    """Make one run, and print its result as one line of JSON."""
    print(json.dumps(asyncio.run(follow(url, revision, context))), flush=True)


def main() -> None:
    """Make a run for each line of standard input with --one-process, and one run without."""
    if os.environ.get("MCP_CONFORMANCE_RUNS") == "stdin":
        for line in sys.stdin:
            told = json.loads(line)
            run(told["url"], told["protocolVersion"], told["context"])
    else:
        version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
        run(sys.argv[-1], version, json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"]))


if __name__ == "__main__":
    main()
