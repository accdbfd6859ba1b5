"""The program around an intermediary that follows chains, for the conformance suite.

    tool-chaining-conformance client --one-process -- python proxy_under_test.py

For each run it starts the intermediary in front of the mock server, and makes the calls of a host
that knows nothing of chains. Replace `command` and `asked_about` by those of your intermediary.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult, Tool

LEGACY = "2025-11-25"

REPORT = "com.example/tool-chaining"
"""The member of a result's `_meta` in which an intermediary may say what it followed."""


def command(url: str, context: dict[str, Any], folder: Path) -> list[str]:
    """Return the command that starts the intermediary over stdio, in front of `url`.

    `folder` is for files that it needs. A proxy without such options is `["fastmcp", "run", url]`.
    """
    words = ["tool-chaining-proxy", "--url", url]
    denied, again = context.get("deniedTools", []), context.get("again", [])
    consent = folder / "consent"
    lines = [*(f"deny {tool}" for tool in denied), *(f"again {tool}" for tool in again)]
    consent.write_text("\n".join([*lines, "allow *" if again else "ask *", ""]), "utf-8")
    trusts = context.get("trustHints", True) and not denied and not again
    words += ["--trust-hints"] if trusts else ["--consent", str(consent)]
    if "timeoutSeconds" in context:
        words += ["--timeout", str(context["timeoutSeconds"])]
    if step := context.get("addedStep"):
        rules = folder / "rules.toml"
        arguments = ", ".join(f"{k} = {json.dumps(v)}" for k, v in step["arguments"].items())
        rule = f'after = "{step["after"]}"\nthen = "{step["tool"]}"\narguments = {{ {arguments} }}'
        rules.write_text(f"[[rule]]\n{rule}\n", "utf-8")
        words += ["--rules", str(rules)]
    return words


def asked_about(question: str) -> str | None:
    """Return the tool whose call the intermediary asks the user about.

    Return None for a question of the server behind it.
    """
    found = re.fullmatch(
        r'(?:The server|Your rule \d+) wants to call ("(?:[^"\\]|\\.)+") after .*', question
    )
    return json.loads(found[1]) if found else None


def started(url: str, context: dict[str, Any], folder: Path) -> Any:
    """Return what a client connects to: the intermediary in front of `url`."""
    program, *words = command(url, context, folder)
    environment = {**os.environ, "MCP_TOKEN": context.get("bearerToken", "")}
    return StdioServerParameters(command=program, args=words, env=environment)


class Host:
    """A host with its user. It makes the calls, and returns what it gets for the last one."""

    def __init__(self, context: dict[str, Any]) -> None:
        self.context = context

    def agrees(self, tool: str) -> bool:
        """Return whether the user agrees to a call, and the host lets its model make it."""
        if tool in self.context.get("deniedTools", []):
            return False
        answer = self.context.get("consentByTool", {}).get(tool, self.context["consent"])
        if isinstance(answer, list):  # One for each question.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return bool(answer == "grant")

    async def answer(self, _: Any, asked: Any) -> ElicitResult:
        """Answer a question: one about a call, or one of the server."""
        tool = asked_about(asked.message)
        if tool is None:
            return ElicitResult.model_validate(self.context["elicitation"])
        await asyncio.sleep(self.context.get("answersAfterMs", 0) / 1000)
        return ElicitResult(action="accept" if self.agrees(tool) else "decline")

    async def run(self, url: str, revision: str, folder: Path) -> dict[str, Any]:
        """Make the first call of each chain through the intermediary."""
        context, clients = self.context, []
        async with AsyncExitStack() as stack:
            for each in filter(None, [url, context.get("otherServerUrl")]):
                client = Client(
                    started(each, context, folder),
                    mode="legacy" if revision == LEGACY else "auto",
                    elicitation_callback=None if context["consent"] == "nobody" else self.answer,
                )
                clients.append(await stack.enter_async_context(client))
                tools = (await client.list_tools()).tools
            if context.get("firstCallBy") == "model" and not self.lets_model_call(tools):
                return {"content": [], "outcome": "declined"}
            if revision != LEGACY and "answersAfterMs" in context:
                # An interim result hands the question out, which gives up the turn (TC-C-57).
                return {"content": [], "outcome": "declined"}
            begun = [context, *context.get("furtherCalls", ())]
            calls = [self.call(clients[0], each["tool"], each["arguments"]) for each in begun]
            calls[0] = self.until_cancelled(calls[0])
            if context.get("atOnce"):
                return (await asyncio.gather(*calls))[-1]
            return [await call for call in calls][-1]

    def lets_model_call(self, tools: list[Tool]) -> bool:
        """Return whether the model may make the first call, unasked if trusted hints say so."""
        name = self.context["tool"]
        if name in self.context.get("deniedTools", []):
            return False
        hints = next((each.annotations for each in tools if each.name == name), None)
        closed = hints and hints.destructive_hint is False and hints.open_world_hint is False
        harmless = hints and (hints.read_only_hint or closed)
        return bool(self.context.get("trustHints", True) and harmless) or self.agrees(name)

    async def call(self, client: Client, tool: str, arguments: Any) -> dict[str, Any]:
        """Make a call, and return its result with what the intermediary says of the chain."""
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError:
            return {"content": [], "outcome": "failed"}
        shown = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        report = shown.get("_meta", {}).get(REPORT)
        if report is None:  # It followed nothing.
            return {**shown, "followUps": []}
        names = ("tool", "status")
        calls = [
            {name: each[name] for name in names if name in each} for each in report["followUps"]
        ]
        return {**shown, "outcome": report["outcome"], "followUps": calls}

    async def until_cancelled(self, call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Make a call until the user cancels it, if the context has a `cancelUrl`."""
        waiting = [asyncio.ensure_future(call), asyncio.ensure_future(self.cancelled())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        [result, _] = await asyncio.gather(*waiting, return_exceptions=True)
        return result if isinstance(result, dict) else {"content": [], "outcome": "cancelled"}

    async def cancelled(self) -> None:
        """Wait until the user cancels."""
        if (url := self.context.get("cancelUrl")) is None:
            await asyncio.Event().wait()
        async with httpx2.AsyncClient(timeout=None, trust_env=False, verify=False) as http:
            await http.get(url)


def run(url: str, revision: str, context: dict[str, Any]) -> None:
    """Make one run, and print its result as one line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = asyncio.run(Host(context).run(url, revision, Path(folder)))
        except* MCPError as errors:  # An intermediary need not support both revisions.
            error: BaseException = errors
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            print(error, file=sys.stderr)
            result = {"content": [], "outcome": "failed"}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    for line in sys.stdin:
        told = json.loads(line)
        run(told["url"], told["protocolVersion"], told["context"])
