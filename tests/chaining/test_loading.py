"""What importing the package loads: nothing before it is used, and never the other half."""

import subprocess
import sys
from typing import Any

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
loaded("from {chaining.__name__} import ToolCaller, ConsentPolicy, ChainResult")
loaded("from {chaining.__name__} import call_tool_with_chaining")
loaded("from {chaining.__name__} import add_tool_chaining, with_next_tool")
"""


def test_no_half_and_no_sdk_is_loaded_before_it_is_used() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    sdk_free, models, client, server = (set(each.split()) for each in ended.stdout.split(";")[:4])

    def sdk(modules: set[str]) -> set[str]:
        return {each.split(".")[0] for each in modules} & {"mcp", "mcp_types", "sqlalchemy"}

    assert {f"{chaining.__name__}.{each}" for each in SDK_FREE} <= sdk_free
    assert sdk(sdk_free) == set()
    assert sdk(models) == {"mcp_types"}
    assert sdk(client) == set()
    half = {f"{chaining.__name__}.{each}" for each in ("server", "declaration", "outgoing")}
    assert (models | client).isdisjoint(half)
    assert f"{chaining.__name__}.server" in server
    assert f"{chaining.__name__}.declaration" not in server


@pytest.mark.quick
def test_every_name_of_the_stub_is_there_and_no_other() -> None:
    package: Any = chaining
    assert len(package.__all__) > 20
    assert dir(package) == package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        exec(f"from {package.__name__} import nonsense")


@pytest.mark.quick
def test_an_older_sdk_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    monkeypatch.delitem(sys.modules, "tool_chaining.declaration", raising=False)
    with pytest.raises(ImportError, match=r"CLIENT_EXTENSION needs mcp 2\.3: pip install"):
        _ = chaining.CLIENT_EXTENSION
