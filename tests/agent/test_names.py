"""The names that the room offers to others, and the modules that it tells of."""

import ast
import re
from pathlib import Path

import pytest

from banking_server import agent

FOLDER = Path(str(agent.__file__)).parent


def test_every_public_name_can_be_imported_and_type_checkers_see_the_same() -> None:
    tree = ast.parse((FOLDER / "__init__.py").read_text(encoding="utf-8"))
    [checked] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {
        alias.name: str(node.module).removeprefix(f"{agent.__name__}.")
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == agent._MODULE_OF
    assert sorted(seen) == sorted(agent.__all__)
    assert set(seen) <= set(dir(agent))
    for name in seen:
        assert getattr(agent, name) is not None
    with pytest.raises(AttributeError, match="'nonsense'"):
        _ = agent.nonsense


def test_every_module_is_told_of() -> None:
    told = re.findall(r"^- `(\w+)`: ", str(agent.__doc__), re.MULTILINE)
    assert sorted(told) == sorted(
        file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__"
    )
