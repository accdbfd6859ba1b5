"""Who says that it implements the extension, and what a client follows without that."""

from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import ListToolsResult, ServerCapabilities

from banking_server.chaining import IDENTIFIER, Outcome, call_tool_with_chaining
from banking_server.chaining.caller import advertised
from banking_server.chaining.negotiation import has_declared

from .support import VERSIONS, FakeClient, result, tool

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


def server_that_says(*, extension: bool) -> Server[Any]:
    async def list_tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool("a"), tool("b")])

    async def call_tool(_: Any, params: Any) -> Any:
        return result(params.name, **({"nextTool": {"tool": "b"}} if params.name == "a" else {}))

    server = Server("s", on_list_tools=list_tools, on_call_tool=call_tool)
    if extension:
        server.extensions[IDENTIFIER] = {"version": 7}
    return server


@pytest.mark.parametrize(
    ("mode", "extension", "allowed", "follows"),
    [
        ("auto", True, False, True),
        ("auto", False, False, False),
        ("auto", False, True, True),
        ("legacy", False, False, True),
        # The server was never asked.
        ("2026-07-28", True, False, True),
    ],
)
async def test_whom_a_client_follows(
    mode: str, extension: bool, allowed: bool, follows: bool
) -> None:
    async with Client(server_that_says(extension=extension), mode=mode) as client:
        assert client.protocol_version == VERSIONS.get(mode, mode)
        chain = await call_tool_with_chaining(client, "a", follow_unadvertised=allowed)

    assert [step.tool for step in chain.steps] == (["a", "b"] if follows else ["a"])
    assert chain.outcome is (Outcome.COMPLETED if follows else Outcome.DECLINED)
    assert ("does not say" in chain.detail) is not follows


async def test_nobody_is_asked_about_a_server_that_is_not_followed() -> None:
    proposals: list[Any] = []
    client = FakeClient([tool("b")], lambda *_: result("a", nextTool={"tool": "b"}))
    client.protocol_version = NEW  # type: ignore[attr-defined]
    client.server_capabilities = {"tools": {}}  # type: ignore[attr-defined]
    chain = await call_tool_with_chaining(client, "a", on_proposal=proposals.append)

    assert chain.outcome is Outcome.DECLINED
    assert proposals == []
