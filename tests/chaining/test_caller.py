"""The client half on objects that know nothing of the SDK: two methods, and JSON."""

from types import SimpleNamespace
from typing import Any, ClassVar

import anyio
import pytest
from mcp.types import CallToolResult, InputRequiredResult, ListToolsResult

from tool_chaining import IDENTIFIER, Follower, Outcome
from tool_chaining.tools import MAX_PAGES, read_list

from .support import FakeClient, Noting, a_names_b, follow, never, result, texts, tool

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

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> dict[str, Any]:
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
    traced = {"traceparent": "00-1-2-01", "io.modelcontextprotocol/logLevel": "info"}
    mine = {"progressToken": 7, "com.acme/user-approved": "reserve", **traced}
    # The methods may be members of the object, and not of its class.
    names = ("protocol_version", "server_capabilities", "call_tool", "list_tools")
    caller = SimpleNamespace(**{name: getattr(shop, name) for name in names})
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
    assert shop.cursors == [None, "1"]


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
async def test_what_is_no_complete_result_fails_the_chain(returned: Any, problem: str) -> None:
    shop = Shop(reserve=returned)
    chain = await follow(shop, "reserve")

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
    ("hints", "ttl", "revision", "lists"),
    [
        # A list is used as long as it says, and one of 2025-11-25 cannot say it.
        ({"readOnlyHint": True}, 60_000, "2026-07-28", 1),
        ({"readOnlyHint": True}, None, "2026-07-28", 2),
        ({"readOnlyHint": True}, 60_000, "2025-11-25", 2),
        # What could end the chain is looked up anew.
        ({"destructiveHint": True}, 60_000, "2026-07-28", 2),
    ],
)
async def test_a_list_is_read_again_where_it_is_old_or_could_end_the_chain(
    hints: dict[str, Any], ttl: int | None, revision: str, lists: int
) -> None:
    client = FakeClient([tool("b", annotations=hints)], a_names_b, ttl_ms=ttl)
    client.protocol_version = revision
    person = Noting()
    follower = Follower(client, consent=person, follow_unadvertised=True)
    for number in (1, 2):
        chain = await follower.call_tool("a")
        assert chain.outcome is Outcome.DECLINED
        # A person who said no is not asked twice.
        assert len(person.asked) == number
        assert len(client.lists) == min(number, lists)
    assert {mode for _, mode in client.lists} == {"refresh"}
