"""Dependencies point one way: the table of rooms in `banking_server/README.md`, for every module.

That table is the only list of the rooms, and of what each may import of the others.
Internals of the MCP SDK are imported in one module of each part.
"""

import ast
import importlib
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "tool_chaining": ROOT / "specs" / "python",
    "tool_chaining_proxy": ROOT / "specs" / "proxy",
    "tool_chaining_conformance": ROOT / "specs" / "conformance",
    "banking_server": ROOT,
}
"""Where each part is."""

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
"""Modules of the SDK without an `__all__`, and the names that its documentation imports of them.
Its versioning policy covers these and what its packages export, and nothing else."""
EXPORTING = ("mcp", "mcp.types", "mcp.types.version", "mcp.server", "mcp.server.mcpserver")

LIBRARIES = {
    "text": "",
    "wire": "pydantic jsonschema_rs",
    "extension": "mcp mcp_types anyio jmespath re2 pydantic pydantic_core opentelemetry",
    "adapters": "mcp mcp_types anyio pydantic fastmcp agents langchain_mcp_adapters pydantic_ai",
    "hosting": "mcp mcp_types anyio httpx2 pydantic",
    "proxy": "mcp anyio httpx2 pydantic opentelemetry starlette uvicorn typer",
    "suite": "httpx2 jinja2 jsonschema_rs markupsafe pydantic pydantic_core pytest rich typer yaml",
    "bank": "sqlmodel sqlalchemy aiosqlite psycopg pydantic yaml",
    "tools": "mcp anyio pydantic pydantic_core",
    "client": "mcp anyio httpx2 openai pydantic pydantic_ai pydantic_settings rich yaml",
    "server": "mcp anyio jwt platformdirs pydantic pydantic_ai pydantic_settings starlette uvicorn",
    "cli": "mcp anyio pydantic rich typer",
    "about": "",
}
"""What each room may import beside the standard library."""

Room = tuple[list[str], set[str], set[str]]
"""The modules of a room, the rooms that they may import, and the libraries."""


@cache
def rooms() -> dict[str, Room]:
    page = (ROOT / "banking_server" / "README.md").read_text(encoding="utf-8")
    found = {}
    for row in page.split("<!-- rooms -->\n")[1].split("\n\n")[0].splitlines()[2:]:
        cells = [re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|")]
        [name], (part, *inner), _, may = cells
        libraries = set(LIBRARIES[name].split())
        found[name] = ([f"{part}.{module}" for module in inner] or [part], {*may}, libraries)
    return found


def room_of(module: str) -> str:
    """Return the room that names the longest part of a module's name."""
    prefixes = {prefix: room for room, (within, *_) in rooms().items() for prefix in within}
    return prefixes[max((p for p in prefixes if f"{module}.".startswith(f"{p}.")), key=len)]


@cache
def imports() -> dict[str, set[tuple[str, str]]]:
    """Return by module what it imports, wherever in it: the module, and the name in that."""
    found: dict[str, set[tuple[str, str]]] = {}
    for part, folder in FOLDERS.items():
        for path in (folder / part).rglob("*.py"):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            taken = found.setdefault(name.removesuffix(".__init__"), set())
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    taken |= {(alias.name, "") for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    assert node.level == 0, f"{path} imports relatively"
                    taken |= {(str(node.module), alias.name) for alias in node.names}
    return found


def ours(name: str) -> set[str]:
    """Return the modules of this project that a module imports."""
    return {
        inner if (inner := f"{module}.{taken}") in imports() else module
        for module, taken in imports()[name]
        if module.partition(".")[0] in FOLDERS
    } - {name}


def test_a_module_imports_only_what_its_room_may() -> None:
    for name, imported in imports().items():
        _, may, libraries = rooms()[room_of(name)]
        assert {room_of(module) for module in ours(name)} <= may | {room_of(name)}, name
        tops = {module.partition(".")[0] for module, _ in imported}
        assert tops <= libraries | sys.stdlib_module_names | {*FOLDERS}, name


def test_neither_rooms_nor_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter({name: may for name, (_, may, _) in rooms().items()}).prepare()
    TopologicalSorter({name: ours(name) for name in imports()}).prepare()


def test_the_parts_stand_alone() -> None:
    """The suite shares no judgement with what it judges, and a port is read from `wire`."""
    library, proxy = {"text", "wire", "extension", "adapters", "hosting"}, {"proxy"}
    for name, (_, may, _) in rooms().items():
        assert name not in library or may <= library
        assert name not in proxy or may <= library | proxy
        assert "suite" not in may
    assert rooms()["suite"][1] == rooms()["wire"][1] == set()
    assert rooms()["wire"][2].isdisjoint({"mcp", "mcp_types"})


def is_internal(module: str, name: str) -> bool:
    """Whether an import takes something of the SDK that is not public."""
    if module.partition(".")[0] not in ("mcp", "mcp_types") or name in DOCUMENTED.get(module, ()):
        return False
    return module not in EXPORTING or name not in importlib.import_module(module).__all__


@pytest.mark.parametrize(
    "part", ["banking_server.tools", "banking_server.server", "tool_chaining_proxy"]
)
def test_only_the_module_sdk_imports_internals_of_the_sdk(part: str) -> None:
    """If the SDK moves one, the import of that module fails, and names it."""
    modules = [name for name in imports() if name.startswith(part) and room_of(name) != "hosting"]
    internal = {name for name in modules if any(is_internal(*each) for each in imports()[name])}
    assert internal == {f"{part}.sdk"}, "borrow it there, or do without"
