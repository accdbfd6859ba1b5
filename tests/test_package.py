"""What the wheel and the source distribution carry beside modules, whatever else stands there."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from .conformance.node_project import TYPESCRIPT, not_installed

ROOT = Path(__file__).parents[1]
MODULES = "specs/implementations/typescript/node_modules"


@pytest.mark.needs_program(not_installed("typescript", TYPESCRIPT))
def test_no_package_of_npm_gets_into_the_distributions(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("banking_server", "data", "specs"):
        ignored = shutil.ignore_patterns("node_modules", "__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    # As `npm ci` leaves it, without the time that takes.
    installed = TYPESCRIPT / "node_modules"
    shutil.copytree(installed, checkout / MODULES, copy_function=linked_or_copied, symlinks=True)

    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)

    [wheel] = tmp_path.glob("*.whl")
    carried = set(ZipFile(wheel).namelist())
    specs = {name for name in carried if name.startswith("banking_server/packaged/specs/")}
    assert not [name for name in carried if "node_modules" in name]
    kept = [path for path in (ROOT / "specs").rglob("*") if path.is_file()]
    assert specs == {
        f"banking_server/packaged/specs/{path.relative_to(ROOT / 'specs').as_posix()}"
        for path in kept
        if not {"examples", "implementations", "upstream"} & set(path.parts)
    }
    views = [path for path in (ROOT / "banking_server/tools/views").iterdir() if path.is_file()]
    assert {path.relative_to(ROOT).as_posix() for path in views} <= carried
    [source] = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert not [name for name in names if "node_modules" in name]
    assert [name for name in names if name.endswith("typescript/src/client.ts")]


def linked_or_copied(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
