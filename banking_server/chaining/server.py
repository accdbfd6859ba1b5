"""The server half: attach a directive to a result, and check it on its way out."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
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
    Tool,
)
from opentelemetry.trace import get_current_span

from banking_server.chaining.directive import IDENTIFIER, META_KEY, SETTINGS, Directive
from banking_server.chaining.negotiation import has_declared
from banking_server.chaining.outgoing import (
    DirectiveDropped,
    advertised_in,
    check_outgoing,
)
from banking_server.chaining.provenance import read_provenance


def with_next_tool(
    result: CallToolResult | str | Sequence[ContentBlock],
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
) -> CallToolResult:
    """Return `result` with the directive to call `tool` next, with exactly `arguments`::

        return with_next_tool("It is locked.", "request_agent_handoff", {"reason": reason})

    `result` is a text, content, or a whole result. `title` tells the user why, in plain text of at
    most 200 characters on one line.

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
    """The extension on a server: advertised, and every outgoing directive checked::

        mcp = MCPServer("bank", extensions=[ToolChaining()])

    It is a bug in the server if a directive is not fit to be sent: its tool is not listed or is
    hidden from models, its arguments are not accepted or not known, its form is wrong, or it stands
    on a result without other content. It is then logged as an error and dropped, and the rest of
    the result goes out (TC-S-08, TC-S-11 to TC-S-17, TC-S-26, TC-S-27). With `strict`, for tests of
    the server, the call is answered with an error that says why instead.

    Directives go to every client, whether or not it declared the extension (TC-S-03); a client that
    did not is also told the next step in words that a model can act on: in a text item, and in the
    structured content of a tool whose output schema has `nextStep` (`NextStep`).
    """

    identifier = IDENTIFIER
    _server: MCPServer[Any]

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    def settings(self) -> dict[str, Any]:
        """Return what `server/discover` advertises, and check directives for the server that asks.

        The SDK does not tell an extension its server, but asks for the settings in a method of the
        server while that is made. Raises RuntimeError if no `MCPServer` asks, or a second.
        """
        asks = sys._getframe(1).f_locals.get("self")
        if not isinstance(asks, MCPServer) or hasattr(self, "_server"):
            raise RuntimeError("A ToolChaining is for one server: extensions=[ToolChaining()]")
        self._server = asks
        asks.middleware.append(self._advertise_on_initialize)
        return SETTINGS

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Let the call run, then check the directive of its result.

        The OpenTelemetry span that the SDK makes for the call tells its chain and level.
        Raises MCPError where a directive is dropped and `strict` is set.
        """
        if (provenance := read_provenance(params.meta)) is not None:
            span = get_current_span()
            span.set_attribute("tool_chaining.chain_id", provenance.chain_id)
            span.set_attribute("tool_chaining.level", provenance.level)
        try:
            return await check_outgoing(
                await call_next(ctx),
                called=params.name,
                listed=partial(_listed, self._server),
                declared=has_declared(ctx.session.client_capabilities, ctx.protocol_version),
                strict=self._strict,
            )
        except DirectiveDropped as problem:
            raise MCPError(code=INTERNAL_ERROR, message=str(problem)) from problem

    async def _advertise_on_initialize(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Add the extension to an `initialize` result, in which the SDK does not advertise it."""
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        told = advertised_in(result.get("capabilities") or {}, "extensions", "experimental")
        return {**result, "capabilities": told}


async def _listed(server: MCPServer[Any], name: str) -> Tool | None:
    """Return what the server's list says of a tool now; None if it is not in it."""
    return next((tool for tool in await server.list_tools() if tool.name == name), None)
