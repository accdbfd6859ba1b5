"""A package with lazy names tells type checkers of them in an `if` of its own."""

import ast
from pathlib import Path
from types import ModuleType


def names_for_type_checkers(package: ModuleType) -> dict[str, str]:
    """Return the names that type checkers see in a package, each with the module it is from."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    [checked] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: str(node.module).removeprefix(f"{package.__name__}.")
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
