"""A client that is all script, and one that is connected in memory."""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, Tool

from tool_chaining import IDENTIFIER, ChainResult, ConsentPolicy, Follower, Proposal, TrustHints
from tool_chaining.content import on_the_wire

from ..kit.words import VERSIONS


@asynccontextmanager
async def connect(target: Any, mode: str, **options: Any) -> AsyncIterator[Client]:
    async with Client(target, mode=mode, **options) as client:
        assert client.protocol_version == VERSIONS[mode]
        yield client


async def follow(client: Any, name: str, arguments: Any = None, **options: Any) -> ChainResult:
    """Follow the chains of a server whose hints the user trusts."""
    meta = options.pop("meta", None)
    options.setdefault("consent", TrustHints())
    return await Follower(client, **options).call_tool(name, arguments, meta=meta)


def texts(result: CallToolResult | ChainResult) -> list[str]:
    items = result.content if isinstance(result, ChainResult) else on_the_wire(result)["content"]
    return [item["text"] for item in items if item["type"] == "text"]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is logged of directives that are not sent."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "tool_chaining.outgoing" and record.levelno == logging.ERROR
    ]


def tool(name: str, **more: Any) -> Tool:
    """A tool that `follow` follows."""
    return Tool.model_validate(
        {
            "name": name,
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            **more,
        }
    )


def result(text: str = "", *, error: bool = False, **meta: Any) -> CallToolResult:
    content = [TextContent(type="text", text=text)] if text else []
    return CallToolResult(content=content, is_error=error, _meta=meta or None)


class Noting(ConsentPolicy):
    """A host's policy that writes down what it is asked, and answers as it is told to."""

    def __init__(self, answer: Any = False, *, again: Any = False, hints: bool = False) -> None:
        self.asked: list[tuple[str, Proposal]] = []
        self.answers = {"allows": answer, "allows_again": again}
        self.trusts_hints = hints

    async def _answered(self, question: str, proposal: Proposal) -> Any:
        self.asked.append((question, proposal))
        answer = self.answers[question]
        return answer(proposal) if callable(answer) else answer

    async def allows(self, proposal: Proposal) -> bool:
        answer: bool = await self._answered("allows", proposal)
        return answer

    async def allows_again(self, proposal: Proposal) -> bool:
        answer: bool = await self._answered("allows_again", proposal)
        return answer


class FakeClient:
    """Stands in for `mcp.Client` where what matters is which requests are made, and when."""

    def __init__(
        self,
        tools: list[Any] | Callable[[str | None], Any],
        answer: Callable[[str, dict[str, Any]], CallToolResult | Awaitable[CallToolResult]],
        *,
        ttl_ms: int | None = None,
    ) -> None:
        self.tools = tools
        self.ttl = ttl_ms
        self.answer = answer
        self.lists: list[tuple[str | None, str]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.metas: list[Any] = []
        self.protocol_version: str | None = "2026-07-28"
        self.server_capabilities: Any = {"extensions": {IDENTIFIER: {}}}

    async def list_tools(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        self.lists.append((cursor, cache_mode))
        if callable(self.tools):
            return self.tools(cursor)
        tools = [each if isinstance(each, dict) else on_the_wire(each) for each in self.tools]
        return {"tools": tools, "ttlMs": self.ttl}

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        *,
        meta: Any = None,
    ) -> CallToolResult:
        self.calls.append((name, arguments or {}))
        self.metas.append(meta)
        answer = self.answer(name, arguments or {})
        return await answer if inspect.isawaitable(answer) else answer


async def never(*_: Any, **__: Any) -> Any:
    await anyio.sleep_forever()
