"""What importing the package loads: nothing before it is used, and never the other half."""

import importlib
import subprocess
import sys
from typing import Any

import pytest

from banking_server import agent, chaining
from banking_server.chaining import needed_sdk

from ..kit.lazy_names import names_for_type_checkers

SDK_FREE = ["directive", "provenance", "values", "content", "effort", "arguments"]
CLIENT_HALF = ["caller", "catalog", "consent", "client"]


def loaded_by(statement: str, after: str = "pass") -> set[str]:
    """Return what the statement loads that `after` has not loaded, in a process of its own."""
    script = f"import sys; {after}; known = set(sys.modules); {statement}; "
    script += "print(*(set(sys.modules) - known))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


def of_the_sdk(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] in ("mcp", "mcp_types")}


def of_the_package(modules: set[str]) -> set[str]:
    stem = f"{chaining.__name__}."
    return {name.removeprefix(stem) for name in modules if name.startswith(stem)}


def test_the_package_alone_loads_nothing() -> None:
    names = "set(chaining.__all__) <= set(dir(chaining))"
    modules = loaded_by(f"from banking_server import chaining; assert {names}")

    assert of_the_sdk(modules) == set()
    assert of_the_package(modules) == set()


def test_what_a_port_is_read_from_needs_no_sdk() -> None:
    loaded = loaded_by(f"from {chaining.__name__} import {', '.join(SDK_FREE)}")
    assert of_the_package(loaded) >= set(SDK_FREE)
    assert of_the_sdk(loaded) == set()


def test_names_of_the_sdk_free_part_load_no_sdk() -> None:
    names = ", ".join(name for name, home in chaining._MODULE_OF.items() if home in SDK_FREE)
    assert "read_directive" in names
    assert of_the_sdk(loaded_by(f"from {chaining.__name__} import {names}")) == set()


def test_an_older_sdk_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = ["mcp.server.extension"]

    def missing(name: str) -> None:
        raise ImportError("no such module", name=lacking[-1])

    monkeypatch.delitem(vars(chaining), "ToolChaining", raising=False)
    monkeypatch.setattr(importlib, "import_module", missing)
    monkeypatch.setattr(needed_sdk, "version", lambda name: "1.26.0")
    with pytest.raises(ImportError, match=r"^ToolChaining: this needs mcp 2.3, and mcp 1.26.0 is"):
        _ = chaining.ToolChaining
    monkeypatch.setattr(needed_sdk, "version", lambda name: "2.3.0")
    for name in ("mcp.server.extension", "httpx2"):
        lacking.append(name)
        with pytest.raises(ImportError, match=r"^no such module$"):
            _ = chaining.ToolChaining


@pytest.mark.parametrize("package", [chaining, agent])
def test_a_name_that_is_not_public_is_no_attribute(package: Any) -> None:
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = package.Nothing


def test_the_client_half_loads_the_sdks_data_models_and_neither_of_its_halves() -> None:
    names = "ToolCaller, ToolCatalog, ConsentPolicy, call_tool_with_chaining"
    modules = loaded_by(f"from {chaining.__name__} import {names}")

    assert {name.split(".")[0] for name in of_the_sdk(modules)} == {"mcp_types"}
    assert of_the_package(modules).isdisjoint({"server", "client_extension"})


def test_the_server_half_loads_nothing_of_the_client_half() -> None:
    # `import mcp` itself loads the SDK's two halves, and cannot be had for less.
    modules = loaded_by(
        f"from {chaining.__name__} import ToolChaining, with_next_tool",
        after="import mcp.server.mcpserver",
    )

    assert "server" in of_the_package(modules)
    assert of_the_package(modules).isdisjoint({*CLIENT_HALF, "client_extension"})
    assert of_the_sdk(modules) == set()


@pytest.mark.parametrize("name", chaining.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert name in dir(chaining)
    value = getattr(chaining, name)
    assert getattr(value, "__name__", name) == name


def test_a_name_that_is_not_there_is_an_ordinary_mistake() -> None:
    with pytest.raises(AttributeError, match="'nonsense'"):
        chaining.nonsense  # noqa: B018
    with pytest.raises(ImportError, match="nonsense"):
        exec(f"from {chaining.__name__} import nonsense")


def test_type_checkers_see_the_modules_that_the_names_come_from() -> None:
    seen = names_for_type_checkers(chaining)
    assert seen == chaining._MODULE_OF
    assert sorted(seen) == sorted(chaining.__all__)


def test_a_name_that_is_not_public_is_none_of_the_packages() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = chaining.nothing
