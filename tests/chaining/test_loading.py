"""What importing the package loads: nothing before it is used, and never the other half."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import tool_chaining as chaining

SDK_FREE = ["directive", "provenance", "values", "content", "arguments"]
LOADING = f"""
import sys

def loaded(statement):
    known = set(sys.modules)
    exec(statement)
    print(*(set(sys.modules) - known), sep=" ", end=";")

loaded("from {chaining.__name__} import {", ".join(SDK_FREE)}, read_directive, META_KEY")
loaded("from {chaining.__name__} import Follower, ToolCaller, ConsentPolicy, ChainResult")
loaded("from {chaining.__name__} import add_tool_chaining, with_next_tool")
"""


def test_no_server_half_and_no_sdk_is_loaded_before_it_is_used() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    first, client, server = (set(each.split()) for each in ended.stdout.split(";")[:3])

    def sdk(modules: set[str]) -> set[str]:
        return {each.split(".")[0] for each in modules} & {"mcp", "mcp_types", "sqlalchemy"}

    assert {f"{chaining.__name__}.{each}" for each in SDK_FREE} <= first
    assert sdk(first | client) == set()
    half = {f"{chaining.__name__}.{each}" for each in ("server", "declaration", "outgoing")}
    assert (first | client).isdisjoint(half)
    assert f"{chaining.__name__}.server" in server
    assert f"{chaining.__name__}.declaration" not in server


@pytest.mark.quick
def test_every_public_name_is_there_also_from_a_zip(tmp_path: Path) -> None:
    package: Any = chaining
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        exec(f"from {package.__name__} import nonsense")
    folder = Path(package.__file__).parent
    with ZipFile(tmp_path / "library.zip", "w") as archive:
        for module in folder.rglob("*.py"):
            archive.write(module, module.relative_to(folder.parent))
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'library.zip')!r})\n"
    code += f"from {package.__name__} import *; print(Follower, with_next_tool)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.quick
def test_an_older_sdk_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    monkeypatch.delitem(sys.modules, "tool_chaining.declaration", raising=False)
    with pytest.raises(ImportError, match=r"CLIENT_EXTENSION needs mcp 2\.3: pip install"):
        _ = chaining.CLIENT_EXTENSION
