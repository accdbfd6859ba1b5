"""A shop whose payment leads to an audit that fails, and a user who is asked about its tools."""

from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import Annotations, CallToolResult, TextContent, ToolAnnotations

from tool_chaining import ConsentPolicy, Proposal, Step, add_tool_chaining, with_next_tool

CODE = 'Your one-time code is "431 986".'
READ_ONLY = ToolAnnotations(read_only_hint=True)


def said(text: str, *audience: Any) -> CallToolResult:
    annotations = Annotations(audience=[*audience]) if audience else None
    return CallToolResult(content=[TextContent(type="text", text=text, annotations=annotations)])


@dataclass
class Person(ConsentPolicy):
    """A user who answers each question, and keeps what was asked."""

    answer: bool | type[Exception] = True
    agrees_again: bool = True
    allowed: set[str] | None = None
    steps: list[Step] = field(default_factory=list[Step])
    asked: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])
    """The tool, the level, and whether an earlier call may have taken effect."""

    def show_step(self, step: Step) -> None:
        self.steps.append(step)

    async def allows(self, proposal: Proposal) -> bool:
        self.asked.append((proposal.tool.name, proposal.level, False))
        if not isinstance(self.answer, bool):
            raise self.answer
        return self.answer

    async def allows_again(self, proposal: Proposal) -> bool:
        self.asked.append((proposal.tool.name, proposal.level, True))
        return self.agrees_again


class Shop:
    """A server whose payment leads to an audit, and every call that reached it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stalls: set[str] = set()
        """Tools that take effect and never answer."""
        self.stalled = anyio.Event()
        self.mcp: MCPServer[Any] = MCPServer("shop")
        add_tool_chaining(self.mcp)
        for tool in (self.prepare, self.pay, self.audit, self.greet):
            self.mcp.add_tool(tool)
        self.mcp.add_tool(self.show_code, annotations=READ_ONLY)

    async def _reached(self, tool: str) -> None:
        self.calls.append(tool)
        if tool in self.stalls:
            self.stalled.set()
            await anyio.sleep_forever()

    async def prepare(self) -> CallToolResult:
        await self._reached("prepare")
        return with_next_tool(said("Prepared."), "pay", {"amount": 5})

    async def pay(self, amount: int) -> CallToolResult:
        await self._reached("pay")
        return with_next_tool(said(f"Paid {amount}."), "audit", {})

    async def audit(self) -> str:
        await self._reached("audit")
        raise ToolError("The auditor is ill.")

    async def greet(self) -> str:
        return "Hello."

    async def show_code(self) -> CallToolResult:
        result = said(CODE, "user")
        return result.model_copy(update={"structured_content": {"status": "sent", "text": CODE}})
