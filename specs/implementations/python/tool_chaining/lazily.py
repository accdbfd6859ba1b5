"""The public names of a package, each loaded when it is first used.

The package's stub, `__init__.pyi`, is the only list of them: type checkers, editors and this module
read it. Scientific packages do the same (SPEC 1, `lazy_loader.attach_stub`); these are the few
lines that this project needs.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, whose `__file__` is `file`.

    Each line of its stub names one public name: `from package.module import name as name`.
    """
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        module_of = {line.split()[-1]: line.split()[1] for line in stub if line.startswith("from ")}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return load, lambda: sorted(module_of), sorted(module_of)
