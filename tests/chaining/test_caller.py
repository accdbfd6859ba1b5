"""The client half on objects that know nothing of the SDK: two methods, and JSON."""

from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import CacheHint
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, InputRequiredResult, ListToolsResult, ToolAnnotations

from tool_chaining import (
    IDENTIFIER,
    Follower,
    Outcome,
    TrustHints,
    add_tool_chaining,
    with_next_tool,
)
from tool_chaining.tools import MAX_PAGES, read_list

from .support import FakeClient, Noting, follow, never, result, texts, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def saying(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    meta = {} if then is None else {"_meta": {"nextTool": then}}
    return {"content": [{"type": "text", "text": text}], **meta, **more}


def legacy(tools: Any, answer: Any) -> FakeClient:
    """A client of somebody's own on 2025-11-25: it has the two methods, and speaks JSON."""
    client = FakeClient(tools, answer)
    client.protocol_version = "2025-11-25"
    client.server_capabilities = {"experimental": {IDENTIFIER: {}}}
    return client


async def test_a_chain_over_a_plain_object() -> None:
    answers = {
        "reserve": saying("none left", {"tool": "order", "arguments": {"door": "oak", "n": 1.0}}),
        "order": saying("ordered", structuredContent={"number": 77}),
    }
    listed = {"inputSchema": {}, "annotations": {"readOnlyHint": True}}
    pages = {
        None: {"tools": [{"name": "reserve", **listed}], "nextCursor": "1"},
        "1": {"tools": [{"name": "order", **listed}]},
    }
    shop = legacy(lambda cursor: pages[cursor], lambda name, _: answers[name])
    traced = {"traceparent": "00-1-2-01", "io.modelcontextprotocol/logLevel": "info"}
    mine = {"progressToken": 7, "com.acme/user-approved": "reserve", **traced}
    # The methods may be members of the object, and not of its class.
    names = ("protocol_version", "server_capabilities", "call_tool", "list_tools")
    caller: Any = SimpleNamespace(**{name: getattr(shop, name) for name in names})
    chain = await follow(caller, "reserve", {"door": "oak"}, meta=mine)

    assert chain.outcome is Outcome.COMPLETED
    assert texts(chain) == ["none left", "ordered"]
    assert chain.steps[1].result["structuredContent"] == {"number": 77}
    assert repr(shop.calls) == repr(
        [("reserve", {"door": "oak"}), ("order", {"door": "oak", "n": 1.0})]
    )
    # What describes the client or the trace goes with each call; a token, and what somebody else
    # defines, was meant for the first one.
    provenance = [meta.pop(IDENTIFIER) for meta in shop.metas]
    assert shop.metas == [mine, traced]
    assert [each["level"] for each in provenance] == [1, 2]
    assert provenance[1]["previousTool"] == "reserve"
    assert [cursor for cursor, _ in shop.lists] == [None, "1"]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "NoneType is not a JSON object"),
        ([saying("x")], "list is not a JSON object"),
        ({**saying("x", {"tool": "order"}), "task": {"taskId": "t"}}, "answered with a task"),
        ({**saying("x", {"tool": "order"}), "resultType": "later"}, "unknown resultType 'later'"),
        (
            CallToolResult(content=[], _meta={"nextTool": {"tool": "order"}}, result_type="later"),
            "unknown resultType 'later'",
        ),
        (InputRequiredResult(request_state="s"), "asks for input"),
    ],
)
async def test_an_incomplete_result_fails_the_chain(returned: Any, problem: str) -> None:
    chain = await follow(legacy([], lambda *_: returned), "reserve")

    assert isinstance(chain.error, ValueError)
    assert problem in chain.detail
    assert "\n" not in chain.detail
    assert chain.steps == ()
    with pytest.raises(ValueError, match="no call of this chain brought a result: the call of"):
        chain.merged_json()


