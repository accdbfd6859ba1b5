"""The client half on objects that know nothing of the SDK: two methods, and JSON."""

from typing import Any, ClassVar

import anyio
import pytest
from mcp.types import CallToolResult, InputRequiredResult, ListToolsResult

from tool_chaining import (
    IDENTIFIER,
    Outcome,
    Proposal,
    list_all_tools,
)
from tool_chaining.catalog import MAX_PAGES

from .support import FakeClient, a_names_b, follow, never, result, texts, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

READ_ONLY = {"readOnlyHint": True}
TOOLS = [
    {"name": "reserve", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {
        "name": "order",
        "inputSchema": {"type": "object", "required": ["door"]},
        "annotations": READ_ONLY,
    },
]


def saying(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    meta = {} if then is None else {"_meta": {"nextTool": then}}
    return {"content": [{"type": "text", "text": text}], **meta, **more}


class Shop:
    """A client of somebody's own: it has the two methods, and speaks JSON."""

    protocol_version = "2025-11-25"
    server_capabilities: ClassVar[Any] = {"experimental": {IDENTIFIER: {}}}

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.metas: list[Any] = []
        self.cursors: list[str | None] = []

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        read_timeout_seconds: float | None,
        meta: dict[str, Any],
    ) -> Any:
        self.calls.append((name, arguments))
        self.metas.append(meta)
        return self.answers[name]

    async def list_tools(self, *, cursor: str | None) -> dict[str, Any]:
        """One tool a page."""
        self.cursors.append(cursor)
        at = int(cursor or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {}
        return {"tools": [TOOLS[at]], **more}


async def test_a_chain_over_a_plain_object() -> None:
    shop = Shop(
        reserve=saying("none left", {"tool": "order", "arguments": {"door": "oak", "n": 1.0}}),
        order=saying("ordered", structuredContent={"number": 77}),
    )
    proposals: list[Proposal] = []
    mine = {"progressToken": 7, "trace": "t-1"}
    chain = await follow(shop, "reserve", {"door": "oak"}, on_proposal=proposals.append, meta=mine)

    assert chain.outcome is Outcome.COMPLETED
    assert texts(chain) == ["none left", "ordered"]
    assert chain.steps[1].result.structured_content == {"number": 77}
    assert repr(shop.calls) == repr(
        [("reserve", {"door": "oak"}), ("order", {"door": "oak", "n": 1.0})]
    )
    assert [meta["trace"] for meta in shop.metas] == ["t-1", "t-1"]
    # The token was given out for the first call.
    assert ["progressToken" in meta for meta in shop.metas] == [True, False]
    assert mine == {"progressToken": 7, "trace": "t-1"}
    assert [meta[IDENTIFIER]["level"] for meta in shop.metas] == [1, 2]
    assert shop.metas[1][IDENTIFIER]["previousTool"] == "reserve"
    assert shop.cursors == [None, "1"]
    assert [(p.tool.name, p.level, p.previous_tool) for p in proposals] == [("order", 2, "reserve")]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "NoneType, which is not a JSON object"),
        ([saying("x")], "list, which is not a JSON object"),
        ({"content": "S3CRET"}, 'is not valid MCP, at "content"'),
        ({}, 'is not valid MCP, at "content"'),
        ({**saying("x", {"tool": "order"}), "resultType": "task"}, "interim result"),
        ({**saying("x", {"tool": "order"}), "task": {"taskId": "t"}}, "interim result"),
        ({**saying("x", {"tool": "order"}), "resultType": "later"}, "no valid result"),
        ({**saying("x", {"tool": "order"}), "resultType": None}, "no valid result"),
        (
            CallToolResult(content=[], _meta={"nextTool": {"tool": "order"}}, result_type="later"),
            "no valid result (resultType 'later')",
        ),
        (InputRequiredResult(request_state="s"), "interim result"),
    ],
)
async def test_what_is_no_complete_result_fails_the_chain(returned: Any, problem: str) -> None:
    shop = Shop(reserve=returned)
    chain = await follow(shop, "reserve")

    assert isinstance(chain.error, ValueError)
    assert problem in chain.detail
    assert "\n" not in chain.detail
    assert "S3CRET" not in chain.detail
    assert chain.steps == ()


class Synchronous(Shop):
    """A client whose methods are not async."""

    def call_tool(self, *arguments: Any, **options: Any) -> Any:
        return saying("done")


async def test_methods_that_are_not_async_are_named() -> None:
    chain = await follow(Synchronous(), "reserve")
    assert "call_tool returned dict at once: it must be an async" in chain.detail


async def test_a_paginator_without_end_is_left() -> None:
    def endless(cursor: str | None) -> ListToolsResult:
        number = int(cursor or 0)
        return ListToolsResult(tools=[tool(f"t{number}")], next_cursor=str(number + 1))

    client = FakeClient(endless, lambda *_: result())
    tools = await list_all_tools(client)

    assert [each.name for each in tools] == [f"t{n}" for n in range(MAX_PAGES)]


async def test_the_time_for_a_request_bounds_the_list_too() -> None:
    client = FakeClient([], lambda *_: result("said", nextTool={"tool": "b"}))
    client.list_tools = never  # type: ignore[method-assign]
    with anyio.fail_after(60):
        chain = await follow(client, "a", call_timeout=0.01)

    assert isinstance(chain.error, TimeoutError)
    assert [step.tool for step in chain.steps] == ["a"]


class Asked:
    """A policy that notes what it is asked, and refuses."""

    def __init__(self) -> None:
        self.proposals: list[Proposal] = []

    async def allows(self, proposal: Proposal) -> bool:
        self.proposals.append(proposal)
        return False


@pytest.mark.parametrize(
    ("hints", "ttl", "revision", "lists"),
    [
        # A list is used as long as it says; one of 2025-11-25, which cannot say it, for a minute.
        ({"readOnlyHint": True}, 60_000, "2026-07-28", 1),
        ({"readOnlyHint": True}, None, "2026-07-28", 2),
        ({"readOnlyHint": True}, None, "2025-11-25", 1),
        # What could end the chain is looked up anew.
        ({"destructiveHint": True}, 60_000, "2026-07-28", 2),
        ({"destructiveHint": True}, None, "2025-11-25", 2),
    ],
)
async def test_a_list_is_read_again_where_it_is_old_or_could_end_the_chain(
    hints: dict[str, Any], ttl: int | None, revision: str, lists: int
) -> None:
    client = FakeClient([tool("b", annotations=hints)], a_names_b, ttl_ms=ttl)
    client.protocol_version = revision
    for number in (1, 2):
        asked = Asked()
        chain = await follow(client, "a", consent=asked, follow_unadvertised=True)
        assert chain.outcome is Outcome.DECLINED
        # A person who said no is not asked twice.
        assert len(asked.proposals) == 1
        assert len(client.lists) == min(number, lists)
    assert {mode for _, mode in client.lists} == {"refresh"}


async def test_a_server_that_nobody_trusts_validates_the_arguments_itself() -> None:
    unfit = {"type": "object", "required": ["amount"]}
    client = FakeClient([tool("b", inputSchema=unfit)], a_names_b)
    assert (await follow(client, "a")).outcome is Outcome.INVALID_ARGUMENTS
    chain = await follow(client, "a", validate=False)
    assert [step.tool for step in chain.steps] == ["a", "b"]
