"""The client half of the patch as `tool-chaining-conformance client` wants it.

    tool-chaining-conformance client --one-process -- python client_under_test.py

It is a host that asks its user before each call but those that the server marks harmless.
`specs/conformance/README.md` says what the context of a run means.
"""

import json
import sys
from contextlib import nullcontext
from typing import Any

import anyio
import httpx2
from mcp.client import Client
from mcp.client.client import ConnectMode
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.client.tool_chaining import ProposedCall, ToolChain, ToolChaining
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, Tool

Json = dict[str, Any]


class Host:
    """The host of one run: its user, its policy, and what it prints."""

    def __init__(self, context: Json) -> None:
        self.context = context
        self.chain: ToolChain | None = None
        self.asked: dict[str, int] = {}

    def agrees(self, tool: Tool) -> bool:
        """What the user answers when asked about a call of this tool."""
        answer = self.context.get("consentByTool", {}).get(tool.name, self.context.get("consent"))
        if isinstance(answer, list):
            turn = self.asked.get(tool.name, 0)
            self.asked[tool.name] = turn + 1
            answer = answer[min(turn, len(answer) - 1)]
        return answer == "grant"

    def allows(self, tool: Tool, in_doubt: bool = False) -> bool:
        """The one policy, for the calls of the model and for follow-up calls."""
        if tool.name in self.context.get("deniedTools", []):
            return False
        hints = tool.annotations
        harmless = hints is not None and (
            hints.read_only_hint is True or hints.destructive_hint is False
        )
        if harmless and self.context.get("trustHints") is not False and not in_doubt:
            return True
        return self.agrees(tool)

    async def consent(self, call: ProposedCall) -> bool:
        """The consent callback of the extension."""
        return self.allows(call.tool, call.in_doubt)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """The elicitation callback of the client."""
        return ElicitResult.model_validate(self.context.get("elicitation", {"action": "decline"}))

    def ended(self, chain: ToolChain) -> None:
        """The chain callback of the extension."""
        self.chain = chain

    async def first_call(self, client: Client) -> CallToolResult | None:
        """Make the first call as the context says; None where it brought no result."""
        self.chain = None
        name, arguments = self.context["tool"], self.context.get("arguments", {})
        if self.context.get("firstCallBy") == "model":
            tools = (await client.list_tools()).tools
            tool = next((tool for tool in tools if tool.name == name), None)
            if tool is None or not self.allows(tool):
                return None
        progress = on_progress if self.context.get("progress") else None
        # The SDK does not notice that a stream ended without an answer: it waits for its time.
        patience = self.context.get("timeoutSeconds", 5)
        try:
            return await client.call_tool(
                name, arguments, read_timeout_seconds=patience, progress_callback=progress
            )
        except (
            Exception
        ) as error:  # whatever the first call raises is the end of the chain, and of no run
            print(f"The first call failed: {error!r}", file=sys.stderr)
            return None


async def on_progress(progress: float, total: float | None, message: str | None) -> None:
    """Listen to the progress of a call."""


async def take(url: str, version: str, context: Json) -> Json:
    """Make one run, and return what is printed."""
    host = Host(context)
    result: CallToolResult | None = None
    chaining = ToolChaining(consent_callback=host.consent, chain_callback=host.ended)
    mode: ConnectMode = "legacy" if version == "2025-11-25" else "auto"
    token = context.get("bearerToken")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:

        def client(of: str) -> Client:
            return Client(
                streamable_http_client(of, http_client=http),
                mode=mode,
                extensions=[chaining],
                elicitation_callback=host.elicit,
            )

        other = context.get("otherServerUrl")
        async with (
            client(url) as first,
            client(other) if other else nullcontext() as second,
            anyio.create_task_group() as tasks,
        ):
            if second is not None:
                await second.list_tools()
            if cancel_url := context.get("cancelUrl"):
                tasks.start_soon(cancelled_by, cancel_url, http, tasks.cancel_scope)
            for _ in range(context.get("chains", 1)):
                result = await host.first_call(first)
            tasks.cancel_scope.cancel()
    return printed(host.chain, result)


async def cancelled_by(url: str, http: httpx2.AsyncClient, scope: anyio.CancelScope) -> None:
    """Cancel the chain when the mock server says that the user does."""
    await http.get(url)
    scope.cancel()


def printed(chain: ToolChain | None, result: CallToolResult | None) -> Json:
    """What the host hands on: the merged result, and how the chain ended."""
    if chain is None:
        return {"content": [], "outcome": "declined"}
    if result is None and chain.results:  # cancelled
        result = chain.merged()
    follow_ups = [{"tool": call.tool, "status": call.effect} for call in chain.calls[1:]]
    merged = {"content": [], "isError": True}
    if result is not None:
        merged = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {**merged, "outcome": chain.outcome, "followUps": follow_ups}


async def main() -> None:
    """Take the runs from standard input, one a line."""
    async for line in anyio.wrap_file(sys.stdin):
        run = json.loads(line)
        answer = await take(run["url"], run["protocolVersion"], run["context"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    anyio.run(main)
