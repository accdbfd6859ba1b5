"""Dependencies point one way: the table of rooms in `banking_server/README.md`, for every module.

That table is the only list of the rooms, of what each may import, and of the libraries it uses.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PARTS: dict[str, tuple[Path, int]] = {
    "tool_chaining": (ROOT / "specs" / "python", 3_649),
    "tool_chaining_proxy": (ROOT / "specs" / "proxy", 4_384),
    "tool_chaining_conformance": (ROOT / "specs" / "conformance", 9_028),
    "banking_server": (ROOT, 16_549),
    "tests": (ROOT, 31_220),
}
"""For each part: the folder around it, and the lines of Python that it may have, stubs included.

A part may shrink. A change that needs more lines raises the number here, and its commit message
says which user needs them and what went for them.
"""

WITHOUT_SDK = "wire"
"""The room that a port to another language is read from."""


@dataclass(frozen=True)
class Room:
    """One row of the table."""

    modules: tuple[str, ...]
    rooms: frozenset[str]
    libraries: frozenset[str]


@cache
def table() -> dict[str, Room]:
    page = (ROOT / "banking_server" / "README.md").read_text(encoding="utf-8")
    rows = re.search(r"<!-- rooms -->\n\|.*\n\|.*\n((?:\|.*\n)+)", page)
    assert rows is not None
    rooms = {}
    for row in rows[1].splitlines():
        name, modules, _, may, libraries = (
            tuple(re.findall(r"`([^`]+)`", cell)) for cell in row.strip("|").split("|")
        )
        first, *others = modules
        within = tuple(f"{first}.{each}" for each in others) or (first,)
        rooms[name[0]] = Room(within, frozenset(may), frozenset(libraries))
    return rooms


def name_of(module: Path, part: str) -> str:
    parts = module.relative_to(PARTS[part][0]).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """All modules of the four parts by their names."""
    return {
        name_of(module, part): module
        for part, (folder, _) in PARTS.items()
        if part != "tests"
        for module in sorted((folder / part).rglob("*.py"))
    }


def room_of(name: str) -> str:
    """Return the room of a module: the row that names the longest part of its name."""
    found = [
        (len(prefix), room)
        for room, row in table().items()
        for prefix in row.modules
        if f"{name}.".startswith(f"{prefix}.")
    ]
    assert found, f"{name} is in no room of the table"
    return max(found)[1]


def module_of(name: str) -> str:
    """Return the module that an imported name belongs to."""
    while name not in modules():
        name, _, last = name.rpartition(".")
        assert last, name
    return name


@cache
def imported(module: Path) -> frozenset[str]:
    """The absolute name of everything that a module imports, wherever in it."""
    return frozenset(_imported(module))


def _imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_no_more_lines_than_it_may(part: str) -> None:
    folder, may = PARTS[part]
    sources = [path for path in (folder / part).rglob("*.py*") if path.suffix in (".py", ".pyi")]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources)
    assert lines <= may, f"{part} has grown: CONTRIBUTING.md, `A change`"


def test_imports_are_those_of_the_table() -> None:
    for name, path in modules().items():
        room = room_of(name)
        for other in imported(path):
            top = other.partition(".")[0]
            where = f"{name} (room {room}) imports {other}"
            if top in PARTS:
                # The public names of a package belong to modules in its rooms.
                assert room_of(module_of(other)) in {*table()[room].rooms, room}, where
            else:
                assert top in table()[room].libraries | sys.stdlib_module_names, where


def test_rooms_stand_on_floors() -> None:
    """No room can be reached from a room that it imports, however far the way."""

    def below(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            for other in table()[left.pop()].rooms - seen:
                seen.add(other)
                left.append(other)
        return seen

    for room in table():
        assert room not in below(room)


def test_the_parts_stand_alone() -> None:
    """The library knows no other part, and the suite shares no judgement with what it judges."""
    may = {"tool_chaining_proxy": {"tool_chaining"}}
    for name, path in modules().items():
        part = name.partition(".")[0]
        others = {other.partition(".")[0] for other in imported(path)} & set(PARTS)
        assert part == "banking_server" or others <= {part, *may.get(part, ())}, name
        assert "tool_chaining_conformance" not in others - {part}, name


def test_what_a_port_is_read_from_knows_no_sdk() -> None:
    assert table()[WITHOUT_SDK].rooms == frozenset()
    assert table()[WITHOUT_SDK].libraries.isdisjoint({"mcp", "mcp_types"})


def test_no_module_imports_itself_in_the_end() -> None:
    """No circles, not even inside a room."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            ours = {other for other in imported(modules()[name]) if other.split(".")[0] in PARTS}
            for target in sorted({module_of(other) for other in ours} - {name}):
                visit(target, (*path, name))
            done.add(name)

    for name in modules():
        visit(name, ())
