"""A server over stdio that follows a script, behind the proxy, and a host that knows no chains."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.types import CallToolResult

from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.options import Command, ProxyOptions

from ..kit.command import PATIENCE, environment
from .wire import CHAINING, JSON, NEW, OLD, Wire, proxy_in_a_thread, proxy_in_memory

SERVER = [sys.executable, str(Path(__file__).with_name("scripted_server.py"))]
ADDS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
FORM: JSON = {"type": "object", "properties": {}}
WAYS = [("stdio", OLD), ("stdio", NEW), ("http", OLD), ("http", NEW)]


def said(text: str, to: str | None = None, **more: Any) -> JSON:
    """An answer, which names the next tool; the id of what is prepared is never the same."""
    result: JSON = {"content": [{"type": "text", "text": text}], **more}
    if to is not None:
        result["_meta"] = {"nextTool": {"tool": to, "arguments": {"to": "$TO", "id": "$N"}}}
    return {"result": result}


def asking(*keys: str) -> JSON:
    """An answer of 2026-07-28 that asks so many questions."""
    form = {"mode": "form", "message": "Sure?", "requestedSchema": FORM}
    questions = {key: {"method": "elicitation/create", "params": form} for key in keys}
    interim = {"resultType": "input_required", "requestState": "$N", "inputRequests": questions}
    return {"result": interim}


WHO = {"pid": "$PID", "environment": "$STRANGE_SETTING", "secret": "$MCP_TOKEN"}
WHO_AND_SLOW = {"who": [said("", structuredContent=WHO)], "slow": ["waits"]}
"""Which process answers, with what it knows from its environment, and a call that never ends."""

LAST_WORDS = "The door fell."
"""What the server writes to standard error when it "ends"."""

FAILED = said("The back end did not answer.", isError=True)


class Shop:
    """The server, and what was called."""

    def __init__(
        self, folder: Path, revision: str | None = OLD, hints: Any = ADDS, **script: Any
    ) -> None:
        self.notes = folder / "notes"
        self.revision = revision
        answers = {"prepare": [said("Prepared.", "pay")], "pay": [said("Paid.")]}
        answers |= script.pop("answers", {})
        tools = [
            {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}
            for name in answers
        ]
        script = {"revision": revision, "answers": answers, "tools": [tools], **script}
        self.command = [*SERVER, str(self.notes), json.dumps(script)]

    def options(self, choice: str | None = "all", **more: Any) -> ProxyOptions:
        trust = more.pop("trust_hints", False)
        consent = consent_of(None if trust else choice, trust_hints=trust)
        return ProxyOptions(Command(tuple(self.command), environment()), consent, **more)

    @property
    def noted(self) -> list[JSON]:
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        return [json.loads(line) for line in lines]

    def made(self, tool: str = "pay") -> list[JSON]:
        return [one["arguments"] for one in self.noted if one.get("tool") == tool]

    def has(self, **what: Any) -> bool:
        return any(what.items() <= one.items() for one in self.noted)

    async def until(self, **what: Any) -> None:
        await Wire.until(lambda: self.has(**what))

    @asynccontextmanager
    async def host(
        self, way: str, options: ProxyOptions | None = None, asked: Any = None
    ) -> AsyncIterator[Client]:
        """A host that is connected to the proxy; `asked` answers its questions."""
        mode = "legacy" if self.revision == OLD else "auto"
        options = options or self.options()
        with ExitStack() as stack, anyio.fail_after(PATIENCE):
            over_http = way == "http"
            proxy = stack.enter_context(proxy_in_a_thread(options)) if over_http else None
            target: Any = proxy or proxy_in_memory(options)
            async with Client(target, mode=mode, elicitation_callback=asked) as client:
                yield client


async def prepare(host: Client, to: str = "Ann") -> CallToolResult:
    return await host.call_tool("prepare", {"to": to})


def outcome(result: CallToolResult) -> str:
    assert result.meta is not None
    return str(result.meta[CHAINING]["outcome"])
