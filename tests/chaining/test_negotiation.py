"""Who says that it implements the extension, and what a client follows without that."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp.types import ServerCapabilities

from banking_server.chaining import IDENTIFIER, Outcome, call_tool_with_chaining
from banking_server.chaining.caller import advertised
from banking_server.chaining.negotiation import has_declared

from .support import FakeClient, a_names_b, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

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
        (NEW, {"tools": {}, "extensions": {IDENTIFIER: {"version": 0}}}, False),
        (NEW, {"tools": {}, "experimental": {IDENTIFIER: {}}}, False),
        ("2027-01-01", {"tools": {}}, False),
        (NEW, {}, False),
        (NEW, None, None),
        (OLD, {"tools": {}}, None),
        (None, {"tools": {}}, None),
        (5, {"tools": {}}, None),
    ],
)
def test_what_a_client_knows_of_its_server(revision: Any, capabilities: Any, known: Any) -> None:
    model = None if capabilities is None else ServerCapabilities.model_validate(capabilities)
    for stated in (capabilities, model):
        client: Any = SimpleNamespace(protocol_version=revision, server_capabilities=stated)
        assert advertised(client) is known


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_server_that_does_not_say_so_is_followed_where_the_host_allows_it(
    allowed: bool,
) -> None:
    proposals: list[Any] = []
    client = FakeClient([tool("b")], a_names_b)
    client.protocol_version = NEW  # type: ignore[attr-defined]
    client.server_capabilities = {"tools": {}}  # type: ignore[attr-defined]
    chain = await call_tool_with_chaining(
        client, "a", on_proposal=proposals.append, follow_unadvertised=allowed
    )

    assert chain.outcome is (Outcome.COMPLETED if allowed else Outcome.DECLINED)
    assert ("does not say" in chain.detail) is not allowed
    # Nobody is asked about a server that is not followed.
    assert len(proposals) == (1 if allowed else 0)
