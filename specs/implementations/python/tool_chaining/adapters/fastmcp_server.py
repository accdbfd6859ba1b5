"""FastMCP as a server: the server half as a middleware."""

from functools import partial
from typing import Any, TypeVar

from mcp_types import DiscoverResult, InitializeResult, ServerCapabilities, Tool
from pydantic import BaseModel

from tool_chaining.content import on_the_wire
from tool_chaining.negotiation import has_declared
from tool_chaining.outgoing import advertised_in, check_outgoing

try:
    from fastmcp import FastMCP
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
except ImportError as error:
    needs = "needs FastMCP: pip install 'fastmcp>=4.1,<5'"
    raise ImportError(f"{__name__} {needs} ({error})") from None


class ToolChainingMiddleware(Middleware):
    """Advertises the extension and checks every outgoing directive, as `ToolChaining` does::

        mcp.add_middleware(ToolChainingMiddleware())

    A tool names the next one in the `meta` of its result:
    `ToolResult(text, meta={"nextTool": {"tool": "open_return", "arguments": {"order": order}}})`.
    If servers are mounted in one another, add it to the outermost server only.
    """

    async def on_initialize(self, context: Any, call_next: Any) -> InitializeResult | None:
        """Advertise on 2025-11-25."""
        result: InitializeResult | None = await call_next(context)
        return result and _advertising(result, "extensions", "experimental")

    async def on_discover(self, context: Any, call_next: Any) -> DiscoverResult | dict[str, Any]:
        """Advertise on 2026-07-28."""
        result: DiscoverResult | dict[str, Any] = await call_next(context)
        return _advertising(result, "extensions") if isinstance(result, DiscoverResult) else result

    async def on_call_tool(self, context: Any, call_next: Any) -> ToolResult:
        """Make the call, then check the directive of its result."""
        result: ToolResult = await call_next(context)
        interim = result.input_required if isinstance(result, InputRequiredToolResult) else None
        wire = interim or result.to_mcp_result()
        if not isinstance(wire, BaseModel):
            return result  # Content alone carries no directive.
        server, request = context.fastmcp_context.fastmcp, context.fastmcp_context.request_context
        out: Any = await check_outgoing(
            wire,
            called=context.message.name,
            listed=partial(_listed, server),
            declared=request is not None
            and has_declared(request.session.client_capabilities, request.protocol_version),
        )
        return InputRequiredToolResult(out) if interim else ToolResult.from_mcp_result(out)


async def _listed(server: FastMCP[Any]) -> list[Tool]:
    """Return the tools as the server lists them now."""
    return [tool.to_mcp_tool() for tool in await server.list_tools()]


_Greeting = TypeVar("_Greeting", InitializeResult, DiscoverResult)


def _advertising(greeting: _Greeting, *places: str) -> _Greeting:
    wire = advertised_in(on_the_wire(greeting.capabilities), *places)
    return greeting.model_copy(update={"capabilities": ServerCapabilities.model_validate(wire)})
