"""One server's tools: all pages, how long a list is good, and when it is read once more."""

import anyio
import pytest
from mcp.types import ListToolsResult, Tool

from banking_server.chaining import (
    ChainFailed,
    Outcome,
    Proposal,
    ToolCatalog,
)
from banking_server.chaining.catalog import PAGE_LIMIT

from .support import FakeClient, a_names_b, follow, never, result, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


class Clock:
    """Seconds that go on only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


async def found(catalog: ToolCatalog, name: str) -> Tool | None:
    return (await catalog.for_directive(catalog.now())).find(name)


async def test_a_list_is_kept_for_as_long_as_it_says() -> None:
    client = FakeClient([tool("a")], lambda *_: result(), ttl_ms=2000)
    clock = Clock()
    catalog = ToolCatalog(client, clock=clock)

    for seconds, lists in [(100.0, 1), (101.0, 1), (101.9, 1), (102.0, 2), (103.9, 2), (104.5, 3)]:
        clock.seconds = seconds
        assert await found(catalog, "a") is not None
        assert [t.name for t in await catalog.list()] == ["a"]
        assert len(client.lists) == lists
    # Never from the client's own cache, of which nobody knows how old its answers are.
    assert {mode for _, mode in client.lists} == {"refresh"}


async def test_a_name_with_several_tools_names_none() -> None:
    other = tool("a", annotations={"destructiveHint": True})
    for twins, known in (([tool("a"), tool("a")], True), ([tool("a"), tool("a"), other], False)):
        catalog = ToolCatalog(FakeClient(twins, lambda *_: result()))
        assert (await found(catalog, "a") is not None) is known
        assert [t.name for t in await catalog.list()] == ["a"]


async def test_a_paginator_without_end_is_left() -> None:
    def endless(cursor: str | None) -> ListToolsResult:
        number = int(cursor or 0)
        return ListToolsResult(tools=[tool(f"t{number}")], next_cursor=str(number + 1))

    client = FakeClient(endless, lambda *_: result())
    tools = await ToolCatalog(client).read()

    assert tools.find(f"t{PAGE_LIMIT - 1}") is not None
    assert tools.find(f"t{PAGE_LIMIT}") is None
    assert len(client.lists) == PAGE_LIMIT


async def test_a_person_who_said_no_is_not_asked_twice() -> None:
    asked: list[Proposal] = []
    shown: list[Proposal] = []

    class Refusing:
        async def allows(self, proposal: Proposal) -> bool:
            asked.append(proposal)
            return False

    def now(_: str | None) -> ListToolsResult:
        """Say something else of the tool each time."""
        changed = tool("b", annotations=None, description=f"List {len(client.lists)}")
        return ListToolsResult(tools=[changed], ttl_ms=3_600_000)

    client = FakeClient(now, a_names_b)
    catalog = ToolCatalog(client)
    await catalog.list()
    chain = await follow(client, "a", catalog=catalog, consent=Refusing(), on_proposal=shown.append)

    assert chain.outcome is Outcome.DECLINED
    assert asked == shown
    assert len(asked) == 1


async def test_a_list_that_changes_for_ever_fails_the_chain() -> None:
    def now(_: str | None) -> ListToolsResult:
        catalog.changed()
        return ListToolsResult(tools=[tool("b")])

    client = FakeClient(now, a_names_b)
    catalog = ToolCatalog(client)
    with pytest.raises(ChainFailed, match="changed each of the 3 times"):
        await follow(client, "a", catalog=catalog)

    assert [name for name, _ in client.calls] == ["a"]


async def test_the_time_for_a_request_bounds_the_list_too() -> None:
    client = FakeClient([], lambda *_: result("said", nextTool={"tool": "b"}))
    client.list_tools = never  # type: ignore[method-assign]
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await follow(client, "a", call_timeout=0.01)

    assert isinstance(failure.value.__cause__, TimeoutError)
    assert [step.tool for step in failure.value.result.steps] == ["a"]
