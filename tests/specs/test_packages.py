"""The packages under which others find this: their names are the same everywhere, and they work."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema.validators import Draft7Validator

from .files import SPECS, read_json, read_yaml

ROOT = SPECS.parent
PACKAGES = Path("specs", "upstream", "packages")
RELEASE = Path(".github", "workflows", "release.yml")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Before the tests take the certificates away, which the network needs."""


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """Return a copy of what is published, in which a person has edited four lines and run names.py.

    The name is one that a wheel writes differently.
    """
    left_out = shutil.ignore_patterns("node_modules", "__pycache__")
    for folder in ("banking_server", "data", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    for file in ("README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for name, value in {
        "name": "Other.Bank",
        "version": "7.8.9",
        "Repository": "https://github.com/somebody/chains",
        "npm": "@somebody/chains",
    }.items():
        text, edited = re.subn(f'^{name} = ".+"$', f'{name} = "{value}"', text, flags=re.MULTILINE)
        assert edited == 1
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    runpy.run_path(str(tmp_path / PACKAGES / "names.py"), run_name="__main__")
    return tmp_path


@pytest.mark.quick
def test_names_owner_and_version_are_the_same_everywhere() -> None:
    made: dict[Path, str] = runpy.run_path(str(ROOT / PACKAGES / "names.py"))["made"]()
    for path, text in made.items():
        assert path.read_text("utf-8") == text, f"{path.name} is made by names.py; run it"


@pytest.mark.quick
def test_no_old_name_owner_or_version_is_left_in_what_is_published(renamed: Path) -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, npm = about["project"], about["tool"]["packages"]["npm"]
    owner = project["urls"]["Repository"].split("/")[3]
    old = re.compile(
        # `NAME =` is a command, and `tool-chaining` alone is the extension.
        rf"""\b{owner}["/]|["/]{project["name"]}(?!" =)\b|\b{re.escape(project["version"])}\b"""
        rf"""|["']{npm}(/|",?$)""",
        re.MULTILINE,
    )
    made: dict[Path, str] = runpy.run_path(str(renamed / PACKAGES / "names.py"))["made"]()
    assert made == {path: path.read_text("utf-8") for path in made}
    readme = made.pop(renamed / "README.md")
    # The registry looks for this line in the README of the package.
    assert "<!-- mcp-name: io.github.somebody/Other.Bank -->" in readme
    programs = [ROOT / RELEASE, renamed / PACKAGES / "try_packages.py"]
    for path in [*made, *programs, renamed / PACKAGES / "bundle" / "src" / "server.py"]:
        text = path.read_text("utf-8").split('"node_modules/')[0]  # Other packages, with theirs.
        assert not old.search(text), path
    # Each one was there to be found.
    for path in set(made) - {renamed / "pyproject.toml"}:
        assert old.search((ROOT / path.relative_to(renamed)).read_text("utf-8")), path


@pytest.mark.quick
def test_the_entry_of_the_registry_meets_its_schema() -> None:
    schema = Draft7Validator(read_json(ROOT / PACKAGES / "server.schema.json"))
    entry = read_json(ROOT / PACKAGES / "server.json")
    schema.validate(entry)
    assert entry["$schema"] == schema.schema["$id"]
    assert not schema.is_valid(entry | {"description": "long " * 21})


def ran(script: Path) -> None:
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    if done.stderr.startswith("git init"):
        pytest.skip("needs GitHub, or ADOPTING_FROM")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_a_renamed_package_works_as_its_receiver_uses_it(renamed: Path) -> None:
    ran(renamed / PACKAGES / "try_packages.py")


@pytest.mark.nightly
def test_the_release_builds_what_it_publishes(renamed: Path) -> None:
    """The commands of its first job, each as the workflow has it, but the one that installs."""
    (renamed / ".gitignore").write_text("node_modules/\ndist/\n*.whl\n", "utf-8")
    who = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "The release"]):
        subprocess.run(["git", *words], cwd=renamed, check=True)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = ENVIRONMENT | {"PATH": programs, "GITHUB_REF_NAME": "v7.8.9"}
    steps = read_yaml(ROOT / RELEASE)["jobs"]["build"]["steps"]
    for step in steps:
        if (commands := step.get("run", "pip install")).startswith("pip install"):
            continue
        folder = renamed / step.get("working-directory", "")
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", commands],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.relative_to(renamed).as_posix() for path in (renamed / "dist").rglob("*.*")}
    assert built == {
        "dist/python/other_bank-7.8.9-py3-none-any.whl",
        "dist/python/other_bank-7.8.9.tar.gz",
        "dist/bundle/other_bank-7.8.9.mcpb",
        "dist/npm/somebody-chains-7.8.9.tgz",
    }


@pytest.mark.nightly
def test_what_adopting_costs() -> None:
    ran(SPECS / "upstream" / "adopting" / "adopt.py")
