"""FastMCP as a server: the server half as a middleware."""

from functools import partial
from typing import Any, TypeVar

from mcp import MCPError
from mcp_types import (
    CallToolResult,
    DiscoverResult,
    InitializeResult,
    InputRequiredResult,
    TextContent,
)
from pydantic import BaseModel

from tool_chaining.content import on_the_wire
from tool_chaining.negotiation import advertised_in, has_declared
from tool_chaining.outgoing import OutgoingCheck, refuses_too_late
from tool_chaining.tools import Tool

try:
    from fastmcp import FastMCP
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
    from fastmcp.tools.function_tool import FunctionTool
except ImportError as error:
    needs = "needs FastMCP: pip install 'fastmcp>=4.1,<5'"
    raise ImportError(f"{__name__} {needs} ({error})") from None


class ToolChainingMiddleware(Middleware):
    """Advertises the extension and checks every outgoing directive, as `add_tool_chaining` does::

        mcp.add_middleware(ToolChainingMiddleware())

    A tool names the next one in the `meta` of its result:
    `ToolResult(text, meta={"nextTool": {"tool": "open_return", "arguments": {"order": order}}})`.
    If servers are mounted in one another, add it to the outermost server only.
    """

    def __init__(self) -> None:
        self._checks: dict[int, OutgoingCheck] = {}
        """By the identity of the server; FastMCP says which one with each call."""

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
        try:
            result: ToolResult = await call_next(context)
        except MCPError as error:
            if not refuses_too_late(error, FunctionTool._execute):
                raise
            text = TextContent(type="text", text=error.error.message)
            return ToolResult(content=[text], is_error=True)
        interim = result.input_required if isinstance(result, InputRequiredToolResult) else None
        sent = interim or result.to_mcp_result()
        if not isinstance(sent, BaseModel):
            return result  # Content alone carries no directive.
        server, request = context.fastmcp_context.fastmcp, context.fastmcp_context.request_context
        check = self._checks.setdefault(id(server), OutgoingCheck())
        out = await check(
            on_the_wire(sent),
            called=context.message.name,
            listed=partial(_listed, server),
            declared=request is not None
            and has_declared(request.session.client_capabilities, request.protocol_version),
        )
        if interim:
            return InputRequiredToolResult(InputRequiredResult.model_validate(out))
        return ToolResult.from_mcp_result(CallToolResult.model_validate(out))


async def _listed(server: FastMCP[Any], *_: str) -> dict[str, Tool]:
    """Return the tools as the server lists them now."""
    tools = [on_the_wire(tool.to_mcp_tool()) for tool in await server.list_tools()]
    return {tool["name"]: Tool(tool["name"], tool) for tool in tools}


_Greeting = TypeVar("_Greeting", InitializeResult, DiscoverResult)


def _advertising(greeting: _Greeting, *places: str) -> _Greeting:
    return type(greeting).model_validate(advertised_in(on_the_wire(greeting), *places))
