"""The client half over every transport and in both eras: what a transport could change."""

import json

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

from banking_server.chaining import (
    ChainFailed,
    Fate,
    Outcome,
    Step,
    ToolCatalog,
    call_tool_with_chaining,
)

from ..kit.words import MODES
from .scripts import ECHO, relay, say, texts, tools
from .support import Peer, connect, stdio_server

pytestmark = pytest.mark.anyio


async def test_a_chain_of_three(peer: Peer) -> None:
    third = relay("three")
    second = relay("two", third)
    chain = await call_tool_with_chaining(peer.client, "relay", say("one", second))

    assert chain.outcome is Outcome.COMPLETED
    assert chain.pending is None
    assert [(step.level, step.tool, step.arguments) for step in chain.steps] == [
        (1, "relay", say("one", second)),
        (2, "relay", second["arguments"]),
        (3, "relay", third["arguments"]),
    ]
    assert [step.result.structured_content for step in chain.steps] == [
        {"said": "one"},
        {"said": "two"},
        {"said": "three"},
    ]
    assert texts(chain) == ["one", "two", "three"]
    assert [(made.tool, made.arguments, made.fate) for made in chain.follow_ups] == [
        (step.tool, step.arguments, Fate.MADE) for step in chain.steps[1:]
    ]
    assert not any(step.deprecated_alias for step in chain.steps)
    assert await peer.called() == [(step.tool, step.arguments) for step in chain.steps]


async def test_arguments_are_passed_on_exactly(peer: Peer) -> None:
    arguments = {
        "z": 1,
        "a": 1.0,
        "large": 2**53 + 1,
        "small": 1e-9,
        "null": None,
        "flag": False,
        "empty": {"": [], "object": {}, "text": ""},
        "text": 'é锁🔒 "quoted" \\ \n\t\u2028',
        "nested": [[1, [2.5, {"deep": [None]}]]],
        "number as text": "1",
    }
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", {"tool": "echo", "arguments": arguments})
    )

    assert tools(chain) == ["relay", "echo"]
    assert json.dumps(chain.steps[1].arguments) == json.dumps(arguments)
    assert (await peer.calls())[1]["arguments"] == json.dumps(arguments)


async def test_absent_arguments_are_the_empty_object(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", ECHO))

    assert chain.steps[1].arguments == {}
    assert (await peer.calls())[1]["arguments"] == "{}"


async def test_a_directive_on_an_error_result_is_followed(peer: Peer) -> None:
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("expired", relay("again", ECHO, error=True), error=True)
    )

    assert chain.outcome is Outcome.COMPLETED
    assert [step.result.is_error for step in chain.steps] == [True, True, False]
    assert texts(chain) == ["expired", "again", "echo"]
    assert not chain.merged().is_error


async def test_a_tool_on_the_second_page_is_found(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": "far"}))

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["relay", "far"])


async def test_a_tool_that_was_added_meanwhile_is_found(peer: Peer) -> None:
    catalog = ToolCatalog(peer.client)
    assert "late" not in [tool.name for tool in await catalog.list()]
    chain = await call_tool_with_chaining(peer.client, "grow", catalog=catalog)

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["grow", "late"])


async def test_a_question_inside_a_step_is_answered_and_not_counted(peer: Peer) -> None:
    asking = {"tool": "ask", "arguments": {"next": ECHO}}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", asking), limit=3)

    assert chain.outcome is Outcome.COMPLETED
    assert [(step.level, step.tool) for step in chain.steps] == [
        (1, "relay"),
        (2, "ask"),
        (3, "echo"),
    ]
    assert texts(chain) == ["x", 'accept {"ok": true}', "echo"]
    assert peer.questions == ["Go on?"]
    # The interim result of 2026-07-28 named `echo` too, with other arguments; that one is void.
    calls = await peer.called()
    assert [name for name, _ in calls] == ["relay", "ask", "echo"]
    assert calls[2] == ("echo", {})


async def test_a_question_in_the_first_call(peer: Peer) -> None:
    async def decline(_: str) -> ElicitResult:
        return ElicitResult(action="decline")

    peer.answer = decline
    chain = await call_tool_with_chaining(peer.client, "ask", {}, limit=1)

    assert (chain.outcome, texts(chain)) == (Outcome.COMPLETED, ["decline null"])


async def test_a_first_call_that_fails(peer: Peer) -> None:
    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(peer.client, "crash")

    result = failure.value.result
    assert isinstance(failure.value.__cause__, MCPError)
    assert (result.outcome, result.steps, result.content) == (Outcome.FAILED, (), [])
    assert "'crash' (call 1)" in result.detail
    assert str(failure.value) == result.detail
    with pytest.raises(ValueError, match="no call"):
        result.merged()


