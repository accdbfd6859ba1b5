"""The two servers that the chaining tests talk to, in memory, over stdio and over HTTP.

`scripted` is a low-level server that says whatever a test makes it say, well-formed or not, and
writes down every call that reaches it. `checked` has the server half of the extension.

As a script, it serves one of them over stdio: `python chain_server.py scripted`.
"""

import json
import os
import sys
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ImageContent,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from banking_server.chaining import (
    IDENTIFIER,
    META_KEY,
    SETTINGS,
    ToolChaining,
    read_provenance,
)

READ_ONLY = ToolAnnotations(read_only_hint=True)
ANY_OBJECT: dict[str, Any] = {"type": "object"}
QUESTION: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
TYPED: dict[str, Any] = {
    "type": "object",
    "properties": {"account": {"type": "string", "pattern": "^acc_"}},
    "required": ["account"],
    "additionalProperties": False,
}


def _tool(
    name: str,
    schema: dict[str, Any] = ANY_OBJECT,
    annotations: ToolAnnotations | None = READ_ONLY,
    **more: Any,
) -> Tool:
    return Tool(name=name, input_schema=schema, annotations=annotations, **more)


FIRST_PAGE = [
    _tool("take_calls"),
    _tool("relay"),
    _tool("echo"),
    _tool("typed", TYPED),
    _tool("remote_schema", {"type": "object", "$ref": "https://schemas.invalid/arguments.json"}),
    _tool("ping"),
    _tool("pong"),
    _tool("spin"),
    _tool("count"),
    _tool("ask"),
    _tool("grow"),
    _tool("crash"),
    _tool("hang"),
    _tool("exit"),
    _tool("app_only", _meta={"ui": {"visibility": ["app"]}}),
    _tool("app_and_model", _meta={"ui": {"visibility": ["app", "model"]}}),
]
SECOND_PAGE = [
    _tool("far"),
    _tool("gentle", annotations=ToolAnnotations(destructive_hint=False)),
    _tool("bare", annotations=None),
    _tool("untold", annotations=ToolAnnotations(title="Says nothing of what it does")),
    _tool("writes", annotations=ToolAnnotations(read_only_hint=False)),
    _tool("destroy", annotations=ToolAnnotations(destructive_hint=True)),
    _tool("erase", annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True)),
]


ITEMS: dict[str, ContentBlock] = {
    "text": TextContent(type="text", text="one"),
    "words": TextContent(type="text", text="x", _meta={IDENTIFIER: {"describes": META_KEY}}),
    "image": ImageContent(type="image", data="AAAA", mime_type="image/png"),
}


