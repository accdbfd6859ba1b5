"""The tools as the model is told of them: names, and words."""

from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp.types import ListToolsResult, Tool

from banking_server.agent import Toolbox, ToolsUnavailable

from .shop_server import fresh_shop

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def test_every_name_is_one_that_endpoints_allow() -> None:
    own = ["a.b", "a/b", "a_b", "x" * 128, "x" * 127 + "y", "grüß"]

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[Tool(name=one, input_schema={"type": "object"}) for one in own]
        )

    async with Client(Server("s", on_list_tools=list_tools)) as client:
        toolbox = await Toolbox.gather({"se rv": client})
    made = [offered.name for offered in toolbox.tools]
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


async def test_a_tool_in_words() -> None:
    async with Client(fresh_shop()[0]) as client:
        toolbox = await Toolbox.gather({"shop": client})
        with pytest.raises(ToolsUnavailable, match="No tool and no server has these"):
            await Toolbox.gather({"shop": client}, allowed=["none"])
    price, nothing = toolbox.find("price"), toolbox.find("code")
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
    assert nothing is not None
    assert nothing.in_words().endswith("Arguments: none")
    assert toolbox.find("for_the_app") is None
    assert toolbox.instructions == {"shop": "The shop sells doors."}


@pytest.mark.parametrize(
    ("of", "tool"),
    [("fromaccount", "list_accounts"), ("book", "findBooks"), ("item", "list_accounts")],
)
async def test_the_tool_that_lists_the_ids_of_a_kind(of: str, tool: str) -> None:
    needs = {"get_account": ["accountId"], "findBooks": ["query"]}
    names = ["get_weather", "get_account", "findBooks", "list_accounts", "list"]

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        schemas = {one: {"type": "object", "required": needs.get(one, [])} for one in names}
        return ListToolsResult(tools=[Tool(name=one, input_schema=schemas[one]) for one in names])

    async with Client(Server("s", on_list_tools=list_tools)) as client:
        toolbox = await Toolbox.gather({"s": client})
    found = toolbox.lists("s", of)
    assert found is not None
    assert found.name == tool