async def test_a_call_that_fails_in_the_middle_keeps_the_steps(peer: Peer) -> None:
    told: list[Step] = []
    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(
            peer.client, "relay", say("one", relay("two", {"tool": "crash"})), on_step=told.append
        )

    result = failure.value.result
    assert result.outcome is Outcome.FAILED
    assert tools(result) == ["relay", "relay"]
    assert texts(result) == ["one", "two"]
    assert tuple(told) == result.steps
    assert "'crash' (call 3)" in result.detail
    assert [made.fate for made in result.follow_ups] == [Fate.MADE, Fate.UNKNOWN]
    assert [call["tool"] for call in await peer.calls()] == ["relay", "relay", "crash"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_dies_in_the_middle(mode: str) -> None:
    async with connect(stdio_server("scripted"), "stdio", mode) as peer:
        with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
            await call_tool_with_chaining(peer.client, "relay", say("said", {"tool": "exit"}))

    assert texts(failure.value.result) == ["said"]
    assert isinstance(failure.value.__cause__, MCPError)


async def test_a_call_that_takes_too_long(peer: Peer) -> None:
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await call_tool_with_chaining(peer.client, "hang", call_timeout=0.05)

    result = failure.value.result
    assert isinstance(failure.value.__cause__, MCPError)
    assert (result.outcome, result.steps) == (Outcome.FAILED, ())
    assert "'hang' (call 1)" in result.detail
    # The connection is as good as before.
    assert (await call_tool_with_chaining(peer.client, "echo")).outcome is Outcome.COMPLETED


async def test_a_chain_that_takes_too_long(peer: Peer) -> None:
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await call_tool_with_chaining(peer.client, "hang", total_timeout=0.05)

    assert isinstance(failure.value.__cause__, TimeoutError)
    assert "time allowed" in failure.value.result.detail
    assert (await call_tool_with_chaining(peer.client, "echo")).outcome is Outcome.COMPLETED


async def test_the_total_time_includes_questions_to_the_user(peer: Peer) -> None:
    released = anyio.Event()

    async def think(_: str) -> ElicitResult:
        await released.wait()
        return ElicitResult(action="cancel")

    peer.answer = think
    with pytest.raises(ChainFailed) as failure, anyio.fail_after(60):
        await call_tool_with_chaining(peer.client, "ask", {"next": ECHO}, total_timeout=0.2)
    released.set()

    assert isinstance(failure.value.__cause__, TimeoutError)
    assert all(call["tool"] != "echo" for call in await peer.calls())


async def test_cancelled_during_a_call_it_makes_no_other(peer: Peer) -> None:
    asked, released = anyio.Event(), anyio.Event()
    told: list[str] = []
    ended: list[object] = []

    async def think(_: str) -> ElicitResult:
        asked.set()
        await released.wait()
        return ElicitResult(action="accept", content={"ok": True})

    async def chain() -> None:
        asking = {"tool": "ask", "arguments": {"next": ECHO}}
        try:
            await call_tool_with_chaining(
                peer.client,
                "relay",
                say("x", asking),
                on_step=lambda step: told.append(step.tool),
            )
        except BaseException as error:
            ended.append(error)
            raise

    peer.answer = think
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(chain)
            await asked.wait()
            group.cancel_scope.cancel()
    released.set()

    assert told == ["relay"]
    [error] = ended
    assert isinstance(error, anyio.get_cancelled_exc_class())
    assert [call["tool"] for call in await peer.calls()] == ["relay", "ask"]


async def test_the_server_can_see_which_calls_belong_together(peer: Peer) -> None:
    chains = [
        await call_tool_with_chaining(peer.client, "grow"),
        await call_tool_with_chaining(
            peer.client, "relay", say("x", {"tool": "ask", "arguments": {"next": ECHO}})
        ),
    ]

    seen = [call["provenance"] for call in await peer.calls()]
    one, two = (chain.chain_id for chain in chains)
    assert one != two
    assert seen == [
        {"chain_id": one, "level": 1, "previous_tool": None},
        {"chain_id": one, "level": 2, "previous_tool": "grow"},
        {"chain_id": two, "level": 1, "previous_tool": None},
        {"chain_id": two, "level": 2, "previous_tool": "relay"},
        {"chain_id": two, "level": 3, "previous_tool": "ask"},
    ]


async def test_the_callers_meta_is_kept_on_every_request(peer: Peer) -> None:
    mine = {"trace": {"id": "t-1"}}
    await call_tool_with_chaining(peer.client, "relay", say("x", ECHO), meta=mine)

    calls = await peer.calls()
    assert [call["meta"].get("trace") for call in calls] == [{"id": "t-1"}] * 2
    assert [call["provenance"]["level"] for call in calls] == [1, 2]
    assert mine == {"trace": {"id": "t-1"}}
