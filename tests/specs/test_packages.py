"""The packages under which others find this: their names are the same everywhere, and they work."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema.validators import Draft7Validator

from .files import SPECS, read_json

UPSTREAM = SPECS / "upstream"
PACKAGES = UPSTREAM / "packages"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Before the tests take the certificates away, which the network needs."""


@pytest.mark.quick
def test_names_owner_and_version_are_the_same_everywhere() -> None:
    made: dict[Path, str] = runpy.run_path(str(PACKAGES / "names.py"))["made"]()
    for path, text in made.items():
        assert path.read_text("utf-8") == text, f"{path.name} is made by names.py; run it"
    # The registry looks for this line in the README of the package.
    name = read_json(PACKAGES / "server.json")["name"]
    assert f"<!-- mcp-name: {name} -->" in (SPECS.parent / "README.md").read_text("utf-8")


@pytest.mark.quick
def test_the_entry_of_the_registry_meets_its_schema() -> None:
    schema = Draft7Validator(read_json(PACKAGES / "server.schema.json"))
    entry = read_json(PACKAGES / "server.json")
    schema.validate(entry)
    assert entry["$schema"] == schema.schema["$id"]
    assert not schema.is_valid(entry | {"description": "long " * 21})


@pytest.mark.nightly
@pytest.mark.parametrize("script", ["packages/try_packages.py", "adopting/adopt.py"])
def test_as_its_receiver_does_it(script: str) -> None:
    command = [sys.executable, str(UPSTREAM / script)]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    if ran.stderr.startswith("git init"):
        pytest.skip("needs GitHub, or ADOPTING_FROM")
    assert ran.returncode == 0, ran.stdout + ran.stderr
