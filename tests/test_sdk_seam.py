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

import pytest

pytestmark = pytest.mark.quick

PACKAGE = Path(__file__).parents[1] / "banking_server"

BORROWED: dict[str, dict[str, str]] = {
    "tools/sdk.py": {
        "mcp.server.mcpserver.tools:Tool.from_function": "fn title description annotations meta",
        "mcp.server.mcpserver.tools:Tool.run": "arguments context",
        "mcp.server.mcpserver.tools:Tool": "parameters fn_metadata name resolver_plans",
        "mcp.server.mcpserver.utilities.func_metadata:FuncMetadata": (
            "arg_model output_schema output_model wrap_output"
        ),
        "mcp.server.mcpserver.utilities.func_metadata:FuncMetadata.pre_parse_json": "data",
        "mcp.server.mcpserver.utilities.func_metadata:ArgModelBase": "",
        "mcp.server.mcpserver.exceptions:ToolError": "",
        "mcp.server.mcpserver.exceptions:UnexpectedToolError": "",
        "mcp.server.mcpserver:Context": "request_context mcp_server input_params",
        "mcp:ServerSession.send_request": "request result_type metadata",
        "mcp:ServerSession.can_send_request": "",
        "mcp.shared.message:ServerMessageMetadata": "related_request_id",
        "mcp.server.context:CallNext": "",
        "mcp.server.context:HandlerResult": "",
    },
    "tools/calling.py": {
        "mcp.server:MCPServer.call_tool": "name arguments context",
        "mcp.server:MCPServer._tool_input_schema": "name",
        "mcp.server:MCPServer.get_prompt": "name arguments context",
    },
    "tools/sdk.py and chaining/server.py, as MCPServer._tool_manager": {
        "mcp.server.mcpserver.tools:ToolManager.get_tool": "name",
    },
    "chaining/server.py": {
        "mcp.server.mcpserver.tools:Tool": "parameters",
        "mcp.server:MCPServer.list_tools": "",
        "mcp.server.extension:Extension.intercept_tool_call": "params ctx call_next",
        "mcp.server.extension:Extension.settings": "",
        "mcp.server.context:CallNext": "",
        "mcp.server.context:HandlerResult": "",
        "mcp.server:MCPServer.middleware": "",
    },
    "server/build.py": {
        "mcp.server:MCPServer": "tools middleware lifespan",
    },
    "server/sdk.py": {
        "mcp.server.auth.routes:build_resource_metadata_url": "resource_server_url",
        "mcp.server.auth.middleware.auth_context:AuthContextMiddleware": "app",
        "mcp.server.auth.middleware.bearer_auth:AuthenticatedUser": "auth_info",
        "mcp.server.streamable_http:StreamableHTTPServerTransport": "is_json_response_enabled",
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager": (
            "app json_response stateless security_settings session_idle_timeout"
            " max_request_body_size max_sessions"
        ),
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager._admit_session": (
            "requestor"
        ),
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager._discard_session": (
            "session_id transport"
        ),
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager.handle_request": (
            "scope receive send"
        ),
        "mcp.shared.inbound:MCP_METHOD_HEADER": "",
        "mcp.shared.inbound:MCP_NAME_HEADER": "",
    },
    "server/sdk.py, as MCPServer._lowlevel_server": {
        "mcp.server.lowlevel.server:Server.run": "read_stream write_stream initialization_options",
    },
    "stdio.py": {
        "mcp.server.stdio:stdio_server": "",
        "mcp.shared.message:SessionMessage": "message",
    },
    "serving.py": {
        "granian.server.embed:Server": (
            "target interface http http1_settings websockets backpressure log_level log_dictconfig"
        ),
        "granian.server.embed:Server._init_shared_socket": "",
        "granian.server.embed:AsyncWorker.terminate": "",
        "granian.net:SocketHolder.get_fd": "",
    },
    "proxy/sdk.py, as ServerSession._request_outbound and ._connection": {
        "mcp:ServerSession": "request_outbound connection",
    },
    "proxy/sdk.py": {
        "mcp.server.connection:Connection.from_envelope": (
            "protocol_version client_info client_capabilities"
        ),
        "mcp.server.connection:Connection.send_raw_request": "method params",
        "mcp.server.connection:Connection.notify": "method params",
        "mcp.server.connection:Connection.initialize_accepted": "",
        "mcp.server.connection:allowed_log_levels": "protocol_version meta",
        "mcp.server.context:CallNext": "",
        "mcp.server.context:HandlerResult": "",
        "mcp.server.request_state:RequestStateSecurity": "keys ttl bind_principal",
        "mcp.server.request_state:RequestStateBoundary": "security default_audience",
        "mcp.shared.dispatcher:CallOptions": "",
        "mcp.shared.dispatcher:DispatchContext": "",
        "mcp.shared.message:SessionMessage": "message",
        "mcp.shared.dispatcher:Outbound": "",
        "mcp.shared.inbound:NAME_BEARING_METHODS": "",
        "mcp.shared.inbound:encode_header_value": "value",
        "mcp.shared.inbound:find_invalid_x_mcp_header": "input_schema",
        "mcp.shared.inbound:mcp_param_headers": "header_map arguments",
        "mcp.shared.inbound:x_mcp_header_map": "input_schema",
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher": "read_stream write_stream",
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.run": (
            "on_request on_notify on_notify_intercept"
        ),
        "mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.send_raw_request": "method params opts",
        "mcp.shared.subscriptions:SUBSCRIPTION_ID_META_KEY": "",
        "mcp.server.auth.middleware.bearer_auth:AuthenticatedUser": "auth_info",
        "mcp.server.streamable_http:MCP_SESSION_ID_HEADER": "",
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager": (
            "app session_idle_timeout max_sessions"
        ),
        "mcp.server.streamable_http_manager:StreamableHTTPSessionManager.handle_request": (
            "scope receive send"
        ),
    },
}
"""By each module, what is borrowed, and the parameters or fields of it that are used."""


