"""Dependencies point one way: the import directions of the layout."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import banking_server

PACKAGE = Path(banking_server.__file__).parent

MAY_IMPORT = {
    "chaining": {"chaining"},
    "bank": {"bank"},
    "tools": {"tools", "bank", "chaining"},
    "conformance": {"conformance", "chaining", "packaged"},
    "agent": {"agent", "chaining"},
    "server": {"server", "tools", "bank", "chaining", "agent", "packaged"},
    "host": {"host", "chaining"},
    "comparison": {"comparison", "host", "server", "agent", "tools", "bank", "chaining"},
    "cli": {"cli", "comparison", "host", "server", "agent", "tools", "bank", "chaining"},
}
"""Of this project, what each package may import."""

MUST_NOT_IMPORT = {
    "chaining": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer", "rich"},
    "bank": {"mcp", "mcp_types", "typer", "rich", "starlette", "uvicorn"},
    "tools": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer", "rich"},
    "conformance": {"sqlmodel", "sqlalchemy", "aiosqlite"},
    "agent": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer", "rich"},
    "server": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer", "rich"},
    "host": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer"},
    "comparison": {"sqlmodel", "sqlalchemy", "aiosqlite", "typer", "rich"},
    "cli": {"sqlite3", "sqlmodel", "sqlalchemy", "aiosqlite"},
}
"""Of other projects, what each package has no business with."""


def imported(path: Path) -> Iterator[str]:
    """Yield the absolute name of everything that the module at `path` imports."""
    package = ["banking_server", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_point_one_way(package: str) -> None:
    modules = sorted((PACKAGE / package).rglob("*.py"))
    assert modules
    for module in modules:
        for name in imported(module):
            top, _, rest = name.partition(".")
            where = f"{module.relative_to(PACKAGE)} imports {name}"
            if top == "banking_server":
                part = rest.split(".")[0]
                assert part in MAY_IMPORT[package] | {"__version__"}, where
            else:
                assert top not in MUST_NOT_IMPORT[package], where


def test_no_package_is_left_out() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)
