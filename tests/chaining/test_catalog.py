"""One server's tools: all pages, listed once, and once more on a miss."""

from typing import Any

import anyio
import pytest
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.types import ListToolsResult

from banking_server.chaining import (
    ChainFailed,
    Outcome,
    ToolCatalog,
    call_tool_with_chaining,
)
from banking_server.chaining.catalog import PAGE_LIMIT

from ..kit.words import MODES
from .support import FakeClient, connect, never, result, tool

pytestmark = pytest.mark.anyio


def catalog_of(client: FakeClient) -> ToolCatalog:
    return ToolCatalog(client)


def pages(*names_and_next: tuple[list[str], str | None]) -> Any:
    """Lists whose pages are numbered by their cursors: None, then "1", "2", ..."""

    def page(cursor: str | None) -> ListToolsResult:
        names, following = names_and_next[int(cursor or 0)]
        return ListToolsResult(tools=[tool(name) for name in names], next_cursor=following)

    return page


async def test_listed_once_however_often_it_is_asked() -> None:
    client = FakeClient([tool("a"), tool("b")], lambda *_: result())
    catalog = catalog_of(client)

    assert client.lists == []
    for name in ("a", "b", "a"):
        found = await catalog.find(name)
        assert found is not None
        assert found.name == name
    assert client.lists == [(None, "use")]


async def test_all_pages_are_read() -> None:
    client = FakeClient(pages((["a"], "1"), (["b"], "2"), (["c"], None)), lambda *_: result())
    catalog = catalog_of(client)

    for name in ("c", "b", "a"):
        assert await catalog.find(name) is not None
    assert [cursor for cursor, _ in client.lists] == [None, "1", "2"]


async def test_refreshed_once_on_each_miss() -> None:
    client = FakeClient([tool("a")], lambda *_: result())
    catalog = catalog_of(client)

    await catalog.find("a")
    assert await catalog.find("b") is None
    assert client.lists == [(None, "use"), (None, "refresh")]
    client.tools = [tool("b")]
    assert await catalog.find("b") is not None
    assert client.lists == [(None, "use"), (None, "refresh"), (None, "refresh")]
    # The refreshed list has replaced the old one.
    assert await catalog.find("b") is not None
    assert len(client.lists) == 3
    assert await catalog.find("a") is None


async def test_the_first_of_two_tools_with_one_name_counts() -> None:
    twice = [tool("a", description="one"), tool("a", description="two")]
    found = await catalog_of(FakeClient(twice, lambda *_: result())).find("a")

    assert found is not None
    assert found.description == "one"


async def test_a_paginator_that_goes_in_circles_is_left() -> None:
    client = FakeClient(pages((["a"], "1"), (["b"], "2"), (["c"], "1")), lambda *_: result())

    assert await catalog_of(client).find("c") is not None
    assert [cursor for cursor, _ in client.lists] == [None, "1", "2"]


async def test_a_paginator_without_end_is_left() -> None:
    def endless(cursor: str | None) -> ListToolsResult:
        number = int(cursor or 0)
        return ListToolsResult(tools=[tool(f"t{number}")], next_cursor=str(number + 1))

    client = FakeClient(endless, lambda *_: result())
    catalog = catalog_of(client)

    assert await catalog.find(f"t{PAGE_LIMIT - 1}") is not None
    assert len(client.lists) == PAGE_LIMIT
    assert await catalog.find(f"t{PAGE_LIMIT}") is None
    assert len(client.lists) == 2 * PAGE_LIMIT


@pytest.mark.parametrize("mode", MODES)
async def test_a_real_server_whose_pages_never_end(mode: str) -> None:
    listed: list[str | None] = []

    async def list_tools(_: Any, params: Any) -> ListToolsResult:
        cursor = params.cursor if params else None
        listed.append(cursor)
        number = int(cursor or 0)
        return ListToolsResult(tools=[tool(f"t{number}")], next_cursor=str(number + 1))

    async def call_tool(_: Any, params: Any) -> Any:
        return result("x", nextTool={"tool": "nowhere"})

    server: Server[Any] = Server("endless", on_list_tools=list_tools, on_call_tool=call_tool)
    with anyio.fail_after(60):
        async with connect(server, "memory", mode) as peer:
            chain = await call_tool_with_chaining(peer.client, "t0")

    assert chain.outcome is Outcome.UNKNOWN_TOOL
    assert len(listed) <= 2 * PAGE_LIMIT + 1  # and the SDK looks once for the output schema


@pytest.mark.parametrize("mode", MODES)
async def test_a_miss_is_looked_up_past_the_clients_own_cache(mode: str) -> None:
    names = ["first"]

    async def list_tools(_: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool(name) for name in names])

    async def call_tool(_: Any, params: Any) -> Any:
        if params.name != "first":
            return result("late")
        names.append("late")
        return result("x", nextTool={"tool": "late"})

    server: Server[Any] = Server(
        "cached",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000, scope="private")},
    )
    async with connect(server, "memory", mode) as peer:
        await peer.client.list_tools()
        chain = await call_tool_with_chaining(peer.client, "first")

    assert chain.outcome is Outcome.COMPLETED
    assert [step.tool for step in chain.steps] == ["first", "late"]


async def test_a_chain_lists_only_when_there_is_something_to_look_up() -> None:
    client = FakeClient([tool("a")], lambda *_: result("done"))
    await call_tool_with_chaining(client, "a")

    assert client.lists == []


async def test_a_catalog_can_be_shared_between_chains() -> None:
    client = FakeClient(
        [tool("b")],
        lambda name, _: result(name, **({"nextTool": {"tool": "b"}} if name == "a" else {})),
    )
    catalog = catalog_of(client)
    for _ in range(3):
        chain = await call_tool_with_chaining(client, "a", catalog=catalog)
        assert chain.outcome is Outcome.COMPLETED

    assert client.lists == [(None, "use")]


async def test_a_list_that_fails_hides_nothing() -> None:
    def broken(_: str | None) -> ListToolsResult:
        raise ConnectionError("gone")

    client = FakeClient(broken, lambda *_: result("said", nextTool={"tool": "b"}))
    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(client, "a")

    ended = failure.value.result
    assert isinstance(failure.value.__cause__, ConnectionError)
    assert [step.tool for step in ended.steps] == ["a"]
    assert ended.pending is not None
    assert ended.pending.tool == "b"
    assert "'b'" in ended.detail
    assert "gone" in ended.detail


async def test_the_time_for_a_request_bounds_the_list_too() -> None:
    client = FakeClient([], lambda *_: result("said", nextTool={"tool": "b"}))
    client.list_tools = never  # type: ignore[method-assign]
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await call_tool_with_chaining(client, "a", call_timeout=0.01)

    assert isinstance(failure.value.__cause__, TimeoutError)
    assert [step.tool for step in failure.value.result.steps] == ["a"]
