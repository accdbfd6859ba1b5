"""The proxy as the client under test: a plain client in front of it follows nothing.

What `specs/conformance/README.md` asks of a client under test. The proxy is served in this process,
over streams in memory, since each run needs one of its own.
"""

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.types import ElicitResult

from tool_chaining_proxy.consent import MakePolicy, consent_of
from tool_chaining_proxy.options import Address, ProxyOptions

from ..conformance.project_client import agrees, rules_of
from .wire import CHAINING, OLD, proxy_in_memory

CONSENT = re.compile(r'(?:Your rule \d+|The server) wants to call ("(?:[^"\\]|\\.)+") after .*')
"""How the proxy asks its user."""


class Host:
    """A host with a user: it knows nothing of chains, and reads what the proxy tells of them."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
        legacy = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] == OLD
        self.mode = "legacy" if legacy else "auto"
        self.folder = folder

    @property
    def consent(self) -> MakePolicy:
        """What is given to the proxy as `--consent`: rules, if the user or the host is particular.

        A user who would say no to all of it may have said that the hints are trusted.
        """
        if self.context.get("atOnce") and self.context["consent"] == "grant":
            # On 2026-07-28 a question is handed out, and a chain that waits for it gives up its
            # turn. So the user agrees beforehand.
            return consent_of("all")
        denied = self.context.get("deniedTools", [])
        if self.context["consent"] != "grant" and "consentByTool" not in self.context:
            return consent_of(None, trust_hints=self.context.get("trustHints") is not False)
        rules = self.folder / "rules"
        rules.write_text("".join([*(f"deny {tool}\n" for tool in denied), "ask *\n"]))
        return consent_of(str(rules))

    def options(self, url: str) -> ProxyOptions:
        token = self.context.get("bearerToken")
        return ProxyOptions(
            server=Address(url, f"Bearer {token}" if token else None),
            consent=self.consent,
            time_limit=self.context.get("timeoutSeconds"),
            rules=rules_of(self.context),
        )

    async def on_question(self, _: Any, asked: Any) -> ElicitResult:
        about = CONSENT.fullmatch(asked.message)
        if about is None:
            return ElicitResult.model_validate(self.context["elicitation"])
        return ElicitResult(
            action="accept" if agrees(self.context, json.loads(about[1])) else "decline"
        )

    async def run(self, url: str) -> dict[str, Any]:
        """Make the first call through the proxy, and return what came of it."""
        async with AsyncExitStack() as stack:
            clients, asks = [], self.context["consent"] != "nobody"
            # A host of two servers has a proxy in front of each.
            for each in [url, *filter(None, [self.context.get("otherServerUrl")])]:
                client = Client(
                    proxy_in_memory(self.options(each)),
                    mode=self.mode,
                    elicitation_callback=self.on_question if asks else None,
                )
                clients.append(await stack.enter_async_context(client))
            if len(clients) > 1:
                await clients[1].list_tools()
            tool = self.context["tool"]
            if self.context.get("firstCallBy") == "model" and not agrees(self.context, tool):
                return {"outcome": "declined", "content": []}
            made = [self.context, *self.context.get("furtherCalls", ())]
            calls = [self.call(clients[0], each["tool"], each["arguments"]) for each in made]
            calls[0] = self.until_cancelled(calls[0])
            if self.context.get("atOnce"):
                return (await asyncio.gather(*calls))[-1]
            return [await call for call in calls][-1]

    async def until_cancelled(self, call: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Make a call, unless the user cancels it; whoever gave a request up knows no more."""
        made, cancelled = asyncio.create_task(call), asyncio.create_task(self.cancelled())
        await asyncio.wait({made, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        cancelled.cancel()
        made.cancel()
        [printed, _] = await asyncio.gather(made, cancelled, return_exceptions=True)
        if isinstance(printed, BaseException):
            return {"outcome": "cancelled", "content": []}
        return printed

    async def call(self, client: Client, tool: str, arguments: Any) -> dict[str, Any]:
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError:
            return {"outcome": "failed", "content": []}
        printed = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        meta = printed.get("_meta", {})
        # The proxy leaves a directive only in the result of a server that it does not follow.
        untold = "declined" if "nextTool" in meta else "completed"
        told = meta.get(CHAINING, {"outcome": untold, "followUps": []})
        ups = [{k: each[k] for k in ("tool", "status") if k in each} for each in told["followUps"]]
        return {**printed, "outcome": told["outcome"], "followUps": ups}

    async def cancelled(self) -> None:
        """Wait until the user cancels."""
        url = self.context.get("cancelUrl")
        if url is None:
            await asyncio.Event().wait()
        async with httpx2.AsyncClient(timeout=None) as http:
            await http.get(url)


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    with TemporaryDirectory() as folder:
        return json.dumps(asyncio.run(Host(environment, Path(folder)).run(url)))
