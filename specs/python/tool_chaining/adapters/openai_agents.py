"""The OpenAI Agents SDK: its MCP servers, which follow the chain of each tool call."""

from typing import Any

import anyio
from mcp.types import CallToolResult, Tool

from tool_chaining import ConsentPolicy, Follower, NobodyToAsk, Proposal
from tool_chaining.adapters.mcp_1 import SessionCaller
from tool_chaining.adapters.one_result import ChainOptions, one_result
from tool_chaining.content import on_the_wire

try:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from agents.mcp.server import _MCPServerWithClientSession
except ImportError as error:
    needs = "needs the OpenAI Agents SDK: pip install 'openai-agents>=0.24,<1'"
    raise ImportError(f"{__name__} {needs} ({error})") from None


class _Chaining(_MCPServerWithClientSession):
    """One of the SDK's servers. `chaining` has the options of `Follower`."""

    def __init__(self, *args: Any, chaining: ChainOptions | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.max_retry_attempts:
            raise ValueError("max_retry_attempts must be 0: no follow-up call may be sent twice")
        caller: Any = _Calls(self, super().call_tool)
        self._follower = Follower(caller, **(chaining or {}))
        self._follower.consent = _Consent(self, self._follower.consent)

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool and follow the chain; return one result."""
        caller: Any = self._follower.client
        result = await one_result(self._follower, caller, tool_name, arguments, meta=meta)
        return CallToolResult.model_validate(on_the_wire(result))  # `mcp` 1.x has its own models.


class _Consent(ConsentPolicy):
    """The policy, limited to what the agent may call: nobody can approve during a call."""

    def __init__(self, server: _Chaining, policy: ConsentPolicy | None) -> None:
        self._server, self._policy = server, policy
        self.trusts_hints = policy is not None and policy.trusts_hints

    async def allows(self, proposal: Proposal) -> bool:
        return await self._decided(proposal, "allows")

    async def allows_again(self, proposal: Proposal) -> bool:
        return await self._decided(proposal, "allows_again")

    async def _decided(self, proposal: Proposal, question: str) -> bool:
        server, tool = self._server, Tool.model_validate(proposal.tool.wire)
        # A filter that is a function asks for the agent, which is not known here.
        if callable(server.tool_filter) or not await server._apply_tool_filter([tool]):
            return False
        if self._policy is None or server._get_needs_approval_for_tool(tool, None) is not False:
            raise NobodyToAsk
        answer: bool = await getattr(self._policy, question)(proposal)
        return answer


class _Calls:
    """A server of the SDK as a `ToolCaller`."""

    def __init__(self, server: _Chaining, call: Any) -> None:
        self._server, self._call = server, call

    @property
    def _session(self) -> Any:
        session: Any = self._server.session
        return session if hasattr(session, "server_capabilities") else SessionCaller(session)

    @property
    def protocol_version(self) -> str | None:
        return str(self._session.protocol_version)

    @property
    def server_capabilities(self) -> Any:
        return self._session.server_capabilities

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, read_timeout_seconds: float | None, meta: Any
    ) -> CallToolResult:
        with anyio.fail_after(read_timeout_seconds):
            result: CallToolResult = await self._call(name, arguments, meta)
            return result

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> dict[str, Any]:
        # The server's current list, neither cached nor filtered.
        session: Any = self._server.session
        return on_the_wire(await self._server._list_tools_page(session, cursor))


class ChainingStdio(_Chaining, MCPServerStdio):
    """`MCPServerStdio`, which follows chains."""


class ChainingStreamableHttp(_Chaining, MCPServerStreamableHttp):
    """`MCPServerStreamableHttp`, which follows chains."""
