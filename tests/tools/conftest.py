"""The bank's tools, called by real clients in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator

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
