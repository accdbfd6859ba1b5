"""The server half of the proxy: it handles each message of the client."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.types import INVALID_PARAMS, INVALID_REQUEST
from starlette.requests import Request

from tool_chaining.text import one_line
from tool_chaining_proxy import NAME, __version__, chains, eras
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.hosting.operator import write_line
from tool_chaining_proxy.link import Link
from tool_chaining_proxy.questions import Parked, Running
from tool_chaining_proxy.sdk import CallNext, Context, HandlerResult, connection_of
from tool_chaining_proxy.upstream import REFUSAL, Refused

LinkOf = Callable[[Context], Awaitable[Link]]
"""Finds the link of a message's sender. `initialize` or the first modern request makes it.

Raises MCPError if it cannot be made.
"""


def proxy_server(link_of: LinkOf) -> Server[Any]:
    """Return a server of the SDK that passes on every message of its clients.

    It has no handlers: its middleware answers each message.
    """
    server: Server[Any] = Server(NAME, version=__version__)
    server.middleware.append(_Passing(link_of))
    return server


class _Passing:
    """The middleware that answers each message."""

    def __init__(self, link_of: LinkOf) -> None:
        self._link_of = link_of

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        try:
            return await self._handled(ctx, call_next)
        except Refused as refusal:
            if isinstance(ctx.request, Request):
                ctx.request.scope["state"][REFUSAL] = (ctx.request_id, refusal)
            raise

    async def _handled(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            await self._notified(ctx, call_next)
            return None
        if not isinstance((ctx.params or {}).get("_meta", {}), Mapping | None):
            raise MCPError(code=INVALID_PARAMS, message="The member _meta must be an object.")
        connection = connection_of(ctx)
        if ctx.method == "initialize":
            await call_next(ctx)  # It checks the handshake. Its result is not used.
        elif not connection.initialize_accepted:
            if ctx.method == "ping":
                return {}
            raise MCPError(
                code=INVALID_REQUEST, message="The first request of a connection is initialize."
            )
        link = await self._link_of(ctx)
        try:
            upstream = await link.upstream()
        except MCPError as error:
            # A client of both revisions then sends `initialize`, and gets the error there.
            if ctx.method != "server/discover":
                write_line(f"{NAME}: {one_line(error.message)}")
            raise
        if ctx.method == ("server/discover" if upstream.modern else "initialize"):
            return eras.greeting(upstream.greeting)
        return await _answer(ctx, link)

    async def _notified(self, ctx: Context, call_next: CallNext) -> None:
        await call_next(ctx)
        # The dispatcher has cancelled the request; the upstream connection sends its own message.
        if ctx.method in ("notifications/cancelled", "notifications/initialized"):
            return
        with suppress(MCPError):  # Nobody waits for an answer.
            link = await self._link_of(ctx)
            await link.notify(ctx.method, dict(ctx.params or {}))


async def _answer(ctx: Context, link: Link) -> Json:
    params = dict(ctx.params or {})
    declared = link.declared
    if declared.modern:
        declared = eras.declared_by(ctx.method, params, declared.revision)
    if not (declared.modern and ctx.method in eras.ASKED_OF):
        running = Running(ctx, declared)
        with link.running(running):
            result = await _answered(link, running, params)
    else:
        if params.get("requestState") is not None:
            parked = link.resumed(ctx, params["requestState"], params.get("inputResponses"))
        else:
            parked = Parked(ctx, declared, parked_for=link.options.parked_for)
            link.park(parked, lambda: _answered(link, parked, params))
        running, result = parked, await link.round(parked)
    await running.hand_over()
    return result


async def _answered(link: Link, running: Running, params: Json) -> Json:
    method = running.method
    # A task of 2025-11-25 has its result later. Then the client handles it.
    if method == "tools/call" and "task" not in params:
        result = await chains.call(link, running, params)
    else:
        result = await link.answer(running, method, params)
    if method == "tools/list" and (link.follows or link.options.rules):
        return chains.without_output_schemas(result)
    return result
