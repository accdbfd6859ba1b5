"""The server half on FastMCP: what it lets out. The suite judges it in `test_third_party.py`."""

import logging
from typing import Any

import pytest
from mcp_types import InputRequiredResult

from banking_server.chaining import IDENTIFIER, SETTINGS

from ..kit.words import MODES
from .support import missing

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(missing("fastmcp", "pip install '.[dev]'")),
]

GOOD = {"tool": "target", "arguments": {"order": "A-17"}}


@pytest.fixture
def orders() -> Any:
    """The server and its clients: FastMCP takes a second to load, in each process that collects."""
    from . import orders_on_fastmcp

    return orders_on_fastmcp


@pytest.mark.parametrize("mode", MODES)
async def test_it_advertises(mode: str, orders: Any) -> None:
    async with orders.Client(orders.server(), mode=mode) as client:
        capabilities = client.server_capabilities
    assert capabilities is not None
    place = capabilities.extensions if mode == "auto" else capabilities.experimental
    assert place is not None
    assert place[IDENTIFIER] == SETTINGS


@pytest.mark.parametrize("mode", MODES)
async def test_a_chain_from_end_to_end(mode: str, orders: Any) -> None:
    made: list[float] = []

    async def note(progress: float, *more: Any) -> None:
        made.append(progress)

    async with orders.ChainingClient(orders.server(), mode=mode) as client:
        result = await client.call_tool_mcp("send", {"directive": GOOD}, note, timeout=60)
    assert [block.text for block in result.content][:2] == ["It has shipped.", "Returned A-17."]
    assert made == [2]


@pytest.mark.parametrize("mode", MODES)
async def test_words_are_for_clients_that_did_not_declare(mode: str, orders: Any) -> None:
    chaining = orders.ChainingClient
    for kind, items in ((orders.Client, 2), (chaining, 1)):
        async with kind(orders.server(), mode=mode) as client:
            call = super(chaining, client) if kind is chaining else client
            sent = {**GOOD, "more": 1}
            result = await call.call_tool_mcp("send", {"directive": sent})
        assert result.meta["nextTool"] == GOOD
        assert result.meta["kept"] is True
        assert len(result.content) == items


@pytest.mark.parametrize(
    ("directive", "problem"),
    [
        (None, "must be an object"),
        ({"name": "target"}, "'name' is for reading only"),
        ({"tool": "nowhere"}, "lists no tool 'nowhere'"),
        ({"tool": "disabled"}, "lists no tool 'disabled'"),
        ({"tool": "hidden"}, "lists no tool 'hidden'"),
        ({"tool": "for_people"}, "not meant for the model"),
        ({"tool": "target"}, "'order' is a required property"),
        ({"tool": "target", "arguments": {"order": "1", "x": 1}}, "'x': such properties are not"),
        ({**GOOD, "title": "two\nlines"}, "title"),
    ],
    ids=str,
)
async def test_what_is_not_fit_is_logged_and_dropped(
    directive: Any, problem: str, orders: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with orders.Client(orders.server()) as client:
        result = await client.call_tool_mcp("send", {"directive": directive})
    assert result.meta is not None
    assert "nextTool" not in result.meta
    assert result.meta["kept"] is True
    if directive and "tool" in directive:
        assert result.structured_content == {}
    assert len(result.content) == 1
    [dropped] = errors(caplog)
    assert dropped.startswith("Dropped the directive of tool 'send': ")
    assert problem in dropped


async def test_a_directive_needs_other_content(
    orders: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with orders.Client(orders.server()) as client:
        result = await client.call_tool_mcp("send", {"directive": GOOD, "text": ""})
    assert "nextTool" not in (result.meta or {})
    assert "no other content" in errors(caplog)[0]


async def test_an_interim_result_names_no_tool(
    orders: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with orders.Client(orders.server()) as client:
        first = await client.session.call_tool("ask", {}, allow_input_required=True)
    assert isinstance(first, InputRequiredResult)
    assert first.meta is None or "nextTool" not in first.meta
    assert "interim" in errors(caplog)[0]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "banking_server.chaining.outgoing" and record.levelno == logging.ERROR
    ]
