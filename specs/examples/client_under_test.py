"""The program around a client that follows chains, for the conformance suite.

    tool-chaining-conformance client --one-process -- python client_under_test.py

Replace `follow`, `User` and `Caller` by your client. A context has more members: `Your client` in
`specs/conformance/README.md` names them. What a program does not know it ignores.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tool_chaining import (
    CLIENT_EXTENSION,
    CallRefused,
    ChainResult,
    ConsentPolicy,
    Follower,
    NobodyToAsk,
    Proposal,
)


async def follow(url: str, revision: str, context: dict[str, Any]) -> dict[str, Any]:
    """Make the first calls, let the client follow the chains, and return what its host gets.

    Return a result however the chain ends: an exception counts as a crash. Without any result,
    return {"content": [], "outcome": "failed"}.
    """

    async def answer(*question: Any) -> ElicitResult:
        return ElicitResult.model_validate(context["elicitation"])

    mode = "legacy" if revision == "2025-11-25" else "auto"
    token = context.get("bearerToken")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, event_hooks={"response": [note_status]}) as http,
        Caller(
            streamable_http_client(url, http_client=http),
            mode=mode,
            extensions=[CLIENT_EXTENSION],
            elicitation_callback=answer,
        ) as client,
    ):
        ended: list[ChainResult] = []
        limit = context.get("timeoutSeconds", 30)
        user = User(context)
        follower = Follower(client, consent=user, call_timeout=limit, on_end=ended.append)

        async def chain(call: dict[str, Any]) -> None:
            with anyio.CancelScope() as scope:
                waiting = asyncio.create_task(wait_for_user(http, call.get("cancelUrl"), scope))
                try:
                    await follower.call_tool(call["tool"], call["arguments"])
                finally:
                    waiting.cancel()

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
        self.trusts_hints = context.get("trustHints", True)

    async def allows(self, proposal: Proposal) -> bool:
        """Ask the user, unless trusted hints call the tool harmless."""
        harmless = self.trusts_hints and proposal.tool.harmless
        return proposal.tool.name not in self.denied and (
            harmless or await self.allows_again(proposal)
        )

    async def allows_again(self, proposal: Proposal) -> bool:
        """Answer as the context of the run says."""
        answer = self.answers.get(proposal.tool.name, self.otherwise)
        if isinstance(answer, list):  # One for each question.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if answer == "nobody":
            raise NobodyToAsk
        return answer == "grant"


STATUSES: ContextVar[list[int]] = ContextVar("STATUSES")
"""The HTTP statuses of the responses to one call, which has several if the server asks the user."""


async def note_status(response: httpx2.Response) -> None:
    """Keep the status of a response to a call."""
    if b'"tools/call"' in response.request.content:
        STATUSES.get().append(response.status_code)


@contextmanager
def telling_refusals() -> Iterator[None]:
    """Raise CallRefused for a call in the block if the server refused it before it acted."""
    statuses: list[int] = []
    STATUSES.set(statuses)
    try:
        yield
    except MCPError as error:
        if statuses and {401, 403}.issuperset(statuses):
            raise CallRefused(str(error)) from error
        if 200 in statuses[:-1]:  # The server has begun, whatever it refuses now.
            raise RuntimeError(str(error)) from error
        raise


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
