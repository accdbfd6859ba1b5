"""The hook for the official Python SDK: the patch applies, its tests pass, the library uses it."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from .files import SPECS

pytestmark = pytest.mark.nightly

SOURCE = SPECS / "upstream" / "python-sdk"
PINS = SPECS.parent / ".ci" / "requirements.txt"
NEEDED = ("pytest", "pytest-examples", "inline-snapshot", "blockbuster", "logfire", "trio")
"""What the SDK's own tests import."""


def run(*command: object, cwd: Path | None = None) -> str:
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    env = {**os.environ, **{f"GIT_{name}": "test@example.com" for name in names}}
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", environment)
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def branch(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the release that we pin, with the patch; it and the library are installed there."""
    folder = tmp_path_factory.mktemp("sdk")
    found = re.search(r"^mcp==(\S+)", PINS.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    release, pip = f"mcp=={found[1]}", python.with_name("pip")
    try:
        run(pip, *f"download --no-deps --no-binary=mcp {release} --dest".split(), folder)
    except AssertionError:
        pytest.skip(f"need a package index that has the source of {release}")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    sdk = folder / f"mcp-{found[1]}"
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", release]):
        run("git", *words, cwd=sdk)
    run("git", "am", *SOURCE.glob("*.patch"), cwd=sdk)
    run(pip, "install", "--quiet", sdk, SPECS / "python", *NEEDED)
    return sdk


def test_the_patched_sdk_passes_its_own_tests(branch: Path, python: Path) -> None:
    changed = run("git", "diff", "--name-only", "HEAD~1", "--", "tests", cwd=branch).split()
    run(python, "-m", "pytest", "-q", "-o", "log_cli=false", *changed, cwd=branch)


@pytest.mark.usefixtures("branch")
def test_the_library_follows_chains_through_the_patched_sdk(python: Path) -> None:
    printed = run(python, SOURCE / "chaining_client.py")
    assert printed.startswith("A-17 has shipped.\n")
    assert "The label to return A-17 is on its way.\n" in printed
