"""Who says that it implements the extension: more malformed settings than the suite sends."""

from typing import Any

import pytest

from banking_server.chaining import IDENTIFIER
from banking_server.chaining.negotiation import has_declared

pytestmark = pytest.mark.quick

OLD, NEW = "2025-11-25", "2026-07-28"
MALFORMED: list[Any] = [
    None,
    True,
    1,
    "1",
    [],
    [{"version": 1}],
    *({"version": version} for version in (None, "1", 0, -1, 1.5, True, [1], {}, float("inf"))),
]


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("settings", MALFORMED, ids=str)
def test_malformed_settings_are_absent(settings: Any, revision: str) -> None:
    assert not has_declared({"extensions": {IDENTIFIER: settings}}, revision)
    assert not has_declared({"experimental": {IDENTIFIER: settings}}, revision)


@pytest.mark.parametrize("first", [None, {}, {IDENTIFIER: "malformed"}])
def test_the_old_era_has_a_second_place(first: Any) -> None:
    capabilities = {"extensions": first, "experimental": {IDENTIFIER: {"version": 1}}}

    assert has_declared(capabilities, OLD)
    assert not has_declared(capabilities, NEW)
