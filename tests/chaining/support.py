"""Reach the test servers over every transport, and stand-ins for a client and its lists."""

import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from hypothesis import settings
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ElicitResult, ListToolsResult, TextContent, Tool

from ..kit.command import environment
from . import chain_server

PROPERTY = settings(max_examples=50, deadline=None)
"""For Hypothesis: no example is judged by how long it takes."""

TRANSPORTS = ("memory", "stdio", "http")
MODES = ("auto", "legacy")
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
MODERN = [(transport, "auto") for transport in TRANSPORTS]
EVERYWHERE = [(transport, mode) for transport in TRANSPORTS for mode in MODES]


def stdio_server(kind: str) -> StdioServerParameters:
    """Run a test server as a subprocess, with the same import path as this process."""
    return StdioServerParameters(
        command=sys.executable,
        args=[str(Path(chain_server.__file__)), kind],
        env={"PYTHONPATH": environment()["PYTHONPATH"]},
    )


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def http_server(server: Server[Any] | MCPServer[Any], **options: Any) -> Iterator[str]:
    """Serve Streamable HTTP on a free port of the loopback interface; yield the URL."""
    # Only to a socket that names its protocol does asyncio apply TCP_NODELAY; without it, each
    # answer waits 40 ms for the client's delayed acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            server.streamable_http_app(**options),
            log_level="error",
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
        web = _Uvicorn(config)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        assert web.up.wait(30), "the HTTP server did not start"
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            web.should_exit = True
            thread.join(30)


Answer = Callable[[str], Awaitable[ElicitResult]]


async def say_yes(question: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"ok": True})


class Peer:
    """A connected client, with the answers it gives and what the server saw."""

    def __init__(self, transport: str, mode: str) -> None:
        self.transport = transport
        self.mode = mode
        self.client: Client
        self.answer: Answer = say_yes
        self.questions: list[str] = []

    async def on_question(self, context: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return await self.answer(params.message)

    async def calls(self) -> list[dict[str, Any]]:
        """What the scripted server was called with since this was last asked."""
        result = await self.client.call_tool("take_calls", {})
        assert result.structured_content is not None
        return result.structured_content["calls"]

    async def called(self) -> list[tuple[str, Any]]:
        """As `calls`, but only each tool and its arguments."""
        return [(call["tool"], json.loads(call["arguments"])) for call in await self.calls()]


@asynccontextmanager
async def connect(target: Any, transport: str, mode: str, **options: Any) -> AsyncIterator[Peer]:
    peer = Peer(transport, mode)
    async with Client(
        target, mode=mode, elicitation_callback=peer.on_question, **options
    ) as peer.client:
        assert peer.client.protocol_version == VERSIONS[mode]
        yield peer


def tool(name: str, **more: Any) -> Tool:
    """A tool that the default policy follows."""
    return Tool.model_validate(
        {
            "name": name,
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            **more,
        }
    )


def result(text: str = "", **meta: Any) -> CallToolResult:
    content = [TextContent(type="text", text=text)] if text else []
    return CallToolResult(content=content, _meta=meta or None)


class FakeClient:
    """Stands in for `mcp.Client` where what matters is which requests are made, and when."""

    def __init__(
        self,
        tools: list[Tool] | Callable[[str | None], ListToolsResult],
        answer: Callable[[str, dict[str, Any]], CallToolResult | Awaitable[CallToolResult]],
        *,
        ttl_ms: int | None = None,
    ) -> None:
        self.tools = tools
        self.ttl = {} if ttl_ms is None else {"ttl_ms": ttl_ms}
        self.answer = answer
        self.lists: list[tuple[str | None, str]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.metas: list[Any] = []
        self.timeouts: list[float | None] = []

    async def list_tools(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        self.lists.append((cursor, cache_mode))
        if callable(self.tools):
            return self.tools(cursor)
        return ListToolsResult(tools=self.tools, **self.ttl)

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
        self.timeouts.append(read_timeout_seconds)
        answer = self.answer(name, arguments or {})
        return answer if isinstance(answer, CallToolResult) else await answer


async def never(*_: Any, **__: Any) -> Any:
    await anyio.sleep_forever()
