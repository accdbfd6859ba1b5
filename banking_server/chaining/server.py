"""The server half: attach a directive to a result, and check it on its way out."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer
from mcp_types import (
    Annotations,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    TextContent,
)

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.directive import (
    IDENTIFIER,
    META_KEY,
    SETTINGS,
    Absent,
    Directive,
    Found,
    Malformed,
    read_directive,
)

logger = logging.getLogger(__name__)

_ResultT = TypeVar("_ResultT", CallToolResult, InputRequiredResult)


def with_next_tool(
    result: CallToolResult, tool: str, arguments: Mapping[str, Any] | None = None
) -> CallToolResult:
    """Return `result` with the directive to call `tool` next, with exactly `arguments`::

        return with_next_tool(result, "request_agent_handoff", {"reason": reason})

    Raises ValueError if `tool` is empty.
    """
    directive = Directive(tool=tool, arguments=dict(arguments or {}))
    return result.model_copy(
        update={"meta": {**(result.meta or {}), META_KEY: directive.to_wire()}}
    )


def client_declared(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client is known to have declared the extension.

    This is only a hint: a client of 2025-11-25 over stateless HTTP may have declared it, but the
    server cannot know.
    """
    capabilities = ctx.session.client_capabilities
    if capabilities is None:
        return False
    return any(
        IDENTIFIER in (declared or {})
        for declared in (capabilities.extensions, capabilities.experimental)
    )


def in_words(directive: Directive) -> TextContent:
    """Return the directive in words, for the model of a client that does not follow directives.

    The item is marked in its `_meta`, so that a client that does follow can leave it out (TC-S-04
    to TC-S-06).
    """
    arguments = json.dumps(directive.arguments, ensure_ascii=False)
    return TextContent(
        type="text",
        text=(
            f"Next step, decided by this server: call the tool {directive.tool!r} once, with "
            f"exactly these arguments: {arguments}. If the result of that call already follows "
            "here, the client has made it: do not call it again."
        ),
        annotations=Annotations(audience=["assistant"]),
        _meta={IDENTIFIER: {"describes": META_KEY}},
    )


@dataclass(frozen=True)
class _Unfit:
    """Why a directive must not be sent."""

    reason: str


class ToolChaining(Extension):
    """The extension on a server: advertised, and every outgoing directive checked.

    Two lines attach it::

        chaining = ToolChaining()
        mcp = MCPServer("bank", extensions=[chaining])
        chaining.bind(mcp)

    It is a bug in the server if a directive names a tool that the server does not list, or
    arguments that the tool does not accept. It is then logged as an error and dropped, and the rest
    of the result goes out (TC-S-12, TC-S-14). Directives go to every client, whether or not it
    declared the extension (TC-S-03); a client that did not is also told the next step in words that
    a model can act on.
    """

    identifier = IDENTIFIER

    _server: MCPServer[Any] | None = None

    def settings(self) -> dict[str, Any]:
        """Return what `server/discover` advertises (2026-07-28)."""
        return SETTINGS

    def bind(self, mcp: MCPServer[Any]) -> None:
        """Check directives against the tools of `mcp`, and advertise to clients of 2025-11-25.

        To be called after `mcp` was made, since the SDK does not tell an extension its server.
        """
        self._server = mcp
        mcp.middleware.append(self._advertise_on_initialize)

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Let the call run, then check the directive of its result.

        Raises RuntimeError if `bind` was not called.
        """
        if self._server is None:
            raise RuntimeError("ToolChaining.bind(mcp) was not called after MCPServer(...)")
        result = await call_next(ctx)
        if not isinstance(result, CallToolResult | InputRequiredResult):
            return result
        reading = read_directive(result.meta)
        if isinstance(reading, Absent):
            return result
        if isinstance(result, InputRequiredResult):
            return _dropped(params.name, result, "an interim result cannot name a next tool")
        checked = await _check(reading, self._server)
        if isinstance(checked, _Unfit):
            return _dropped(params.name, result, checked.reason)
        content = result.content if client_declared(ctx) else [*result.content, in_words(checked)]
        # Only the defined members of the directive go out (TC-S-11).
        meta = {**(result.meta or {}), META_KEY: checked.to_wire()}
        return result.model_copy(update={"content": content, "meta": meta})

    async def _advertise_on_initialize(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Add the extension to an `initialize` result, in which the SDK does not advertise it.

        2025-11-25 has no `extensions` among its capabilities, so the same settings also stand
        under `experimental`, which it does have (TC-S-02).
        """
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        capabilities = result.setdefault("capabilities", {})
        for member in ("extensions", "experimental"):
            capabilities[member] = {**(capabilities.get(member) or {}), IDENTIFIER: SETTINGS}
        return result


async def _check(reading: Found | Malformed, server: MCPServer[Any]) -> Directive | _Unfit:
    """Return the directive if it may be sent by this server."""
    if isinstance(reading, Malformed):
        return _Unfit(reading.reason)
    if reading.deprecated_alias:
        return _Unfit("'name' is for reading only; a server sends 'tool'")
    directive = reading.directive
    schema = await _input_schema(server, directive.tool)
    if schema is None:
        return _Unfit(f"this server lists no tool {directive.tool!r}")
    problem = argument_problem(schema, directive.arguments)
    return directive if problem is None else _Unfit(problem)


async def _input_schema(server: MCPServer[Any], name: str) -> dict[str, Any] | None:
    """Return the input schema of a tool as the server lists it now; None if it does not.

    The SDK makes its list anew each time it is asked for it. So the tool is looked up where the
    list is made from, unless the server makes a list of its own.
    """
    if type(server).list_tools is MCPServer.list_tools:
        tool = server._tool_manager.get_tool(name)
        return None if tool is None else tool.parameters
    tools = await server.list_tools()
    return next((tool.input_schema for tool in tools if tool.name == name), None)


def _dropped(tool: str, result: _ResultT, why: str) -> _ResultT:
    """Return the result without its directive, and log that the server has a bug."""
    logger.error("Dropped the directive of tool %r: %s", tool, why)
    kept = {key: item for key, item in (result.meta or {}).items() if key != META_KEY}
    return result.model_copy(update={"meta": kept or None})
