"""What CI installs is pinned by version and hash, and names no address.

That the pins are in the ranges of the package, its installation in `.ci/run` finds.
"""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
PINS = sorted((ROOT / ".ci").glob("requirements*.txt"))
PIN = re.compile(
    r"[\w.-]+==\S+? (?:; [^\\]+ )?\\"
    r"(?:\n    --hash=\S+(?: \\)?)+\n"
)


def asked_for(*extras: str) -> list[Requirement]:
    """What the package itself asks for, with these extras."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


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


def test_the_tests_have_what_users_of_a_model_and_of_postgresql_have() -> None:
    assert set(asked_for("model", "postgres")) <= set(asked_for("test"))


def test_what_the_adapters_page_installs_without_the_rest_is_in_the_packages_ranges() -> None:
    page = (ROOT / "banking_server" / "adapters" / "README.md").read_text(encoding="utf-8")
    [named] = re.findall(r"^pip install --no-deps \w+ (.+)$", page, re.MULTILINE)
    with (ROOT / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    assert set(shlex.split(named)) < set(dependencies)


def test_an_action_is_named_by_its_commit() -> None:
    used = [
        (path.name, name)
        for path in (ROOT / ".github").rglob("*.yml")
        for name in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    ]
    assert len(used) > 5
    loose = [each for each in used if not re.search(r"^\./|@[0-9a-f]{40}$", each[1])]
    assert loose == []
