"""The tools as the model is told of them: names, and words."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import ListToolsResult, Tool

from banking_server.agent import Toolbox, ToolsUnavailable

from .shop import shop

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def server(schemas: Mapping[str, dict[str, Any]]) -> Server[Any]:
    """Return a server with tools of these names, each with its input schema."""

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        tools = [Tool(name=name, input_schema=schema) for name, schema in schemas.items()]
        return ListToolsResult(tools=tools)

    return Server("s", on_list_tools=list_tools)


async def test_every_name_is_one_that_endpoints_allow() -> None:
    own = ["a.b", "a/b", "a_b", "x" * 128, "x" * 127 + "y", "grüß"]
    async with Client(server({name: {"type": "object"} for name in own})) as client:
        toolbox = await Toolbox.gather({"se rv": client})
    made = [offered.name for offered in toolbox.tools]
    assert len(set(made)) == len(own)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in made)
    assert [offered.tool.name for offered in toolbox.tools] == own


async def test_a_tool_in_words() -> None:
    async with Client(shop()[0]) as client:
        toolbox = await Toolbox.gather({"shop": client})
        with pytest.raises(ToolsUnavailable, match="No tool and no server has these"):
            await Toolbox.gather({"shop": client}, allowed=["none"])
    price = toolbox.find("price")
    assert price is not None
    assert price.in_words().split("\n") == [
        "Tool: price",
        "Title: Price of a Door",
        "Description: Look up the price of a door.",
        "Arguments:",
        "- door (string, required): The door's name.",
        '- currency (one of "EUR", "USD", optional, default "EUR"): What to pay in.',
        "- pieces (integer, at least 1, at most 9, optional, default 1): Pieces",
    ]
    assert toolbox.find("for_the_app") is None


async def test_references_are_followed_and_not_in_circles() -> None:
    part = {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}}
    schema = {**part, "$defs": {"Part": {**part, "description": "A part."}}}
    async with Client(server({"build": schema})) as client:
        [build] = (await Toolbox.gather({"s": client})).tools
    assert "Arguments:\n- part (object, optional): A part.\n  - part (object" in build.in_words()
