"""The OpenAI Agents SDK: its MCP servers, which follow the chain of each tool call."""

from typing import Any

import anyio
from mcp.types import CallToolResult

from tool_chaining import CallsInDoubt, Proposal
from tool_chaining.adapters.mcp_1 import SessionCaller
from tool_chaining.adapters.one_result import ChainOptions, checked, one_result
from tool_chaining.content import on_the_wire

try:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from agents.mcp.server import _MCPServerWithClientSession
except ImportError as error:
    needs = "needs the OpenAI Agents SDK: pip install 'openai-agents>=0.24,<1'"
    raise ImportError(f"{__name__} {needs} ({error})") from None


class _Chaining(_MCPServerWithClientSession):
    """One of the SDK's servers. `chaining` has the options of `call_tool_with_chaining`."""

    def __init__(self, *args: Any, chaining: ChainOptions | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.max_retry_attempts:
            raise ValueError("max_retry_attempts must be 0: no follow-up call may be sent twice")
        self._chaining: ChainOptions = {"in_doubt": CallsInDoubt(), **checked(chaining)}
        self._consent = self._chaining.get("consent")

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool and follow the chain; return one result."""
        result = await one_result(
            _Calls(self, super().call_tool),
            tool_name,
            arguments,
            {**self._chaining, "consent": self},
            meta=meta,
        )
        return CallToolResult.model_validate(on_the_wire(result))  # `mcp` 1.x has its own models.

    async def allows(self, proposal: Proposal) -> bool:
        """Return whether the agent may make a follow-up call unasked and the policy allows it."""
        return await self._may_call(proposal) and await self._asked("allows", proposal)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Return whether the policy allows such a call again, if its effect is unknown."""
        return await self._may_call(proposal) and await self._asked("allows_again", proposal)

    async def _may_call(self, proposal: Proposal) -> bool:
        # During a call no approval can be asked for, and the agent for a filter is not known.
        if callable(self.tool_filter) or not await self._apply_tool_filter([proposal.tool]):
            return False
        return self._get_needs_approval_for_tool(proposal.tool, None) is False

    async def _asked(self, method: str, proposal: Proposal) -> bool:
        ask = getattr(self._consent, method, None)
        return ask is not None and bool(await ask(proposal))


class _Calls:
    """A server of the SDK as a `ToolCaller`."""

    def __init__(self, server: _Chaining, call: Any) -> None:
        self._server, self._call = server, call
        self.session: Any = server.session
        known = hasattr(self.session, "server_capabilities")
        self._known = self.session if known else SessionCaller(self.session)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)  # `advertised` reads the connection's attributes.

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, read_timeout_seconds: float | None, meta: Any
    ) -> CallToolResult:
        with anyio.fail_after(read_timeout_seconds):
            result: CallToolResult = await self._call(name, arguments, meta)
            return result

    async def list_tools(self, *, cursor: str | None) -> dict[str, Any]:
        # The server's current list, neither cached nor filtered.
        return on_the_wire(await self._server._list_tools_page(self.session, cursor))


class ChainingStdio(_Chaining, MCPServerStdio):
    """`MCPServerStdio`, which follows chains."""


class ChainingStreamableHttp(_Chaining, MCPServerStreamableHttp):
    """`MCPServerStreamableHttp`, which follows chains."""
