"""What the package offers: every public name, and what to install where one needs a newer SDK."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import tool_chaining as chaining


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
