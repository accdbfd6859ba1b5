"""The tools as the model is told of them: names, and words."""

import re
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import ListToolsResult, Tool

from banking_server.agent import Toolbox, ToolsUnavailable

from .shop import shop

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

PART = {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}}
SCHEMA = {**PART, "$defs": {"Part": {**PART, "description": "A part."}}}


async def test_names_are_those_that_endpoints_allow_and_references_are_no_circles() -> None:
    own = ["a.b", "a/b", "a_b", "x" * 128, "x" * 127 + "y", "grüß"]

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema=SCHEMA) for name in own])

    async with Client(Server("s", on_list_tools=list_tools)) as client:
        toolbox = await Toolbox.gather({"se rv": client})
    made = [offered.name for offered in toolbox.tools]
    assert len(set(made)) == len(own)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in made)
    assert [offered.tool.name for offered in toolbox.tools] == own
    # A model that uses the server's own name is understood, as it is nobody else's.
    found = toolbox.find("a.b")
    assert found is not None
    assert found.tool.name == "a.b"
    assert "Arguments:\n- part (object, optional): A part.\n  - part (object" in found.in_words()


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
