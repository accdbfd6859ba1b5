"""The server half on FastMCP: what it lets out. The suite judges it in `test_third_party.py`."""

import logging
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp_types import InputRequiredResult

from banking_server.adapters.fastmcp import ChainingClient
from banking_server.adapters.fastmcp_server import ToolChainingMiddleware
from banking_server.chaining import IDENTIFIER, SETTINGS

from ..kit.words import MODES

pytestmark = pytest.mark.anyio

GOOD = {"tool": "target", "arguments": {"order": "A-17"}}


class Hiding(Middleware):
    """Keeps a tool out of the list, though it could be called."""

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        return [tool for tool in await call_next(context) if tool.name != "hidden"]


def server() -> FastMCP[Any]:
    mcp: Any = FastMCP("orders", middleware=[Hiding(), ToolChainingMiddleware()])

    @mcp.tool
    def send(directive: Any, text: str = "It has shipped.") -> ToolResult:
        content = text or []
        meta = {"nextTool": directive, "kept": True}
        return ToolResult(content, structured_content={"nextStep": directive}, meta=meta)

    @mcp.tool(annotations={"readOnlyHint": True})
    async def target(order: str, ctx: Context) -> str:
        await ctx.report_progress(2)
        return f"Returned {order}."

    @mcp.tool(meta={"ui": {"visibility": ["app"]}})
    def for_people() -> str:
        return "Only in the app."

    @mcp.tool
    def hidden() -> str:
        return "Not listed."

    @mcp.tool
    def disabled() -> str:
        return "Not listed."

    @mcp.tool
    async def ask(ctx: Context) -> Any:
        return InputRequiredResult(request_state="s", _meta={"nextTool": GOOD})

    mcp.disable(names={"disabled"})
    return mcp  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", MODES)
async def test_it_advertises(mode: str) -> None:
    async with Client(server(), mode=mode) as client:
        capabilities = client.server_capabilities
    assert capabilities is not None
    place = capabilities.extensions if mode == "auto" else capabilities.experimental
    assert place is not None
    assert place[IDENTIFIER] == SETTINGS


@pytest.mark.parametrize("mode", MODES)
async def test_a_chain_from_end_to_end(mode: str) -> None:
    made: list[float] = []

    async def note(progress: float, *more: Any) -> None:
        made.append(progress)

    async with ChainingClient(server(), mode=mode) as client:
        result = await client.call_tool_mcp("send", {"directive": GOOD}, note, timeout=60)
    assert [block.text for block in result.content][:2] == ["It has shipped.", "Returned A-17."]
    assert made == [2]


@pytest.mark.parametrize("mode", MODES)
async def test_words_are_for_clients_that_did_not_declare(mode: str) -> None:
    for kind, items in ((Client, 2), (ChainingClient, 1)):
        async with kind(server(), mode=mode) as client:
            call = super(ChainingClient, client) if kind is ChainingClient else client
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
    directive: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(server()) as client:
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


async def test_a_directive_needs_other_content(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(server()) as client:
        result = await client.call_tool_mcp("send", {"directive": GOOD, "text": ""})
    assert "nextTool" not in (result.meta or {})
    assert "no other content" in errors(caplog)[0]


async def test_an_interim_result_names_no_tool(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(server()) as client:
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
