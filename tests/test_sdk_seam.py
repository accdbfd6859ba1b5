"""What is borrowed from the inside of the MCP SDK: when the SDK moves it, the first test to fail.

The SDK's versioning policy covers what its packages export and its documentation names, and nothing
else. The modules `sdk.py` say what is borrowed beyond that, and why. Nothing of this project is
imported here, so that these tests run even if it cannot be imported any more.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

PACKAGE = Path(__file__).parents[1] / "banking_server"

# --- each borrowed thing is there -----------------------------------------------------------------

BORROWED: list[tuple[str, str, set[str]]] = [
    # By whom, what, and the parameters or fields that are used.
    (
        "tools/sdk.py",
        "mcp.server.mcpserver.tools:Tool.from_function",
        {"fn", "title", "description", "annotations", "meta"},
    ),
    ("tools/sdk.py", "mcp.server.mcpserver.tools:Tool.run", {"arguments", "context"}),
    (
        "tools/sdk.py",
        "mcp.server.mcpserver.tools:Tool",
        {"parameters", "fn_metadata", "name", "resolver_plans"},
    ),
    (
        "tools/sdk.py",
        "mcp.server.mcpserver.utilities.func_metadata:FuncMetadata",
        {"arg_model", "output_schema", "output_model", "wrap_output"},
    ),
    (
        "tools/sdk.py",
        "mcp.server.mcpserver.utilities.func_metadata:FuncMetadata.pre_parse_json",
        {"data"},
    ),
    ("tools/sdk.py", "mcp.server.mcpserver.utilities.func_metadata:ArgModelBase", set()),
    ("tools/sdk.py", "mcp.server.mcpserver.exceptions:ToolError", set()),
    ("tools/sdk.py", "mcp.server.mcpserver.exceptions:UnexpectedToolError", set()),
    (
        "tools/sdk.py",
        "mcp.server.mcpserver:Context",
        {"request_context", "mcp_server", "input_params"},
    ),
    ("tools/sdk.py", "mcp:ServerSession.send_request", {"request", "result_type", "metadata"}),
    ("tools/sdk.py", "mcp:ServerSession.can_send_request", set()),
    ("tools/sdk.py", "mcp.shared.message:ServerMessageMetadata", {"related_request_id"}),
    ("tools/sdk.py", "mcp.server.context:CallNext", set()),
    ("tools/sdk.py", "mcp.server.context:HandlerResult", set()),
    ("tools/calling.py", "mcp.server:MCPServer.call_tool", {"name", "arguments", "context"}),
    ("tools/calling.py", "mcp.server:MCPServer._tool_input_schema", {"name"}),
    (
        "tools/sdk.py and chaining/server.py, as MCPServer._tool_manager",
        "mcp.server.mcpserver.tools:ToolManager.get_tool",
        {"name"},
    ),
    ("chaining/server.py", "mcp.server.mcpserver.tools:Tool", {"parameters"}),
    ("chaining/server.py", "mcp.server:MCPServer.list_tools", set()),
    ("server/build.py", "mcp.server:MCPServer", {"tools", "middleware", "lifespan"}),
    (
        "messages/sdk.py",
        "mcp.server.transport_security:RequestBodyLimitMiddleware",
        {"app", "max_body_size"},
    ),
    (
        "server/sdk.py",
        "mcp.server.auth.routes:build_resource_metadata_url",
        {"resource_server_url"},
    ),
    (
        "server/sdk.py",
        "mcp.server.streamable_http:StreamableHTTPServerTransport",
        {"mcp_session_id", "security_settings", "idle_timeout"},
    ),
    (
        "server/sdk.py",
        "mcp.server.streamable_http:StreamableHTTPServerTransport.handle_request",
        {"scope", "receive", "send"},
    ),
    ("server/sdk.py", "mcp.server.streamable_http:StreamableHTTPServerTransport.connect", set()),
    ("server/sdk.py", "mcp.server.streamable_http:StreamableHTTPServerTransport.terminate", set()),
    (
        "server/sdk.py",
        "mcp.server.streamable_http:StreamableHTTPServerTransport.is_terminated",
        set(),
    ),
    (
        "server/sdk.py",
        "mcp.server.runner:serve_loop",
        {"server", "read_stream", "write_stream", "lifespan_state", "session_id"},
    ),
    ("server/sdk.py", "mcp.server.lowlevel.server:Server", set()),
    ("server/sdk.py", "mcp.server.context:CallNext", set()),
    ("server/sdk.py", "mcp.server.context:HandlerResult", set()),
    ("server/http.py", "mcp.server:MCPServer.session_manager", set()),
    ("messages/sdk.py", "mcp.shared.message:SessionMessage", {"message"}),
    (
        "server/sdk.py, as MCPServer._lowlevel_server",
        "mcp.server.lowlevel.server:Server.run",
        {"read_stream", "write_stream", "initialization_options"},
    ),
    ("messages/lines.py", "mcp.server.stdio:stdio_server", {"stdin"}),
    ("tools/calling.py", "mcp.server:MCPServer.get_prompt", {"name", "arguments", "context"}),
    (
        "connections.py",
        "uvicorn.protocols.http.h11_impl:H11Protocol.connection_made",
        {"transport"},
    ),
    (
        "connections.py",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.data_received",
        {"data"},
    ),
    (
        "connections.py",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.on_message_begin",
        set(),
    ),
    (
        "connections.py",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.on_headers_complete",
        set(),
    ),
    (
        "connections.py",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.send_400_response",
        {"msg"},
    ),
    (
        "proxy/sdk.py, as ServerSession._request_outbound and ._connection",
        "mcp:ServerSession",
        {"request_outbound", "connection"},
    ),
    (
        "proxy/sdk.py",
        "mcp.server.connection:Connection.from_envelope",
        {"protocol_version", "client_info", "client_capabilities"},
    ),
    ("proxy/sdk.py", "mcp.server.connection:Connection.send_raw_request", {"method", "params"}),
    ("proxy/sdk.py", "mcp.server.connection:Connection.notify", {"method", "params"}),
    ("proxy/sdk.py", "mcp.server.connection:Connection.initialize_accepted", set()),
    ("proxy/sdk.py", "mcp.server.connection:allowed_log_levels", {"protocol_version", "meta"}),
    ("proxy/sdk.py", "mcp.server.context:CallNext", set()),
    ("proxy/sdk.py", "mcp.server.context:HandlerResult", set()),
    (
        "proxy/sdk.py",
        "mcp.server.request_state:RequestStateSecurity",
        {"keys", "ttl", "bind_principal"},
    ),
    (
        "proxy/sdk.py",
        "mcp.server.request_state:RequestStateBoundary",
        {"security", "default_audience"},
    ),
    ("proxy/sdk.py", "mcp.shared.dispatcher:CallOptions", set()),
    ("proxy/sdk.py", "mcp.shared.dispatcher:DispatchContext", set()),
    ("proxy/sdk.py", "mcp.shared.message:SessionMessage", {"message"}),
    ("proxy/sdk.py", "mcp.shared.dispatcher:Outbound", set()),
    ("proxy/sdk.py", "mcp.shared.inbound:NAME_BEARING_METHODS", set()),
    ("proxy/sdk.py", "mcp.shared.inbound:encode_header_value", {"value"}),
    ("proxy/sdk.py", "mcp.shared.inbound:find_invalid_x_mcp_header", {"input_schema"}),
    ("proxy/sdk.py", "mcp.shared.inbound:mcp_param_headers", {"header_map", "arguments"}),
    ("proxy/sdk.py", "mcp.shared.inbound:x_mcp_header_map", {"input_schema"}),
    (
        "proxy/sdk.py",
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher",
        {"read_stream", "write_stream"},
    ),
    (
        "proxy/sdk.py",
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.run",
        {"on_request", "on_notify", "on_notify_intercept"},
    ),
    (
        "proxy/sdk.py",
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.send_raw_request",
        {"method", "params", "opts"},
    ),
    ("proxy/sdk.py", "mcp.shared.subscriptions:SUBSCRIPTION_ID_META_KEY", set()),
    (
        "proxy/sdk.py",
        "mcp.server.auth.middleware.bearer_auth:AuthenticatedUser",
        {"auth_info"},
    ),
    ("proxy/sdk.py", "mcp.server.streamable_http:MCP_SESSION_ID_HEADER", set()),
    (
        "proxy/sdk.py",
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager",
        {"app", "session_idle_timeout", "max_sessions"},
    ),
    (
        "proxy/sdk.py",
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager.handle_request",
        {"scope", "receive", "send"},
    ),
    (
        "proxy/sdk.py",
        "sse_starlette.sse:AppStatus.disable_automatic_graceful_drain",
        set(),
    ),
    ("proxy/http.py", "uvicorn.protocols.http.auto:AutoHTTPProtocol", {"app_state"}),
    (
        "proxy/http.py",
        "uvicorn.protocols.http.auto:AutoHTTPProtocol.connection_made",
        {"transport"},
    ),
    ("proxy/http.py", "uvicorn.protocols.http.auto:AutoHTTPProtocol.connection_lost", {"exc"}),
    (
        "chaining/server.py",
        "mcp.server.extension:Extension.intercept_tool_call",
        {"params", "ctx", "call_next"},
    ),
    ("chaining/server.py", "mcp.server.extension:Extension.settings", set()),
    ("chaining/server.py", "mcp.server.context:CallNext", set()),
    ("chaining/server.py", "mcp.server.context:HandlerResult", set()),
    ("chaining/server.py", "mcp.server:MCPServer.middleware", set()),
]


@pytest.mark.parametrize(
    ("by", "what", "used"), BORROWED, ids=[f"{what}, by {by}" for by, what, _ in BORROWED]
)
def test_the_sdk_still_has_what_is_borrowed(by: str, what: str, used: set[str]) -> None:
    module, _, path = what.partition(":")
    try:
        thing: Any = importlib.import_module(module)
        for part in path.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as gone:
        pytest.fail(f"{by} borrows {what}, which the SDK has moved: {gone}")
    if used:
        there = set(inspect.signature(thing).parameters)
        assert used <= there, f"{by} uses {used - there} of {what}, which the SDK has changed"


# --- and does what it is borrowed for -------------------------------------------------------------


def test_each_call_goes_through_call_tool_and_each_read_through_the_middleware() -> None:
    """`BankServer` overrides the one, `serving_resource` is the other."""
    from mcp import Client
    from mcp.server import MCPServer

    seen: list[str] = []

    class Server(MCPServer[Any]):
        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            assert context.request_context.method == "tools/call"
            seen.append(f"call_tool {name}")
            return await super().call_tool(name, arguments, context)

    async def look(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "resources/read":
            seen.append("middleware")
        return await call_next(ctx)

    mcp = Server("seam", middleware=[look])

    @mcp.tool()
    async def greet() -> str:
        return "Hello"

    @mcp.resource("seam://greeting")
    async def greeting() -> str:
        return "Hello"

    async def talk(mode: str) -> None:
        async with Client(mcp, mode=mode) as client:
            await client.call_tool("greet", {})
            await client.read_resource("seam://greeting")

    for mode in ("auto", "legacy"):
        seen.clear()
        anyio.run(talk, mode)
        assert seen == ["call_tool greet", "middleware"], mode


def test_the_tool_manager_knows_the_tools_of_the_moment() -> None:
    from mcp.server import MCPServer

    mcp = MCPServer("seam")

    @mcp.tool()
    async def greet(name: str) -> str:
        return f"Hello {name}"

    tool = mcp._tool_manager.get_tool("greet")
    assert tool is not None
    (listed,) = anyio.run(mcp.list_tools)
    assert tool.parameters == listed.input_schema
    mcp.remove_tool("greet")
    assert mcp._tool_manager.get_tool("greet") is None


def test_a_failed_tool_says_what_it_failed_of() -> None:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from pydantic import ValidationError

    mcp = MCPServer("seam")

    @mcp.tool()
    async def crash(count: int) -> str:
        raise LookupError("what crashed")

    async def fail(arguments: dict[str, Any]) -> ToolError:
        with pytest.raises(ToolError) as failed:
            await mcp.call_tool("crash", arguments)
        return failed.value

    refused = anyio.run(fail, {"count": "many"})
    assert isinstance(refused.__cause__, ValidationError)
    assert not isinstance(refused, UnexpectedToolError)
    crashed = anyio.run(fail, {"count": 1})
    assert isinstance(crashed.__cause__, LookupError)
    assert isinstance(crashed, UnexpectedToolError)


def test_a_context_made_by_hand_has_the_answers_it_was_given() -> None:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp.types import ElicitResult, InputResponseRequestParams

    answers = {"question": ElicitResult(action="decline")}
    inner: Context[Any, Any] = Context(
        request_context=None,
        mcp_server=MCPServer("seam"),
        input_params=InputResponseRequestParams(input_responses=answers, request_state="state"),
    )
    assert (inner.input_responses, inner.request_state) == (answers, "state")


def test_a_request_body_comes_whole_in_the_first_message() -> None:
    from mcp.server.transport_security import RequestBodyLimitMiddleware

    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.append(await receive())

    async def run() -> None:
        parts = [
            {"type": "http.request", "body": b"in ", "more_body": True},
            {"type": "http.request", "body": b"parts", "more_body": False},
        ]

        async def receive() -> Any:
            return parts.pop(0)

        async def send(message: Any) -> None:
            raise AssertionError(message)

        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        await RequestBodyLimitMiddleware(app, 100)(scope, receive, send)

    anyio.run(run)
    assert got == [{"type": "http.request", "body": b"in parts", "more_body": False}]


def test_the_last_user_middleware_is_innermost() -> None:
    import httpx2
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    order: list[str] = []

    class Noted:
        def __init__(self, app: Any, name: str) -> None:
            self.app, self.name = app, name

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            order.append(self.name)
            await self.app(scope, receive, send)

    app = Starlette(middleware=[Middleware(Noted, name="given")])
    app.user_middleware.append(Middleware(Noted, name="appended"))

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
            await client.get("http://seam/")

    anyio.run(ask)
    assert order == ["given", "appended"]


def test_a_client_keeps_the_output_schemas_of_its_tools() -> None:
    """`chaining/caller.py` checks by them what the SDK's validator would take for ever to check."""
    from mcp import Client
    from mcp.server import MCPServer

    mcp = MCPServer("seam")

    @mcp.tool()
    async def count() -> int:
        return 1

    async def schemas() -> dict[str, Any]:
        async with Client(mcp) as client:
            await client.list_tools()
            kept: dict[str, Any] = client.session._tool_output_schemas
            return kept

    (schema,) = anyio.run(schemas).values()
    assert schema["properties"]["result"]["type"] == "integer"