class Script:
    """What the scripted server did, and how it answers.

    `relay` takes its own answer as arguments: the text to `say`, the `next` directive to send
    as it stands, and whether the result is an `error`. So a test spells out a whole chain in
    the arguments of its first call.
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.grown = False

    def take(self) -> CallToolResult:
        """Hand over what was written down, and begin anew."""
        calls, self.calls, self.grown = self.calls, [], False
        return CallToolResult(content=[], structured_content={"calls": calls})

    async def list_tools(self, ctx: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        if params is None or params.cursor is None:
            return ListToolsResult(tools=FIRST_PAGE, next_cursor="second")
        return ListToolsResult(tools=[*SECOND_PAGE, *([_tool("late")] if self.grown else [])])

    async def call_tool(
        self, ctx: Any, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name == "take_calls":
            return self.take()
        arguments = params.arguments or {}
        first_round = not params.input_responses
        if first_round:
            provenance = read_provenance(ctx.meta)
            self.calls.append(
                {
                    "tool": params.name,
                    # As text, so that 1.0 is still not 1 when the test reads it.
                    "arguments": json.dumps(params.arguments),
                    "provenance": None if provenance is None else provenance.model_dump(),
                    "meta": {k: v for k, v in (ctx.meta or {}).items() if "/" not in k},
                }
            )
        match params.name:
            case "relay":
                return _answer(arguments.get("say", "relayed"), arguments)
            case "ping":
                return _answer("ping", {"next": {"tool": "pong"}})
            case "pong":
                return _answer("pong", {"next": {"tool": "ping", "arguments": {}}})
            case "spin":
                return _answer("spin", {"next": {"tool": "spin", "arguments": {"n": 1.0}}})
            case "count":
                more = {"n": arguments["n"] + 1}
                return _answer(str(arguments["n"]), {"next": {"tool": "count", "arguments": more}})
            case "grow":
                self.grown = True
                return _answer("grown", {"next": {"tool": "late"}})
            case "crash":
                raise MCPError(code=-32099, message="crashed as asked")
            case "hang":
                await anyio.sleep_forever()
            case "exit":
                os._exit(3)
            case "ask":
                if ctx.protocol_version < "2026":
                    answer = await ctx.session.elicit_form("Go on?", QUESTION, ctx.request_id)
                elif first_round:
                    return InputRequiredResult(
                        input_requests={
                            "go_on": ElicitRequest(
                                params=ElicitRequestFormParams(
                                    message="Go on?", requested_schema=QUESTION
                                )
                            )
                        },
                        _meta={META_KEY: {"tool": "echo", "arguments": {"from": "interim"}}},
                    )
                else:
                    answer = params.input_responses["go_on"]
                return _answer(f"{answer.action} {json.dumps(answer.content)}", arguments)
        return _answer(params.name, {})


def _answer(text: str, arguments: dict[str, Any]) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content={"said": text},
        is_error=arguments.get("error", False),
        _meta={META_KEY: arguments["next"]} if "next" in arguments else None,
    )


def scripted() -> Server[Any]:
    script = Script()
    server = Server("scripted", on_list_tools=script.list_tools, on_call_tool=script.call_tool)
    server.extensions[IDENTIFIER] = SETTINGS  # for 2026-07-28; to the old era it says nothing
    return server


def checked() -> MCPServer[Any]:
    chaining = ToolChaining()
    mcp: MCPServer[Any] = MCPServer("checked", extensions=[chaining])
    chaining.bind(mcp)

    @mcp.tool(annotations=READ_ONLY)
    async def emit(
        directive: Any = None,
        error: bool = False,
        bare: bool = False,
        content: list[str] | None = None,
    ) -> Any:
        """Return a result with this directive, whatever it is, or with none."""
        meta: dict[str, Any] = {} if bare else {"kept": {"by": "server"}}
        if directive is not None:
            meta[META_KEY] = directive["value"]
        items = [TextContent(type="text", text="one"), TextContent(type="text", text="two")]
        return CallToolResult(
            content=items if content is None else [ITEMS[kind] for kind in content],
            structured_content={"n": 1},
            is_error=error,
            _meta=meta or None,
        )

    @mcp.tool(annotations=READ_ONLY)
    async def target(reason: str, urgency: int = 0) -> str:
        """Take what a directive names."""
        return f"target: {reason}"

    @mcp.tool(annotations=READ_ONLY, meta={"ui": {"visibility": ["app"]}})
    async def for_people() -> str:
        """Take a click."""
        return "clicked"

    @mcp.tool(annotations=READ_ONLY)
    async def interim() -> Any:
        """Ask something (2026-07-28), and wrongly name a next tool while asking."""
        return InputRequiredResult(
            input_requests={
                "q": ElicitRequest(
                    params=ElicitRequestFormParams(message="Well?", requested_schema=QUESTION)
                )
            },
            _meta={META_KEY: {"tool": "target", "arguments": {"reason": "interim"}}, "kept": 1},
        )

    return mcp


def build(kind: str) -> Server[Any] | MCPServer[Any]:
    return {"scripted": scripted, "checked": checked}[kind]()


async def _serve_stdio(kind: str) -> None:
    server = build(kind)
    if isinstance(server, MCPServer):
        await server.run_stdio_async()
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve_stdio, sys.argv[1])
