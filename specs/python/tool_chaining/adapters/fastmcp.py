"""FastMCP: a `Client` that follows the chain of each tool call."""

from datetime import timedelta
from typing import Any, TypeVar

from mcp_types import CallToolResult

from tool_chaining.adapters.one_result import ChainOptions, one_result
from tool_chaining.tools import page_as_json

try:
    from fastmcp import Client
    from fastmcp.client.transports import ClientTransport
except ImportError as error:
    needs = "needs FastMCP: pip install 'fastmcp>=4.1,<5'"
    raise ImportError(f"{__name__} {needs} ({error})") from None

from tool_chaining import CLIENT_EXTENSION, Follower

Transport = TypeVar("Transport", bound=ClientTransport)


class ChainingClient(Client[Transport]):
    """FastMCP's `Client`, which declares the extension and follows chains.

    Takes the arguments of `Client`, plus `chaining`: the options of `Follower`, such as
    `{"consent": policy}`. `timeout` and `progress_handler` apply to each call of a chain.
    """

    def __init__(self, *args: Any, chaining: ChainOptions | None = None, **options: Any) -> None:
        extensions = [*(options.pop("extensions", None) or ()), CLIENT_EXTENSION]
        super().__init__(*args, extensions=extensions, **options)
        self._follower = Follower(_Calls(self), **(chaining or {}))

    async def call_tool_mcp(
        self,
        name: str,
        arguments: dict[str, Any],
        progress_handler: Any = None,
        timeout: timedelta | float | None = None,  # noqa: ASYNC109 - FastMCP's signature
        meta: dict[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool and follow the chain; return one result. `call_tool` calls this method."""
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        caller = _Calls(self, progress_handler)
        return await one_result(
            self._follower, caller, name, arguments, meta=meta, call_timeout=seconds or None
        )


class _Calls:
    """The client as a `ToolCaller`, which makes a single call."""

    def __init__(self, client: ChainingClient[Any], progress: Any = None) -> None:
        self._client, self._progress = client, progress

    @property
    def protocol_version(self) -> str | None:
        return self._client.protocol_version

    @property
    def server_capabilities(self) -> Any:
        return self._client.server_capabilities

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, read_timeout_seconds: float | None, meta: Any
    ) -> CallToolResult:
        call = super(ChainingClient, self._client).call_tool_mcp
        return await call(name, arguments, self._progress, read_timeout_seconds, meta)

    async def list_tools(self, *, cursor: str | None, cache_mode: Any) -> Any:
        return await page_as_json(self._client.session, cursor)
