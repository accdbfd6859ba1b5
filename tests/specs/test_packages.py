"""The packages under which others find this: their names are the same everywhere, and they work."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from jsonschema.validators import Draft7Validator

from .files import SPECS, read_json, read_yaml

ROOT = SPECS.parent
PACKAGES = Path("specs", "upstream", "packages")
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Before the tests take the certificates away, which the network needs."""

EDITED = {
    "name": "Other.Bank",  # A name that a wheel writes differently.
    "version": "7.8.9",
    "Repository": "https://github.com/somebody/chains",
    "npm": "@somebody/chains",
    "library": "somebodys-chains",
    "proxy": "somebodys-proxy",
    "suite": "somebodys-suite",
}


def made(root: Path) -> dict[Path, str]:
    files: dict[Path, str] = runpy.run_path(str(root / PACKAGES / "names.py"))["made"]()
    return files


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """Return a copy in which a person has edited four lines and run names.py, twice."""
    left_out = shutil.ignore_patterns("node_modules", "__pycache__")
    for folder in ("banking_server", "data", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    for file in (".gitignore", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for values in (EDITED | {"name": "earlier-name"}, EDITED):
        for name, value in values.items():
            edit(tmp_path, name, value)
        runpy.run_path(str(tmp_path / PACKAGES / "names.py"), run_name="__main__")
    return tmp_path


def edit(root: Path, name: str, value: str) -> None:
    path = root / "pyproject.toml"
    line = re.compile(f'^{name} = ".+"$', re.MULTILINE)
    text, edited = line.subn(f'{name} = "{value}"', path.read_text("utf-8"))
    assert edited == 1
    path.write_text(text, "utf-8")


def run(folder: Path, *command: object) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = ENVIRONMENT | {"PATH": programs, "GITHUB_REF_NAME": "v7.8.9"}
    words = list(map(str, command))
    ran = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.quick
def test_generated_package_files_are_up_to_date() -> None:
    for path, text in made(ROOT).items():
        assert path.read_text("utf-8") == text, f"{path.name} is made by names.py; run it"


@pytest.mark.quick
def test_renaming_leaves_no_old_name_in_published_files(renamed: Path) -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, npm = about["project"], about["tool"]["packages"]["npm"]
    name, version = re.escape(project["name"]), re.escape(project["version"])
    owner = project["urls"]["Repository"].split("/")[3]
    library = about["tool"]["packages"]["library"]
    old = re.compile(  # The command keeps its name, and `tool-chaining` alone is the extension.
        rf"""\b{owner}["/]|["/]{name}(?!" =)\b|\b{version}\b|["']{npm}(/|",?$)|["']{library}["[]""",
        re.MULTILINE,
    )
    files = made(renamed)
    assert files == {path: path.read_text("utf-8") for path in files}
    # The registry looks for this line in the README of the package.
    assert "<!-- mcp-name: io.github.somebody/Other.Bank -->" in files.pop(renamed / "README.md")
    for path in files:
        ours = path.read_text("utf-8").split('"node_modules/')[0]
        assert not old.search(ours), path
        assert old.search((ROOT / path.relative_to(renamed)).read_text("utf-8")), path
    for path in (RELEASE, ROOT / PACKAGES / "try_packages.py"):
        assert not old.search(path.read_text("utf-8")), path
    commands = tomllib.loads(files[renamed / "pyproject.toml"])["project"]["scripts"]
    assert commands == {**project["scripts"], "Other.Bank": project["scripts"]["banking-server"]}


@pytest.mark.quick
def test_the_entry_of_the_registry_meets_its_schema() -> None:
    schema = Draft7Validator(read_json(Path(__file__).with_name("server.schema.json")))
    entry = read_json(ROOT / PACKAGES / "server.json")
    schema.validate(entry)
    assert entry["$schema"] == schema.schema["$id"]
    assert not schema.is_valid(entry | {"description": "long " * 21})


WHEELS = ("other_bank", "somebodys_chains", "somebodys_proxy", "somebodys_suite")


@pytest.mark.quick
def test_published_packages_require_each_other_in_the_same_version(renamed: Path) -> None:
    names = runpy.run_path(str(renamed / PACKAGES / "names.py"))["made"]
    files = names(published=True)
    ours = [f"somebodys-{part}==7.8.9" for part in ("chains[rules]", "proxy", "suite")]
    for folder, parts in (renamed, ours), (renamed / "specs" / "proxy", ours[:1]):
        needed = tomllib.loads(files[folder / "pyproject.toml"])["project"]["dependencies"]
        assert [one for one in needed if one.startswith("somebodys-")] == parts


@pytest.mark.nightly
def test_renamed_packages_install_and_run(renamed: Path) -> None:
    run(renamed, sys.executable, PACKAGES / "try_packages.py")


@pytest.mark.nightly
def test_the_release_workflow_builds_every_artifact(renamed: Path) -> None:
    """By the commands of the workflow, but the one that installs."""
    pytest.importorskip("hatchling", reason="needs `.[dev,test]`, for hatchling")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "The release")):
        run(renamed, "git", *words)
    for step in read_yaml(RELEASE)["jobs"]["build"]["steps"]:
        if not step.get("run", "pip install").startswith("pip install"):
            folder = renamed / step.get("working-directory", "")
            run(folder, "bash", "-eo", "pipefail", "-c", step["run"])
    assert {path.name for path in renamed.glob("dist/*/*")} == {
        *(f"{name}-7.8.9-py3-none-any.whl" for name in WHEELS),
        "Other.Bank-7.8.9.mcpb",
        "somebody-chains-7.8.9.tgz",
    }
    with tarfile.open(renamed / "dist" / "npm" / "somebody-chains-7.8.9.tgz") as archive:
        assert "package/LICENSE" in archive.getnames()


@pytest.mark.nightly
def test_the_library_alone_works_with_the_newest_dependencies(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(SPECS, copy / "specs", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "LICENSE", copy)
    run(tmp_path, sys.executable, "-m", "venv", "alone")
    python = tmp_path / "alone" / "bin" / "python"
    run(tmp_path, python, "-m", "pip", "install", "--quiet", copy / "specs" / "python")
    run(tmp_path, python, copy / "specs" / "examples" / "client.py")
