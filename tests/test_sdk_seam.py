"""What is borrowed from the inside of the MCP SDK stands in one module of each room.

The SDK's versioning policy covers what its packages export and its documentation names, and nothing
else. The modules `sdk.py` say what is borrowed beyond that, and why. If the SDK moves a part, the
import of that module fails, and names it.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
ROOMS = {
    "tools": ROOT / "banking_server" / "tools",
    "server": ROOT / "banking_server" / "server",
    "proxy": ROOT / "specs" / "proxy" / "tool_chaining_proxy",
}

DOCUMENTED: dict[str, set[str]] = {
    "mcp.client.stdio": {"StdioServerParameters", "stdio_client"},
    "mcp.client.streamable_http": {"streamable_http_client"},
    "mcp.server.stdio": {"stdio_server"},
    "mcp.server.apps": {
        *("APP_MIME_TYPE", "Apps", "EXTENSION_ID", "ResourceCsp", "client_supports_apps"),
    },
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


@pytest.mark.parametrize("room", ROOMS)
def test_only_the_seam_imports_the_inside_of_the_sdk(room: str) -> None:
    seam = ROOMS[room] / "sdk.py"
    assert inside(seam)
    modules = sorted(ROOMS[room].rglob("*.py"))
    others = [path for path in modules if path != seam and path.parent.name != "hosting"]
    wrong = {str(path.relative_to(ROOT)): inside(path) for path in others if inside(path)}
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
