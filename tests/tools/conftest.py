"""Fixtures: one bank on a real database file, and real clients of its server, in both eras."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema.validators import Draft202012Validator

from .support import MODES, START, World, fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database just filled with the demo data, to be copied: filling takes its time."""
    path = tmp_path_factory.mktemp("filled") / "bank.db"
    anyio.run(fill, path, START)
    return path


_CHECKED: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def schemas_are_checked_once() -> Iterator[None]:
    """Spare each connection the check of the same few schemas: half of all the time it takes."""
    check = Draft202012Validator.check_schema

    def check_once(schema: Any, *more: Any) -> None:
        key = json.dumps(schema, sort_keys=True)
        if key not in _CHECKED:
            check(schema, *more)
            _CHECKED.add(key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check_once)
        yield


@pytest.fixture
def world(tmp_path: Path, filled: Path) -> Iterator[World]:
    """A bank of its own for each test."""
    made = World(tmp_path, filled)
    yield made
    made.books_balance()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Both protocol eras."""
    return str(request.param)
