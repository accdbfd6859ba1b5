"""The server half: add a directive to a result, and check it before the result is sent."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import INTERNAL_ERROR, CallToolResult, ContentBlock, TextContent
from opentelemetry.trace import get_current_span
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from tool_chaining.content import Json, on_the_wire
from tool_chaining.directive import META_KEY, Directive
from tool_chaining.negotiation import advertised_in, has_declared
from tool_chaining.outgoing import DirectiveDropped, OutgoingCheck, refuses_too_late
from tool_chaining.provenance import read_provenance
from tool_chaining.tools import Listed, Tool, read_list
from tool_chaining.values import check_json

logger = logging.getLogger(__name__)


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

    Values become JSON as they do in structured content: a date, a Decimal, a model. If `tool` is
    empty, `title` is not such a text, or `arguments` hold what JSON cannot (NaN, half of a
    surrogate pair), the mistake is logged with its place, and the result has no directive: the tool
    has already acted.
    """
    if isinstance(result, str):
        result = [TextContent(type="text", text=result)]
    if not isinstance(result, CallToolResult):
        result = CallToolResult(content=[*result])
    try:
        directive = Directive(tool, to_jsonable_python(dict(arguments or {})), title)
        check_json(directive.arguments, "arguments")
    except (ValueError, TypeError, RecursionError) as problem:
        logger.error("Dropped a nextTool: %s", problem)
        return result
    return result.model_copy(
        update={"meta": {**(result.meta or {}), META_KEY: directive.to_wire()}}
    )


def add_tool_chaining(server: MCPServer[Any] | Server[Any], *, strict: bool = False) -> None:
    """Add the extension to a server: advertise it, and check every directive before it is sent::

        mcp = MCPServer("bank")
        add_tool_chaining(mcp)

    A wrong directive is a bug in the server: its tool is not listed or is hidden from models, its
    arguments are invalid, its form is wrong, or its result has no other content. It is logged as an
    error and dropped, and the rest of the result is sent (TC-S-08, TC-S-12 to TC-S-17, TC-S-26,
    TC-S-27). With `strict`, for tests of the server, the call returns an error.

    A tool whose function raises a refusal, such as an `MCPError` of a call that it made itself,
    returns an error: a client may believe only before the function has begun that nothing was done
    (TC-S-36). A low-level server has no function for each tool, and must see to that itself.

    Every client gets directives, whether or not it declared the extension (TC-S-03). For a client
    that did not, the result also describes the next step to the model: in a text item, and in the
    structured content of a tool whose output schema has `nextStep` (`NextStep`).

    Raises ValueError if the server has the extension already.
    """
    if any(isinstance(each, ToolChainingMiddleware) for each in server.middleware):
        raise ValueError(f"the server {server.name!r} has tool chaining already")
    # Inside the SDK's tracing, whose span gets the chain id, and around everything else: so it asks
    # for the list as the other middlewares let this caller see it.
    server.middleware.insert(1, ToolChainingMiddleware(server, strict=strict))


@dataclass(frozen=True)
class _CallersList:
    """The tools as the server lists them to the caller of one request."""

    server: MCPServer[Any] | Server[Any]
    outer: Sequence[ServerMiddleware[Any]]
    inner: Sequence[ServerMiddleware[Any]]
    """The middlewares other than the SDK's own: around this one, and inside it."""
    ctx: ServerRequestContext[Any, Any]
    call_next: CallNext

    @property
    def protocol_version(self) -> str:
        return self.ctx.protocol_version

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Any:
        meta = (self.ctx.params or {}).get("_meta")
        params = {"_meta": meta} if meta is not None else {}
        if cursor is not None:
            params["cursor"] = cursor
        return await self.call_next(replace(self.ctx, method="tools/list", params=params))

    async def __call__(self, *names: str) -> Mapping[str, Tool]:
        """Return the tools of these names, or all if one of them is not listed.

        Serializing a whole list costs more than the call. So the other middlewares of a high-level
        server get a list of these tools alone, and leave out what this caller may not see.
        """
        if isinstance(self.server, MCPServer):
            own = [
                on_the_wire(tool) for tool in await self.server.list_tools() if tool.name in names
            ]

            async def listed(_: Any) -> HandlerResult:
                return {"tools": own}

            seen = await self._seen(listed, *self.outer, *self.inner)
            if seen.tools.keys() >= set(names):
                return seen.tools
        seen = await self._seen(self.call_next, *self.outer)
        if seen.failure is not None:
            raise DirectiveDropped(f"the tools cannot be listed: {seen.failure}")
        return seen.tools

    async def _seen(self, call_next: CallNext, *middlewares: ServerMiddleware[Any]) -> Listed:
        for middleware in reversed(middlewares):
            call_next = partial(middleware, call_next=call_next)
        return await read_list(replace(self, call_next=call_next), lambda _: None)


class ToolChainingMiddleware:
    """What `add_tool_chaining` adds to a server: it sees each request and its result."""

    def __init__(self, server: MCPServer[Any] | Server[Any], *, strict: bool) -> None:
        self._server = server
        self._strict = strict
        self._check = OutgoingCheck()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Serve one request.

        The OpenTelemetry span of the SDK for a call gets the chain id and the level.
        Raises MCPError if a directive is dropped and the server is `strict`.
        """
        if ctx.method == "tools/call":
            return await self._call(ctx, call_next)
        result = await call_next(ctx)
        # The SDK has a place for extensions too, but reads it while it creates a server, and sends
        # nothing of it with `initialize`.
        if ctx.method == "server/discover" and isinstance(result, dict):
            return advertised_in(result, "extensions")
        if ctx.method == "initialize" and isinstance(result, dict):
            return advertised_in(result, "extensions", "experimental")
        return result

    async def _call(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        params = ctx.params or {}
        if (provenance := read_provenance(params.get("_meta"))) is not None:
            span = get_current_span()
            span.set_attribute("tool_chaining.chain_id", provenance.chain_id)
            span.set_attribute("tool_chaining.level", provenance.level)
        try:
            result = await call_next(ctx)
        except MCPError as error:
            if not refuses_too_late(error, FuncMetadata.call_fn):
                raise
            text = TextContent(type="text", text=error.error.message)
            result = CallToolResult(content=[text], is_error=True)
        # Another middleware may have answered without the server.
        sent: Json = on_the_wire(result) if isinstance(result, BaseModel) else dict(result or {})
        others = [m for m in self._server.middleware if not type(m).__module__.startswith("mcp.")]
        own = others.index(self)
        try:
            return await self._check(
                sent,
                called=str(params.get("name")),
                listed=_CallersList(self._server, others[:own], others[own + 1 :], ctx, call_next),
                declared=has_declared(ctx.session.client_capabilities, ctx.protocol_version),
                strict=self._strict,
            )
        except DirectiveDropped as problem:
            raise MCPError(code=INTERNAL_ERROR, message=str(problem)) from problem
