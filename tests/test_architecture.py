"""Dependencies point one way: the floors of `banking_server/README.md`, held for every module."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import banking_server

PACKAGE = Path(banking_server.__file__).parent

LOOSE = {
    "__init__.py",
    "__main__.py",
    "lazily.py",
    "log.py",
    "packaged.py",
    "py.typed",
    "README.md",
    "server_errors.py",
    "serving.py",
    "stdio.py",
    "text.py",
}
"""What stands in no folder."""

MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "lazily": set(),
    "log": set(),
    "packaged": set(),
    "text": set(),
    "server_errors": set(),
    "serving": set(),
    "stdio": set(),
    "chaining": {"lazily", "text"},
    "bank": {"text"},
    "tools": {"bank", "chaining", "text"},
    "conformance": {"chaining", "packaged", "text"},
    "adapters": {"chaining"},
    "agent": {"chaining", "host", "lazily", "text"},
    "host": {"chaining", "server_errors", "text"},
    "proxy": {"chaining", "log", "server_errors", "serving", "stdio", "text"},
    "server": {"agent", "bank", "chaining", "log", "packaged", "serving", "stdio", "tools"},
    "cli": {
        *("agent", "bank", "chaining"),
        *("host", "packaged", "server", "serving", "text", "tools"),
    },
    "__main__": {"cli"},
}
"""Of this project, what the modules of each room may import besides their own room."""

WITHOUT_SDK = {"directive", "negotiation", "provenance", "values", "content", "arguments"}
"""The modules of `chaining/` that a port to another language is read from."""

CONSTANTS = {"IDENTIFIER", "META_KEY", "SETTINGS"}
"""What the suite takes of `chaining`: names on the wire, and no judgement."""

ONLY_IN: dict[str, set[str]] = {
    "mcp": {
        *("chaining", "tools", "adapters", "agent", "host", "proxy", "server"),
        *("cli", "stdio"),
    },
    "mcp_types": {"chaining", "adapters"},
    "fastmcp": {"adapters"},
    "agents": {"adapters"},
    "langchain_mcp_adapters": {"adapters"},
    "sqlmodel": {"bank"},
    "sqlalchemy": {"bank"},
    "aiosqlite": {"bank"},
    "psycopg": {"bank"},
    "sqlite3": {"bank"},
    "starlette": {"proxy", "server", "serving"},
    "granian": {"serving"},
    "openai": {"agent"},
    "rich": {"agent", "host", "cli", "conformance"},
    "markdown_it": {"host"},
    "typer": {"cli", "conformance", "proxy"},
}
"""Of other projects, which rooms have business with them."""


ROOMS: dict[str, tuple[int, str]] = {
    "chaining": (2_398, "the extension, both halves: what somebody reads, copies or ports"),
    "conformance": (8_499, "the suite that judges others' servers, clients and intermediaries"),
    "bank": (5_542, "one bank: its rules, its books and its desks, on SQLite or PostgreSQL"),
    "tools": (3_970, "the bank as MCP shows it: one module a capability, multiplex, views"),
    "server": (1_571, "the server put together: settings, tokens, scopes, stdio, HTTP"),
    "proxy": (2_776, "any server, with its chains followed for any client"),
    "adapters": (414, "chains in other people's frameworks"),
    "agent": (1_794, "a language model in the loop, on any server"),
    "host": (1_455, "being a client, with a person at a terminal"),
    "cli": (2_127, "the command `banking-server`"),
    "top-level modules": (565, "what several rooms share, and no room of its own"),
    "tests": (27_477, "the proof of all that, with the scripts that measure"),
}
"""For each room: the lines of Python that it may have, stubs included, and what it is for.

A room may shrink. A change that needs more lines raises the number here, and its commit message
says which user needs them and what went for them.
"""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(module: Path) -> str:
    """The folder a module belongs to, or its own name at the top."""
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_of(module: Path) -> str:
    return ".".join(module.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
        ".__init__"
    )


@cache
def imported(module: Path) -> frozenset[str]:
    """The absolute name of everything that a module imports, wherever in it."""
    return frozenset(_imported(module))


def _imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.relative_to(PACKAGE)} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_of(name: str) -> list[Path]:
    found = [module for module in modules() if room(module) == name]
    assert found
    return found


def test_nothing_is_loose() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == LOOSE
    assert {room(module) for module in modules()} == set(MAY_IMPORT)


def lines_of(name: str) -> int:
    """Count the lines of a room: of its Python files, and of the stubs beside them."""
    folder = Path(__file__).parent if name == "tests" else PACKAGE / name
    found = PACKAGE.glob("*.py*") if name == "top-level modules" else folder.rglob("*.py*")
    sources = [path for path in found if path.suffix in (".py", ".pyi")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_has_no_more_lines_than_it_may(name: str) -> None:
    may, purpose = ROOMS[name]
    assert lines_of(name) <= may, f"{name} ({purpose}) has grown: CONTRIBUTING.md, `A change`"


def test_every_room_has_a_number_and_a_purpose() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert set(ROOMS) == folders | {"top-level modules", "tests"}


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_imports_point_one_way(name: str) -> None:
    for module in modules_of(name):
        for other in imported(module):
            top, _, rest = other.partition(".")
            where = f"{module.relative_to(PACKAGE)} imports {other}"
            if top == "banking_server":
                may = MAY_IMPORT[name] | {name, "__version__"}
                assert rest.split(".")[0] in may, where
            else:
                assert name in ONLY_IN.get(top, {name}), where


def test_rooms_stand_on_floors() -> None:
    """No room can be reached from a room that it imports, however far the way."""

    def below(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            for other in MAY_IMPORT[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        return seen

    for name in MAY_IMPORT:
        assert name not in below(name)


@pytest.mark.parametrize("name", sorted(WITHOUT_SDK))
def test_what_a_port_is_read_from_knows_no_sdk(name: str) -> None:
    for other in imported(PACKAGE / "chaining" / f"{name}.py"):
        parts = other.split(".")
        assert parts[0] not in ("mcp", "mcp_types"), other
        if parts[0] == "banking_server":
            assert parts[1] == "chaining", other
            assert parts[2] in WITHOUT_SDK, other


def test_the_suite_shares_no_judgement_with_what_it_judges() -> None:
    for module in modules_of("conformance"):
        for name in imported(module):
            if name.startswith("banking_server.chaining"):
                where = f"{module.relative_to(PACKAGE)} imports {name}"
                assert name.removeprefix("banking_server.chaining.directive.") in CONSTANTS, where


def test_no_module_imports_itself_in_the_end() -> None:
    """No circles, not even inside a room."""
    names = {name_of(module): module for module in modules()}

    def targets(module: Path) -> set[str]:
        found = set()
        for name in imported(module):
            while name not in names and "." in name:
                name = name.rpartition(".")[0]
            if name in names:
                found.add(name)
        return found - {name_of(module)}

    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            for target in sorted(targets(names[name])):
                visit(target, (*path, name))
            done.add(name)

    for name in names:
        visit(name, ())


def test_the_page_on_the_rooms_says_the_same() -> None:
    """Each room of the table in `banking_server/README.md` may import what is held here."""
    page = (PACKAGE / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d \| \[`(\w+)/`\][^|]*\|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    assert {name for name, _ in rows} == {
        name for name in MAY_IMPORT if not name.startswith("__")
    } - {"lazily", "log", "packaged", "server_errors", "serving", "stdio", "text"}
    for name, may in rows:
        if "`" in may and "all but" not in may and "everything" not in may:
            named = {one.removesuffix(".py") for one in re.findall(r"`([\w.]+)`", may)}
            assert named == MAY_IMPORT[name], name
