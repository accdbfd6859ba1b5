"""The tools as the model is told of them: pages, names, and words."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from banking_server.agent import OfferedTool, Toolbox

from .shop_server import Log, build

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

READ_ONLY = ToolAnnotations(read_only_hint=True)
ANY: dict[str, Any] = {"type": "object"}


def server(name: str, pages: Sequence[Sequence[str]], endless: bool = False) -> Server[Any]:
    """A server that lists its tools in pages, and says which of them was called."""

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        at = int(params.cursor) if params is not None and params.cursor else 0
        tools = [
            Tool(name=tool, input_schema=ANY, annotations=READ_ONLY)
            for tool in pages[at % len(pages)]
        ]
        more = endless or at + 1 < len(pages)
        return ListToolsResult(tools=tools, next_cursor=str(at + 1) if more else None)

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=f"{params.name} of {name}")])

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


async def gather(stack: AsyncExitStack, **servers: Any) -> Toolbox:
    return await Toolbox.gather(
        {name: await stack.enter_async_context(Client(one)) for name, one in servers.items()}
    )


def names(toolbox: Toolbox) -> list[str]:
    return [offered.name for offered in toolbox.tools]


async def test_names_that_clash_are_told_apart_by_their_servers() -> None:
    async with AsyncExitStack() as stack:
        toolbox = await gather(
            stack,
            bank=server("bank", [["find", "pay"]]),
            shop=server("shop", [["find", "sell", "bank__find"]]),
        )
        assert names(toolbox) == ["bank__find_2", "pay", "shop__find", "sell", "bank__find"]
        for offered in toolbox.tools:
            found = toolbox.find(offered.name)
            assert found is offered
            result = await found.client.call_tool(found.tool.name, {})
            assert result.content[0].text == f"{found.tool.name} of {found.server}"  # type: ignore[union-attr]
        assert toolbox.find("find") is None
        assert toolbox.find("shop__find", "find") is toolbox.find("shop__find")


async def test_every_name_is_one_that_endpoints_allow() -> None:
    own = ["a.b", "a/b", "a_b", "x" * 128, "x" * 127 + "y", "grüß"]
    async with AsyncExitStack() as stack:
        toolbox = await gather(stack, **{"se rv": server("s", [own])})
        made = names(toolbox)
        assert len(set(made)) == len(own)
        for name in made:
            assert name.replace("_", "a").replace("-", "a").isalnum()
            assert name.isascii()
            assert len(name) <= 64
        assert [offered.tool.name for offered in toolbox.tools] == own
        # A model that uses the server's own name is understood, as it is nobody else's.
        found = toolbox.find("a.b")
        assert found is not None
        assert found.tool.name == "a.b"
        again = await gather(stack, **{"se rv": server("s", [own])})
        assert names(again) == made


async def test_a_tool_in_words() -> None:
    async with AsyncExitStack() as stack:
        toolbox = await gather(stack, shop=build(Log()))
        found = toolbox.find("price")
        assert found is not None
        assert found.in_words() == "\n".join(
            [
                "Tool: price",
                "Title: Price of a Door",
                "Description: Look up the price of a door.",
                "Arguments:",
                "- door (string, required): The door's name.",
                "- size (object or null, optional): For one made to measure.",
                '- currency (one of "EUR", "USD", optional, default "EUR"): What to pay in.',
                "- pieces (integer, at least 1, at most 9, optional, default 1): Pieces",
            ]
        )
        nothing = toolbox.find("code")
        assert nothing is not None
        assert nothing.in_words().endswith("Arguments: none")
        assert toolbox.find("for_the_app") is None
        assert toolbox.instructions == {"shop": "The shop sells doors."}


def in_words(schema: Any) -> str:
    tool = Tool(name="t", input_schema=schema)
    return OfferedTool("t", "s", tool, None, None, None).in_words()  # type: ignore[arg-type]


def test_nested_arguments_are_described_further_in() -> None:
    schema = {
        "type": "object",
        "properties": {
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}, "description": "All."},
            "to": {"$ref": "#/$defs/Place~1Name", "description": "Where to."},
        },
        "required": ["lines"],
        "$defs": {
            "Line": {"type": "object", "properties": {"n": {"type": "number", "minimum": 0.5}}},
            "Place/Name": {"oneOf": [{"const": "here"}, {"const": "there"}]},
        },
    }
    assert in_words(schema).split("\n")[3:] == [
        "- lines (list of object, required): All.",
        "  - n (number, at least 0.5, optional): no description",
        '- to ("here" or "there", optional): Where to.',
    ]