async def test_a_paginator_without_end_is_left() -> None:
    def endless(cursor: str | None) -> ListToolsResult:
        number = int(cursor or 0)
        return ListToolsResult(tools=[tool(f"t{number}")], next_cursor=str(number + 1))

    client = FakeClient(endless, lambda *_: result())
    noted: list[str] = []
    listed = await read_list(client, noted.append)

    assert [*listed.tools] == [f"t{n}" for n in range(MAX_PAGES)]
    assert noted == ["the tool list does not end, so the rest of it is not read"]
    assert listed.left_out == {""}


async def test_a_list_of_too_many_tools_is_not_kept() -> None:
    client = FakeClient([tool(f"t{number}") for number in range(10_001)], lambda *_: result())
    with pytest.raises(ValueError, match="more than 10,000 tools"):
        await read_list(client, pytest.fail)


async def test_the_time_for_a_request_bounds_the_list_too() -> None:
    client = FakeClient([], lambda *_: result("said", nextTool={"tool": "b"}))
    client.list_tools = never  # type: ignore[method-assign]
    with anyio.fail_after(60):
        chain = await follow(client, "a", call_timeout=0.01)

    assert isinstance(chain.error, TimeoutError)
    assert [step.tool for step in chain.steps] == ["a"]


@pytest.mark.parametrize(
    ("listed", "ttl", "revision", "lists"),
    [
        # A list is used as long as it says, and one of 2025-11-25 cannot say it.
        ({}, 60_000, "2026-07-28", 1),
        ({}, None, "2026-07-28", 2),
        ({}, 60_000, "2025-11-25", 2),
        # What could end the chain is looked up anew.
        ({"annotations": {"destructiveHint": True}}, 60_000, "2026-07-28", 2),
        ({"_meta": {"ui": {"visibility": ["app"]}}}, 60_000, "2026-07-28", 2),
        ({"inputSchema": {"required": ["n"]}}, 60_000, "2026-07-28", 2),
    ],
)
async def test_a_list_is_read_again_where_it_is_old_or_could_end_the_chain(
    listed: dict[str, Any], ttl: int | None, revision: str, lists: int
) -> None:
    directive = result("said", nextTool={"tool": "b"})
    client = FakeClient([tool("b", **listed)], lambda *_: directive, ttl_ms=ttl)
    client.protocol_version = revision
    person = Noting()
    follower = Follower(client, consent=person, follow_unadvertised=True)
    could_be_made = not listed.keys() & {"_meta", "inputSchema"}
    for number in (1, 2):
        assert len((await follower.call_tool("a")).steps) == 1
        # A person who said no is not asked twice.
        assert len(person.asked) == number * could_be_made
        assert len(client.lists) == min(number, lists)
    assert {mode for _, mode in client.lists} == {"refresh"}


async def test_a_fresh_list_is_read_again_once_the_server_says_that_it_changed() -> None:
    """The seam to the SDK: a connected `mcp.Client` has no public way to add a listener."""
    heard: list[Any] = []

    async def listen(message: Any) -> None:
        heard.append(message)

    mcp: MCPServer[Any] = MCPServer(
        "orders", cache_hints={"tools/list": CacheHint(ttl_ms=600_000, scope="public")}
    )
    add_tool_chaining(mcp)

    @mcp.tool()
    async def a() -> CallToolResult:
        """Name b."""
        return with_next_tool("a", "b")

    async def b() -> str:
        """Say b."""
        return "b"

    mcp.add_tool(b, name="b", annotations=ToolAnnotations(read_only_hint=True))
    async with Client(mcp, message_handler=listen) as client:
        follower = Follower(client, consent=TrustHints())
        assert len((await follower.call_tool("a")).steps) == 2
        mcp.remove_tool("b")
        mcp.add_tool(b, name="b", annotations=ToolAnnotations(destructive_hint=True))
        assert len((await follower.call_tool("a")).steps) == 2, "the list is fresh"
        await client.session._on_notify(None, "notifications/tools/list_changed", None)  # type: ignore[arg-type]
        assert (await follower.call_tool("a")).outcome is Outcome.DECLINED
    assert [message.method for message in heard] == ["notifications/tools/list_changed"]
