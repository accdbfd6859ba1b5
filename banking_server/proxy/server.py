"""What becomes of each message of the client: the proxy's half that is a server."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.types import INVALID_PARAMS, INVALID_REQUEST
from starlette.requests import Request

from banking_server import __version__
from banking_server.proxy import NAME, chains, eras
from banking_server.proxy.eras import Json
from banking_server.proxy.link import Link, Links
from banking_server.proxy.questions import Parked, Running, not_asked_any_more
from banking_server.proxy.sdk import (
    CallNext,
    Context,
    HandlerResult,
    RequestStateBoundary,
    RequestStateSecurity,
    connection_of,
)
from banking_server.proxy.upstream import REFUSAL, Refused


def proxy_server(links: Links, *, parked_for: float) -> Server[Any]:
    """Return a server of the SDK that passes on whatever its clients send.

    It has no handlers: its middleware answers each message. `parked_for` is in seconds.
    """
    server: Server[Any] = Server(NAME, version=__version__)
    security = RequestStateSecurity(
        keys=[os.urandom(32)], ttl=parked_for, bind_principal=links.principal
    )
    server.middleware.append(_in_our_words)
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    server.middleware.append(_Passing(links))
    return server


async def _in_our_words(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Say what to do to whoever answers with a state that is too old, or of another process."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        reason = error.data.get("reason") if isinstance(error.data, dict) else None
        if reason == "invalid_request_state" and "requestState" in (ctx.params or {}):
            raise not_asked_any_more() from None
        raise


class _Passing:
    """The middleware that answers."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        try:
            return await self._handled(ctx, call_next)
        except Refused as refusal:
            if isinstance(ctx.request, Request):
                ctx.request.scope["state"][REFUSAL] = (ctx.request_id, refusal)
            raise

    async def _handled(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            await self._told(ctx, call_next)
            return None
        if not isinstance((ctx.params or {}).get("_meta", {}), Mapping | None):
            raise MCPError(code=INVALID_PARAMS, message="The member _meta must be an object.")
        connection = connection_of(ctx)
        if ctx.method == "initialize":
            await call_next(ctx)  # It checks the handshake, and would answer for itself.
        elif not connection.initialize_accepted:
            if ctx.method == "ping":
                return {}
            raise MCPError(
                code=INVALID_REQUEST, message="The first request of a connection is initialize."
            )
        link = await self._links.of(ctx)
        try:
            upstream = await link.upstream()
        except MCPError as error:
            # A client of both revisions goes on with `initialize`, and then it is told.
            if ctx.method != "server/discover":
                print(f"{NAME}: {error.message}", file=sys.stderr, flush=True)
            raise
        if ctx.method == ("server/discover" if upstream.modern else "initialize"):
            return eras.greeting(upstream.greeting)
        return await _answer(ctx, link)

    async def _told(self, ctx: Context, call_next: CallNext) -> None:
        await call_next(ctx)
        # The dispatcher has cancelled the request by now; our own connection says its own "ready".
        if ctx.method in ("notifications/cancelled", "notifications/initialized"):
            return
        with suppress(MCPError):  # Nobody waits for an answer.
            link = await self._links.of(ctx)
            await link.notify(ctx.method, dict(ctx.params or {}))


async def _answer(ctx: Context, link: Link) -> Json:
    params = dict(ctx.params or {})
    declared = link.declared
    if declared.modern:
        declared = eras.declared_by(ctx.method, params, declared.revision)
    if not (declared.modern and ctx.method in eras.ASKED_OF):
        running = Running(ctx, declared)
        with link.running(running):
            return await _answered(link, running, params)
    if params.get("requestState") is not None:
        return await link.resumed(ctx, params["requestState"], params.get("inputResponses"))
    parked = Parked(ctx, declared, parked_for=link.options.parked_for)
    return await link.parked(parked, lambda: _answered(link, parked, params))


async def _answered(link: Link, running: Running, params: Json) -> Json:
    method = running.method
    # A task of 2025-11-25 has its result later, and is the client's to follow.
    if method == "tools/call" and "task" not in params:
        result = await chains.call(link, running, params)
    else:
        result = await link.answer(running, method, params)
    if method == "tools/list":
        return chains.without_output_schemas(result)
    return result