def fault(by: str, what: str, used: set[str]) -> str | None:
    """What is wrong with a borrowed thing; None if it is as it was."""
    module, _, path = what.partition(":")
    try:
        thing: Any = importlib.import_module(module)
        for part in path.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as gone:
        return f"{by} borrows {what}, which the SDK has moved: {gone}"
    missing = used - set(inspect.signature(thing).parameters) if used else set()
    return f"{by} uses {missing} of {what}, which the SDK has changed" if missing else None


def test_the_sdk_still_has_what_is_borrowed() -> None:
    faults = [
        fault(by, what, set(used.split()))
        for by, borrowed in BORROWED.items()
        for what, used in borrowed.items()
    ]
    assert [each for each in faults if each] == []
    assert fault("a module", "mcp.server:MCPServer.gone", set())
    assert fault("a module", "mcp.server:MCPServer.call_tool", {"gone"})


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


def inside(path: Path) -> set[tuple[str, str | None]]:
    """What a module imports of the SDK that is not public."""
    return {
        (module, name)
        for module, name in imported(path)
        if module.split(".")[0] in ("mcp", "mcp_types") and not is_public(module, name)
    }


@pytest.mark.parametrize("room", ["tools", "server", "proxy"])
def test_only_the_seam_imports_the_inside_of_the_sdk_and_all_of_it_is_asserted(room: str) -> None:
    seam = PACKAGE / room / "sdk.py"
    asserted = {
        what.partition(":")[0]
        for by, borrowed in BORROWED.items()
        for what in borrowed
        if by.startswith(f"{room}/sdk.py")
    }
    inner = {module for module, _ in inside(seam)}
    assert inner
    assert inner <= asserted
    others = [path for path in sorted((PACKAGE / room).rglob("*.py")) if path != seam]
    wrong = {str(path.relative_to(PACKAGE)): inside(path) for path in others if inside(path)}
    assert wrong == {}, f"borrow these in {room}/sdk.py, or do without"


def test_the_inside_is_told_from_the_outside() -> None:
    for module, name in (
        ("mcp.server.mcpserver.tools", "Tool"),
        ("mcp.server", "lowlevel"),
        ("mcp.server.auth.provider", "OAuthToken"),
        ("mcp_types", "Tool"),
        ("mcp.server.mcpserver.tools", None),
    ):
        assert not is_public(module, name)
    assert is_public("mcp.server.mcpserver", "Context")
    assert is_public("mcp.server.auth.provider", "AccessToken")
