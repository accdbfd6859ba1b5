"""The server half: add a directive to a result, and check it before the result is sent."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    TextContent,
)
from opentelemetry.trace import get_current_span

from tool_chaining.directive import IDENTIFIER, META_KEY, SETTINGS, Directive
from tool_chaining.negotiation import has_declared
from tool_chaining.outgoing import DirectiveDropped, advertised_in, check_outgoing
from tool_chaining.provenance import read_provenance


def with_next_tool(
    result: CallToolResult | str | Sequence[ContentBlock],
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
) -> CallToolResult:
    """Return `result` with the directive to call `tool` next, with exactly `arguments`::

        return with_next_tool("It is locked.", "request_agent_handoff", {"reason": reason})

    `result` is a text, content, or a whole result; the tool is annotated `-> CallToolResult`, not
    `-> str`. `title` tells the user why, in plain text of at most 200 characters on one line.

    Raises ValueError if `tool` is empty, or `title` is empty or too long.
    """
    if isinstance(result, str):
        result = [TextContent(type="text", text=result)]
    if not isinstance(result, CallToolResult):
        result = CallToolResult(content=[*result])
    directive = Directive(tool=tool, arguments=dict(arguments or {}), title=title)
    return result.model_copy(
        update={"meta": {**(result.meta or {}), META_KEY: directive.to_wire()}}
    )


class ToolChaining(Extension):
    """The extension on a server: advertises it, and checks every directive before it is sent::

        mcp = MCPServer("bank", extensions=[ToolChaining()])

    A wrong directive is a bug in the server: its tool is not listed or is hidden from models, its
    arguments are invalid or unknown, its form is wrong, or its result has no other content. It is
    logged as an error and dropped, and the rest of the result is sent (TC-S-08, TC-S-11 to TC-S-17,
    TC-S-26, TC-S-27). With `strict`, for tests of the server, the call returns an error instead.

    Every client gets directives, whether or not it declared the extension (TC-S-03). For a client
    that did not, the result also describes the next step to the model: in a text item, and in the
    structured content of a tool whose output schema has `nextStep` (`NextStep`).
    """

    identifier = IDENTIFIER
    _server: MCPServer[Any]

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    def settings(self) -> dict[str, Any]:
        """Return the settings for `server/discover`, and remember the server that calls this.

        The SDK does not give an extension its server. But the server itself calls this method while
        it is made. Raises RuntimeError if the caller is no `MCPServer`, or a second one.
        """
        server = sys._getframe(1).f_locals.get("self")
        if not isinstance(server, MCPServer) or hasattr(self, "_server"):
            raise RuntimeError("A ToolChaining is for one server: extensions=[ToolChaining()]")
        self._server = server
        server.middleware.append(self._advertise_on_initialize)
        return SETTINGS

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Make the call, then check the directive of its result.

        The OpenTelemetry span of the SDK for this call gets the chain id and the level.
        Raises MCPError if a directive is dropped and `strict` is set.
        """
        if (provenance := read_provenance(params.meta)) is not None:
            span = get_current_span()
            span.set_attribute("tool_chaining.chain_id", provenance.chain_id)
            span.set_attribute("tool_chaining.level", provenance.level)
        try:
            return await check_outgoing(
                await call_next(ctx),
                called=params.name,
                listed=self._server.list_tools,
                declared=has_declared(ctx.session.client_capabilities, ctx.protocol_version),
                strict=self._strict,
            )
        except DirectiveDropped as problem:
            raise MCPError(code=INTERNAL_ERROR, message=str(problem)) from problem

    async def _advertise_on_initialize(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Add the extension to the result of `initialize`, where the SDK does not advertise it."""
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        capabilities = result.get("capabilities") or {}
        return {**result, "capabilities": advertised_in(capabilities, "extensions", "experimental")}
