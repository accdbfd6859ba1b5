"""What CI does not notice about its own pins: an address in them, and an extra that lags behind."""

import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
PINS = (ROOT / ".ci").glob("requirements*.txt")
LOCKS = [ROOT / "specs" / "typescript", ROOT / "tests" / "node", ROOT / "tests" / "node" / "hosts"]


def test_no_pin_and_no_lock_names_a_registry() -> None:
    for path in (*PINS, *(folder / "package-lock.json" for folder in LOCKS)):
        text = path.read_text(encoding="utf-8")
        assert '"resolved"' not in text, path
        assert path.suffix == ".json" or "://" not in text, path


def test_the_test_extra_includes_the_model_and_postgres_extras() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {*extras["model"], *extras["postgres"]} <= {*extras["test"]}
