"""Offers views only to clients that declare MCP Apps."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID, client_supports_apps
from mcp.types import INVALID_PARAMS, CallToolResult

from banking_server.tools.sdk import CallNext, HandlerResult
from tool_chaining.content import hidden_from_model

ACCOUNTS: Final = "ui://bank/accounts"
TRANSFER: Final = "ui://bank/transfer"
HANDOFF: Final = "ui://bank/handoff"
STATEMENT: Final = "ui://bank/statement"

DATA: Final = "com.example/bank-view"
"""The member of a result's `_meta` with data for the view only."""


def with_view_data(result: CallToolResult, data: Mapping[str, Any]) -> CallToolResult:
    """Return a result with additional data for its view only."""
    return result.model_copy(update={"meta": {**(result.meta or {}), DATA: dict(data)}})


async def only_for_clients_with_views(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Middleware: hide views, and tools for views, from clients that do not show views.

    On 2025-11-25 over HTTP without a session, the server does not know what a client declared. Such
    a client gets no views.
    """
    leave_out = _LEAVE_OUT.get(ctx.method)
    uri = (ctx.params or {}).get("uri") if ctx.method == "resources/read" else None
    reads_view = isinstance(uri, str) and uri.startswith("ui://")
    if not (leave_out or reads_view) or client_supports_apps(ctx):
        return await call_next(ctx)
    if leave_out is None:
        # The same error as the SDK's for an unknown resource.
        raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", data={"uri": uri})
    return leave_out(cast(dict[str, Any], await call_next(ctx)))


def _of_tools(listed: dict[str, Any]) -> dict[str, Any]:
    kept = [tool for tool in listed["tools"] if not hidden_from_model(tool.get("_meta"))]
    return {**listed, "tools": [_plain(tool) for tool in kept]}


def _of_resources(listed: dict[str, Any]) -> dict[str, Any]:
    kept = [one for one in listed["resources"] if one.get("mimeType") != APP_MIME_TYPE]
    return {**listed, "resources": kept}


def _of_capabilities(discovered: dict[str, Any]) -> dict[str, Any]:
    capabilities = discovered["capabilities"]
    kept = {name: one for name, one in capabilities["extensions"].items() if name != EXTENSION_ID}
    return {**discovered, "capabilities": {**capabilities, "extensions": kept}}


_LEAVE_OUT: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "tools/list": _of_tools,
    "resources/list": _of_resources,
    "server/discover": _of_capabilities,
}


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool without its view."""
    meta = {name: member for name, member in tool.get("_meta", {}).items() if name != "ui"}
    plain = {name: member for name, member in tool.items() if name != "_meta"}
    return {**plain, "_meta": meta} if meta else plain
