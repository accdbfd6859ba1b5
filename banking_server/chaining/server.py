"""The server half: attach a directive to a result, and check it on its way out."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer
from mcp.types import (
    Annotations,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    TextContent,
    Tool,
)

from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.directive import (
    IDENTIFIER,
    META_KEY,
    SETTINGS,
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
    """Return `result` with the directive to call `tool` next with exactly `arguments`::

    return with_next_tool(result, "request_agent_handoff", {"reason": reason})
    """
    directive = Directive(tool=tool, arguments=dict(arguments or {}))
    return result.model_copy(
        update={"meta": {**(result.meta or {}), META_KEY: directive.to_wire()}}
    )


def client_declared(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Say whether the client is known to have declared the extension.

    Advisory: over stateless HTTP a client of 2025-11-25 may have, where nobody can know.
    """
    capabilities = ctx.session.client_capabilities
    if capabilities is None:
        return False
    return IDENTIFIER in {**(capabilities.extensions or {}), **(capabilities.experimental or {})}


def in_words(directive: Directive) -> TextContent:
    """Say the directive in words, for the model of a client that does not follow directives.

    The item's `_meta` marks it, so that a client which does follow can leave it out.
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


class ToolChaining(Extension):
    """The extension on a server: advertised, and every outgoing directive checked.

    Two lines attach it::

        chaining = ToolChaining()
        mcp = MCPServer("bank", extensions=[chaining])
        chaining.bind(mcp)

    A directive that names a tool the server does not list, or arguments that tool does not
    accept, is a bug of the server: it is logged as an error and dropped, and the rest of the
    result goes out. Directives go to every client, whether or not it declared the extension;
    one that did not is also told the next step in words that a model can act on.
    """

    identifier = IDENTIFIER

    _list_tools: Callable[[], Awaitable[Sequence[Tool]]] | None = None

    def settings(self) -> dict[str, Any]:
        """Return what `server/discover` advertises (2026-07-28)."""
        return SETTINGS

    def bind(self, mcp: MCPServer[Any]) -> None:
        """Check directives against the tools of `mcp`, and advertise to clients of 2025-11-25.

        The SDK hands an extension no server, hence this second line after construction.
        """
        self._list_tools = mcp.list_tools
        mcp.middleware.append(self._advertise_on_initialize)

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Let the call run, then check the directive that its result carries."""
        if self._list_tools is None:
            raise RuntimeError("ToolChaining.bind(mcp) was not called after MCPServer(...)")
        result = await call_next(ctx)
        if not isinstance(result, CallToolResult | InputRequiredResult):
            return result
        if META_KEY not in (result.meta or {}):
            return result
        if isinstance(result, InputRequiredResult):
            return _dropped(params.name, result, "an interim result cannot name a next tool")
        checked = await self._check(result, self._list_tools)
        if isinstance(checked, str):
            return _dropped(params.name, result, checked)
        content = result.content if client_declared(ctx) else [*result.content, in_words(checked)]
        # Only what a directive is made of goes out (TC-S-11).
        meta = {**(result.meta or {}), META_KEY: checked.to_wire()}
        return result.model_copy(update={"content": content, "meta": meta})

    @staticmethod
    async def _check(
        result: CallToolResult, list_tools: Callable[[], Awaitable[Sequence[Tool]]]
    ) -> Directive | str:
        """Return the directive if it may go out, else what is wrong with it."""
        reading = read_directive(result.meta)
        if not isinstance(reading, Found):
            return reading.reason if isinstance(reading, Malformed) else "there is none"
        if reading.deprecated_alias:
            return "'name' is for reading only; a server sends 'tool'"
        directive = reading.directive
        schema = next(
            (tool.input_schema for tool in await list_tools() if tool.name == directive.tool), None
        )
        if schema is None:
            return f"this server lists no tool {directive.tool!r}"
        return argument_problem(schema, directive.arguments) or directive

    async def _advertise_on_initialize(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Add the extension to an `initialize` result, where the SDK advertises none.

        2025-11-25 has no `extensions` capability, so the same settings stand under
        `experimental` too, which that revision does have.
        """
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        capabilities = result.setdefault("capabilities", {})
        for member in ("extensions", "experimental"):
            capabilities[member] = {**(capabilities.get(member) or {}), IDENTIFIER: SETTINGS}
        return result


def _dropped(tool: str, result: _ResultT, why: str) -> _ResultT:
    """Return the result without its directive, and log that the server has a bug."""
    logger.error("Dropped the directive of tool %r: %s", tool, why)
    kept = {key: item for key, item in (result.meta or {}).items() if key != META_KEY}
    return result.model_copy(update={"meta": kept or None})
