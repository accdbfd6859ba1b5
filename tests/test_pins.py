"""What CI installs is pinned by version and hash, and names no address.

That the pins are in the ranges of the package, its installation in `.ci/run` finds.
"""

import json
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
PINS = sorted((ROOT / ".ci").glob("requirements*.txt"))
LOCKS = [
    ROOT / folder / "package-lock.json"
    for folder in ("tests/node", "tests/node/hosts", "specs/typescript")
]
PIN = re.compile(
    r"[\w.-]+==\S+? (?:; [^\\]+ )?\\"
    r"(?:\n    --hash=\S+(?: \\)?)+\n"
)


def test_there_are_pins_for_each_environment() -> None:
    names = {path.name for path in PINS}
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    workflows = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").iterdir()
    )
    assert {name for name in names if f"-r .ci/{name}" in run + workflows} == names
    assert "requirements.txt" in names


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_a_pin_has_hashes_and_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text
    assert PIN.sub("", text) == "", "a line that is no pin with its hashes"
    assert not re.search(r"://|\bfile:", text)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_of_npm_has_each_package_and_no_address(path: Path) -> None:
    """`npm ci` of npm 11 refuses a lock that leaves out packages for other systems."""
    packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
    names = {place.split("node_modules/")[-1] for place in packages}
    for place, package in packages.items():
        needed = {**package.get("dependencies", {}), **package.get("optionalDependencies", {})}
        assert {*needed} <= names, place
        assert "resolved" not in package, place


def test_the_tests_have_what_users_of_a_model_and_of_postgresql_have() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {*extras["model"], *extras["postgres"]} <= {*extras["test"]}
