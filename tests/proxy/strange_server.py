"""A server with everything that a proxy has to pass on, much of it known to no SDK.

`python strange_server.py` speaks 2025-11-25 over stdio; `over_http` serves both revisions at
`/mcp`, and one of them alone at `/2025-11-25/mcp` and `/2026-07-28/mcp`.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from mcp import MCPError
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OLD, NEW = "2025-11-25", "2026-07-28"
CHAINING = "com.example/tool-chaining"
WEATHER = "com.strange/weather"
"""An extension of another party: `weather/read`, and notifications in both directions."""

META = "io.modelcontextprotocol/"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
INFO = {"name": "strange", "version": "7", "title": "Strange", "x-info": {"kept": True}}
INSTRUCTIONS = "Handle with care."
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True, "x-tools": 1},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
    "experimental": {"x-try": {"deep": [1]}},
    "extensions": {WEATHER: {"unit": "K"}, CHAINING: {}},
}

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
FORM = {
    "type": "object",
    "properties": {"colour": {"type": "string", "title": "Colour"}},
    "required": ["colour"],
}

bus = InMemorySubscriptionBus()

JSON = dict[str, Any]
Tool = Callable[[Any, JSON], Awaitable[JSON]]
TOOLS: dict[str, tuple[JSON, Tool]] = {}


def tool(name: str, schema: JSON = NOTHING, **members: Any) -> Callable[[Tool], Tool]:
    def add(function: Tool) -> Tool:
        hints = {"annotations": {"readOnlyHint": True}, "x-tool": name}
        listed = {"name": name, "inputSchema": schema, **hints, **members}
        TOOLS[name] = (listed, function)
        return function

    return add


def said(text: str, **members: Any) -> JSON:
    return {"content": [{"type": "text", "text": text}], **members}


def is_new(ctx: Any) -> bool:
    return bool(ctx.protocol_version == NEW)


def meta_of(params: Mapping[str, Any] | None) -> JSON:
    return dict((params or {}).get("_meta") or {})


class Interim(Exception):
    """On 2026-07-28 a question is a result."""

    def __init__(self, questions: JSON, state: str) -> None:
        self.result = {
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": state,
        }


async def ask(ctx: Any, params: JSON, round_: int = 1, **questions: JSON) -> JSON:
    """Ask `{method, params}` under each key, all at once where the revision can. Raw answers."""
    if not is_new(ctx):
        send = ctx.session._request_outbound.send_raw_request
        return {key: await send(one["method"], one.get("params")) for key, one in questions.items()}
    had = int((params.get("requestState") or "0").rpartition(" ")[2])
    if had < round_:
        raise Interim(questions, f"round {round_}")
    # Of the rounds before the last, the answers are not kept: nobody looks at them.
    return params.get("inputResponses") or {} if had == round_ else {}


def form(message: str) -> JSON:
    params = {"mode": "form", "message": message, "requestedSchema": FORM, "x-form": True}
    return {"method": "elicitation/create", "params": params}


@tool(
    "echo",
    {"type": "object", "properties": {"text": {"type": "string"}, "more": True}},
    title="Echo",
    description="Says it again.",
    outputSchema={"type": "object", "properties": {"arguments": {}, "meta": {}}},
    _meta={"com.strange/tool": [1, None]},
)
async def echo(ctx: Any, params: JSON) -> JSON:
    arguments = params.get("arguments")
    item = {"type": "text", "text": "again", "annotations": {"audience": ["user"], "x-a": 1}}
    return {
        "content": [
            {**item, "x-item": None, "_meta": {"com.strange/item": 1}},
            {"type": "x-hologram", "data": {"depth": 3}},
            {"type": "resource_link", "uri": "strange://1", "name": "one", "x-link": 2},
        ],
        "structuredContent": {"arguments": arguments, "meta": meta_of(params)},
        "isError": False,
        "x-result": {"kept": [True, None]},
        "_meta": {"com.strange/result": {"deep": 1}, "plain": "member"},
    }


@tool("form_twice")
async def ask_form_twice(ctx: Any, params: JSON) -> JSON:
    await ask(ctx, params, 1, one=form("One?"))
    answers = await ask(ctx, params, 2, two=form("Two?"), three=form("Three?"))
    return said(json.dumps(answers, sort_keys=True))


@tool("asks_all")
async def asks_all(ctx: Any, params: JSON) -> JSON:
    where = {"url": "https://strange.example/pay", "elicitationId": "e1", "message": "Pay there."}
    message = {"role": "user", "content": {"type": "text", "text": "Say something."}}
    wanted = {"messages": [message], "maxTokens": 9, "systemPrompt": "Be brief."}
    answers = await ask(
        ctx,
        params,
        pay={"method": "elicitation/create", "params": {"mode": "url", **where}},
        text={"method": "sampling/createMessage", "params": wanted},
        roots={"method": "roots/list", "params": {}},
    )
    if not is_new(ctx):
        done = {"elicitationId": "e1"}
        await ctx.session._request_outbound.notify("notifications/elicitation/complete", done)
    return said(json.dumps(answers, sort_keys=True), isError=True)


@tool("work")
async def work(ctx: Any, params: JSON) -> JSON:
    notify = ctx.session._request_outbound.notify
    wanted = ctx.session._connection.state.get("level", "warning")
    if is_new(ctx):
        wanted = meta_of(params).get(f"{META}logLevel")
    token = meta_of(params).get("progressToken")
    for step in (1, 2, 3):
        if token is not None:
            progress = {"progressToken": token, "progress": step, "total": 3, "message": f"{step}"}
            await notify("notifications/progress", {**progress, "x-progress": step})
        level = ("debug", "info", "error")[step - 1]
        if wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted):
            await notify("notifications/message", {"level": level, "data": {"step": step}})
    return said("Worked.")


@tool("error")
async def error(ctx: Any, params: JSON) -> JSON:
    raise MCPError(code=-32099, message="A strange error", data={"why": ["strange", None]})


@tool("who")
async def who(ctx: Any, params: JSON) -> JSON:
    """Who answers, who it believes asks, and what it heard from them unasked."""
    known = ctx.session._connection.state
    meta = meta_of(params)
    request = ctx.request
    told = {
        "revision": ctx.protocol_version,
        "client": meta.get(f"{META}clientInfo", known.get("clientInfo")),
        "capabilities": meta.get(f"{META}clientCapabilities", known.get("capabilities")),
        "authorization": request and request.headers.get("authorization"),
        "heard": known.get("heard", {}),
    }
    return said(json.dumps(told), structuredContent=told)


@tool("change")
async def change(ctx: Any, params: JSON) -> JSON:
    """Everything changes, and whoever wants to know is told."""
    for event in (
        ToolsListChanged(),
        PromptsListChanged(),
        ResourcesListChanged(),
        ResourceUpdated("strange://1"),
    ):
        await bus.publish(event)
    if not is_new(ctx):
        tell = ctx.session._connection.notify
        for kind in ("tools", "prompts", "resources"):
            await tell(f"notifications/{kind}/list_changed", {"_meta": {"com.strange/n": kind}})
        for uri in sorted(ctx.session._connection.state.get("subscribed", ())):
            await tell("notifications/resources/updated", {"uri": uri, "x-updated": 1})
    weather = {"kelvin": 281, "_meta": {"com.strange/n": "weather"}}
    await ctx.session._request_outbound.notify("notifications/weather/changed", weather)
    return said("Changed.")


async def call(ctx: Any, params: JSON) -> JSON:
    return await TOOLS[params["name"]][1](ctx, params)


async def list_tools(ctx: Any, params: JSON) -> JSON:
    """A page of the list. Cursors are opaque, and the last page has none."""
    start = int(base64.b64decode(params.get("cursor") or "MA=="))
    listed = [each for each, _ in TOOLS.values()]
    found: JSON = {"tools": listed[start : start + 5], "x-tools": True}
    if start + 5 < len(listed):
        found["nextCursor"] = base64.b64encode(str(start + 5).encode()).decode()
    return found


async def read(ctx: Any, params: JSON) -> JSON:
    text = params["uri"]
    if text == "strange://asks":
        answers = await ask(ctx, params, colour=form("Which colour to read?"))
        text = json.dumps(answers["colour"], sort_keys=True)
    return {"contents": [{"uri": params["uri"], "text": text, "x-c": 1}], "x-read": True}


async def subscribe(ctx: Any, params: JSON) -> JSON:
    ctx.session._connection.state.setdefault("subscribed", set()).add(params["uri"])
    return {}


async def set_level(ctx: Any, params: JSON) -> JSON:
    ctx.session._connection.state["level"] = params["level"]
    return {}


async def weather(ctx: Any, params: JSON) -> JSON:
    return {"kelvin": 280, "asked": {k: v for k, v in params.items() if k != "_meta"}}


async def discover(ctx: Any, params: JSON) -> JSON:
    described = {"capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
    return {"supportedVersions": [NEW], "ttlMs": 0, "cacheScope": "private", **described}


METHODS: dict[str, Callable[[Any, JSON], Awaitable[JSON]]] = {
    "tools/call": call,
    "tools/list": list_tools,
    "resources/read": read,
    "weather/read": weather,
}
OLD_ONLY = {
    "resources/subscribe": subscribe,
    "logging/setLevel": set_level,
}
CACHED = ("tools/list", "resources/read")


async def answer(ctx: Any, call_next: Any) -> Any:
    """Answer each message from the tables: no model of the SDK looks at what comes and goes."""
    params = dict(ctx.params or {})
    if ctx.request_id is None:
        if "/weather/" in ctx.method or "roots" in ctx.method:
            ctx.session._connection.state.setdefault("heard", {})[ctx.method] = params
        return await call_next(ctx)
    if ctx.method == "initialize":
        result = dict(await call_next(ctx))
        ctx.session._connection.state.update(params)
        mine = {"capabilities": CAPABILITIES, "serverInfo": INFO, "instructions": INSTRUCTIONS}
        return {**result, **mine, "x-initialize": 1}
    handler = METHODS.get(ctx.method)
    if not is_new(ctx):
        handler = handler or OLD_ONLY.get(ctx.method)
    elif ctx.method == "server/discover":
        handler = discover
    if handler is None:
        return await call_next(ctx)
    try:
        result = await handler(ctx, params)
    except Interim as interim:
        result = interim.result
    if is_new(ctx):
        cached = {"ttlMs": 0, "cacheScope": "private"} if ctx.method in CACHED else {}
        meta = {**meta_of(result), f"{META}serverInfo": INFO}
        result = {"resultType": "complete", **cached, **result, "_meta": meta}
    return result


def made() -> Server[Any]:
    server: Server[Any] = Server("strange", on_subscriptions_listen=ListenHandler(bus))
    server.middleware.append(answer)
    return server


METADATA = 'resource_metadata="https://strange.example/.well-known/oauth-protected-resource"'


async def serve_stdio() -> None:
    """Serve 2025-11-25 alone."""
    async with stdio_server() as (incoming, outgoing):
        await serve_loop(made(), incoming, outgoing, lifespan_state={})


def over_http() -> Starlette:
    """Return the server as an ASGI application.

    It refuses tokens as a server does that has an authorization server, and quotes them. Where it
    speaks one revision it refuses the other, as a server does that has never heard of it.
    """
    app = made().streamable_http_app()
    app.add_middleware(_Door)
    return app


class _Door:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        token = headers.get(b"authorization", "")
        told = headers.get(b"mcp-protocol-version")
        only = scope.get("path", "").removesuffix("/mcp").strip("/")
        status, words = 200, ""
        error: JSON = {"code": -32001, "message": f"{token} is not good enough"}
        if token == "Bearer expired":
            status, words = 401, 'Bearer error="invalid_token", '
        elif token.startswith("Bearer narrow"):
            status, words = 403, 'Bearer error="insufficient_scope", scope="pay", '
        elif only and (told == NEW) != (only == NEW):
            data = {"supported": [only], "requested": told or OLD}
            status = 400
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        if status == 200:
            path = {"path": "/mcp", "raw_path": b"/mcp"} if only else {}
            return await self._app({**scope, **path}, receive, send)
        challenge = {"WWW-Authenticate": words + METADATA} if words else {}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        await JSONResponse(body, status_code=status, headers=challenge)(scope, receive, send)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio())