# --- nobody else borrows --------------------------------------------------------------------------

DOCUMENTED: dict[str, set[str]] = {
    "mcp.client.stdio": {"StdioServerParameters", "stdio_client"},
    "mcp.client.streamable_http": {"streamable_http_client"},
    "mcp.server.stdio": {"stdio_server"},
    "mcp.server.apps": {"APP_MIME_TYPE", "Apps", "EXTENSION_ID", "ResourceCsp"},
    "mcp.server.auth.middleware.auth_context": {"get_access_token"},
    "mcp.server.auth.provider": {"AccessToken", "TokenVerifier"},
    "mcp.server.auth.settings": {"AuthSettings"},
    "mcp.server.transport_security": {"TransportSecuritySettings"},
}
"""Modules of the SDK without an `__all__`, and the names that its documentation imports of them."""

EXPORTING = ("mcp", "mcp.types", "mcp.types.version", "mcp.server", "mcp.server.mcpserver")
"""Modules of the SDK whose `__all__` is public."""


def imported(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield what a module imports: the module, and the name if it is one of the module's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)


def is_public(module: str, name: str | None) -> bool:
    if module in DOCUMENTED:
        return name in DOCUMENTED[module]
    return module in EXPORTING and name in importlib.import_module(module).__all__


MODULES = sorted(
    path
    for room in ("messages", "tools", "server", "proxy")
    for path in (PACKAGE / room).rglob("*.py")
    if path != PACKAGE / room / "sdk.py"
)


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES])
def test_only_the_seam_imports_the_inside_of_the_sdk(path: Path) -> None:
    inside = [
        f"{module}:{name}"
        for module, name in imported(path)
        if module.split(".")[0] in ("mcp", "mcp_types") and not is_public(module, name)
    ]
    assert not inside, f"borrow these in {path.relative_to(PACKAGE).parts[0]}/sdk.py, or do without"


@pytest.mark.parametrize("room", ["messages", "tools", "server", "proxy"])
def test_every_inner_module_of_the_seam_is_asserted_here(room: str) -> None:
    asserted = {
        what.partition(":")[0] for by, what, _ in BORROWED if by.startswith(f"{room}/sdk.py")
    }
    inner = {
        module
        for module, name in imported(PACKAGE / room / "sdk.py")
        if module.split(".")[0] in ("mcp", "mcp_types") and not is_public(module, name)
    }
    assert inner
    assert inner <= asserted


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mcp.server.mcpserver.tools", "Tool"),
        ("mcp.server", "lowlevel"),
        ("mcp.server.auth.provider", "OAuthToken"),
        ("mcp.shared.message", "ServerMessageMetadata"),
        ("mcp_types", "Tool"),
        ("mcp.server.mcpserver.tools", None),
    ],
)
def test_the_inside_is_told_from_the_outside(module: str, name: str | None) -> None:
    assert not is_public(module, name)
    assert is_public("mcp.server.mcpserver", "Context")
    assert is_public("mcp.server.auth.provider", "AccessToken")
