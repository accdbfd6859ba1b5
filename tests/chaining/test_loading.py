"""What the package offers: every public name, and what to install where one needs a newer SDK."""

import sys
from typing import Any

import pytest

import tool_chaining as chaining


@pytest.mark.quick
def test_every_public_name_is_there() -> None:
    package: Any = chaining
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense


@pytest.mark.quick
def test_an_older_sdk_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    monkeypatch.delitem(sys.modules, "tool_chaining.declaration", raising=False)
    with pytest.raises(ImportError, match=r"CLIENT_EXTENSION needs mcp 2\.3: pip install"):
        _ = chaining.CLIENT_EXTENSION
