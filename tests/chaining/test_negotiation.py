"""Who says that it implements the extension."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp.types import ServerCapabilities

from banking_server.chaining import IDENTIFIER
from banking_server.chaining.caller import advertised
from banking_server.chaining.negotiation import has_declared

pytestmark = pytest.mark.quick

OLD, NEW = "2025-11-25", "2026-07-28"
GOOD: list[Any] = [{}, {"version": 1}, {"version": 1.0}, {"version": 2}, {"version": 1, "x": None}]
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
@pytest.mark.parametrize("settings", GOOD, ids=str)
def test_settings_are_read(settings: Any, revision: str) -> None:
    assert has_declared({"extensions": {IDENTIFIER: settings, "x": 1}}, revision)


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


@pytest.mark.parametrize(
    ("revision", "capabilities", "known"),
    [
        (NEW, {"tools": {}, "extensions": {IDENTIFIER: {}}}, True),
        (NEW, {"tools": {}}, False),
        (OLD, {"tools": {}, "experimental": {IDENTIFIER: {}}}, True),
        (OLD, {"tools": {}}, False),
        (OLD, None, False),
        (None, {"extensions": {IDENTIFIER: {}}}, False),
        (5, {"extensions": {IDENTIFIER: {}}}, False),
    ],
)
def test_what_a_client_knows_of_its_server(revision: Any, capabilities: Any, known: bool) -> None:
    """What nobody knows is not advertised. That such a server is not followed: `test_follower`."""
    model = None if capabilities is None else ServerCapabilities.model_validate(capabilities)
    for stated in (capabilities, model):
        client: Any = SimpleNamespace(protocol_version=revision, server_capabilities=stated)
        assert advertised(client) is known
    assert not advertised(object())  # type: ignore[arg-type]
