"""The client half against a real server, over every transport and in both eras.

The scripted server says whatever its arguments tell it to; see `chain_server.Script`.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, TextContent

from banking_server.chaining import (
    ChainFailed,
    ChainResult,
    Outcome,
    Proposal,
    Step,
    ToolCatalog,
    call_tool_with_chaining,
)

from ..kit.words import MODES
from .support import Peer, connect, stdio_server

pytestmark = pytest.mark.anyio

ECHO = {"tool": "echo"}


def say(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    """Arguments of `relay`: say the text, and send `then` as the directive."""
    return {"say": text, **({} if then is None else {"next": then}), **more}


def relay(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    """A directive to `relay`."""
    return {"tool": "relay", "arguments": say(text, then, **more)}


def texts(chain: ChainResult) -> list[str]:
    return [block.text for block in chain.content if isinstance(block, TextContent)]


def tools(chain: ChainResult) -> list[str]:
    return [step.tool for step in chain.steps]


async def test_no_directive_completes_the_chain(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("alone"))

    assert chain.outcome is Outcome.COMPLETED
    assert chain.pending is None
    assert [(step.level, step.tool, step.arguments) for step in chain.steps] == [
        (1, "relay", {"say": "alone"})
    ]
    assert texts(chain) == ["alone"]
    assert chain.merged() == chain.steps[0].result
    assert await peer.called() == [("relay", {"say": "alone"})]


async def test_the_first_call_needs_no_arguments(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "echo")

    assert chain.steps[0].arguments == {}
    assert await peer.called() == [("echo", {})]


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
    merged = chain.merged()
    assert merged.content == chain.content
    assert merged.structured_content == {"said": "three"}
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


async def test_unknown_members_of_a_directive_change_nothing(peer: Peer) -> None:
    directive = {"tool": "echo", "arguments": {"a": 1}, "when": "now", "then": ECHO}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", directive))

    assert chain.outcome is Outcome.COMPLETED
    assert (await peer.called())[1:] == [("echo", {"a": 1})]


@pytest.mark.parametrize("limit", [1, 5, 7])
async def test_the_limit_counts_the_first_call(peer: Peer, limit: int) -> None:
    chain = await call_tool_with_chaining(peer.client, "count", {"n": 1}, limit=limit)

    assert chain.outcome is Outcome.LIMIT_REACHED
    assert [step.level for step in chain.steps] == list(range(1, limit + 1))
    assert chain.pending is not None
    assert (chain.pending.tool, chain.pending.arguments) == ("count", {"n": limit + 1})
    assert str(limit) in chain.detail
    assert "'count'" in chain.detail
    assert await peer.called() == [("count", {"n": n}) for n in range(1, limit + 1)]


async def test_the_limit_is_five_unless_said_otherwise(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "count", {"n": 1})

    assert (chain.outcome, len(chain.steps)) == (Outcome.LIMIT_REACHED, 5)
    assert len(await peer.calls()) == 5


async def test_a_chain_that_ends_at_the_limit_is_complete(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", ECHO), limit=2)

    assert (chain.outcome, len(chain.steps)) == (Outcome.COMPLETED, 2)


async def test_the_limit_comes_before_the_other_rules(peer: Peer) -> None:
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", {"tool": "nowhere"}), limit=1
    )

    assert chain.outcome is Outcome.LIMIT_REACHED


async def test_a_malformed_directive_comes_before_the_limit(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", 5), limit=1)

    assert chain.outcome is Outcome.MALFORMED_DIRECTIVE


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_refused_before_any_call(peer: Peer, limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await call_tool_with_chaining(peer.client, "echo", limit=limit)

    assert await peer.calls() == []


async def test_a_cycle_ends_before_its_first_repetition(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "ping", limit=50)

    assert chain.outcome is Outcome.CYCLE
    assert chain.pending is not None
    assert chain.pending.tool == "ping"
    assert await peer.called() == [("ping", {}), ("pong", {})]


async def test_one_and_one_point_nought_are_the_same_number(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "spin", {"n": 1}, limit=50)

    assert chain.outcome is Outcome.CYCLE
    assert await peer.called() == [("spin", {"n": 1})]


async def test_the_same_tool_with_new_arguments_is_no_cycle(peer: Peer) -> None:
    first = {"tool": "echo", "arguments": {"a": [1, 2]}}
    assert (
        await call_tool_with_chaining(
            peer.client, "relay", say("a", relay("b", relay("c", relay("d", first))))
        )
    ).outcome is Outcome.COMPLETED
    chain = await call_tool_with_chaining(peer.client, "relay", say("1", relay("2", relay("1"))))

    assert chain.outcome is Outcome.COMPLETED
    assert len(chain.steps) == 3


async def test_a_cycle_is_of_one_chain_only(peer: Peer) -> None:
    for _ in range(2):
        chain = await call_tool_with_chaining(peer.client, "relay", say("x", ECHO))
        assert chain.outcome is Outcome.COMPLETED


async def test_a_directive_on_an_error_result_is_followed(peer: Peer) -> None:
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("expired", relay("again", ECHO, error=True), error=True)
    )

    assert chain.outcome is Outcome.COMPLETED
    assert [step.result.is_error for step in chain.steps] == [True, True, False]
    assert texts(chain) == ["expired", "again", "echo"]
    assert not chain.merged().is_error


async def test_an_error_result_without_directive_completes_the_chain(peer: Peer) -> None:
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", relay("failed", error=True))
    )

    assert (chain.outcome, len(chain.steps)) == (Outcome.COMPLETED, 2)
    assert chain.merged().is_error


async def test_the_alias_is_followed_and_noted(peer: Peer) -> None:
    aliased = {"name": "relay", "arguments": say("y", {**ECHO, "name": "echo"})}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", relay("w", aliased)))

    assert chain.outcome is Outcome.COMPLETED
    assert [step.deprecated_alias for step in chain.steps] == [False, False, True, True]


@pytest.mark.parametrize(
    "value",
    [
        {"tool": "echo", "name": "relay"},
        "echo",
        {"tool": ["echo"]},
        {"tool": "echo", "arguments": None},
    ],
)
async def test_a_malformed_directive_ends_the_chain(peer: Peer, value: Any) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("w", relay("x", value)))

    assert chain.outcome is Outcome.MALFORMED_DIRECTIVE
    assert chain.detail.startswith("nextTool")
    assert chain.pending is None
    assert texts(chain) == ["w", "x"]
    assert len(await peer.calls()) == 2


@pytest.mark.parametrize("name", ["nowhere", "Echo"])
async def test_an_unknown_tool_is_not_called(peer: Peer, name: str) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": name}))

    assert chain.outcome is Outcome.UNKNOWN_TOOL
    assert repr(name) in chain.detail
    assert chain.pending is not None
    assert chain.pending.tool == name
    assert len(await peer.calls()) == 1


async def test_a_tool_on_the_second_page_is_found(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": "far"}))

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["relay", "far"])


async def test_a_tool_that_was_added_meanwhile_is_found(peer: Peer) -> None:
    catalog = ToolCatalog(peer.client)
    assert await catalog.find("far") is not None
    chain = await call_tool_with_chaining(peer.client, "grow", catalog=catalog)

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["grow", "late"])


@pytest.mark.parametrize(
    "arguments",
    [{}, {"account": 5}, {"account": "acc_1", "typo": 1}],
)
async def test_invalid_arguments_are_not_sent(peer: Peer, arguments: dict[str, Any]) -> None:
    directive = {"tool": "typed", "arguments": arguments}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", directive))

    assert chain.outcome is Outcome.INVALID_ARGUMENTS
    assert "'typed'" in chain.detail
    assert chain.pending is not None
    assert chain.pending.arguments == arguments
    assert len(await peer.calls()) == 1


async def test_valid_arguments_are_sent(peer: Peer) -> None:
    directive = {"tool": "typed", "arguments": {"account": "acc_1"}}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", directive))

    assert (chain.outcome, len(chain.steps)) == (Outcome.COMPLETED, 2)


async def test_arguments_that_nobody_can_check_are_not_sent(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": "remote_schema"}))

    assert chain.outcome is Outcome.INVALID_ARGUMENTS
    assert "schemas.invalid" in chain.detail
    assert len(await peer.calls()) == 1


async def test_the_first_call_is_the_callers_own_choice(peer: Peer) -> None:
    for name in ("destroy", "app_only", "bare", "typed", "remote_schema", "nowhere"):
        chain = await call_tool_with_chaining(peer.client, name, {"a": 1})
        assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, [name])


@pytest.mark.parametrize("name", ["bare", "untold", "writes", "destroy"])
async def test_what_may_destroy_is_declined(peer: Peer, name: str) -> None:
    directive = {"tool": name, "arguments": {"a": 1}}
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", directive))

    assert chain.outcome is Outcome.DECLINED
    assert repr(name) in chain.detail
    assert chain.pending is not None
    assert chain.pending.to_wire() == directive
    assert len(await peer.calls()) == 1


@pytest.mark.parametrize("name", ["gentle", "app_and_model"])
async def test_what_destroys_nothing_is_followed(peer: Peer, name: str) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": name}))

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["relay", name])


class Policy:
    """A host's own policy, which writes down what it was asked."""

    def __init__(self, allows: Callable[[Proposal], Awaitable[bool] | bool]) -> None:
        self.asked: list[tuple[str, dict[str, Any], int, str]] = []
        self.decide = allows

    async def allows(self, proposal: Proposal) -> bool:
        self.asked.append(
            (proposal.tool.name, proposal.arguments, proposal.level, proposal.previous_tool)
        )
        decision = self.decide(proposal)
        return decision if isinstance(decision, bool) else await decision


async def test_a_hidden_tool_is_declined_whatever_the_policy(peer: Peer) -> None:
    policy = Policy(lambda _: True)
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", {"tool": "app_only"}), consent=policy
    )

    assert chain.outcome is Outcome.DECLINED
    assert policy.asked == []
    assert len(await peer.calls()) == 1


async def test_a_policy_is_asked_before_each_follow_up(peer: Peer) -> None:
    policy = Policy(lambda proposal: proposal.tool.name != "erase")
    destroy_last = relay("y", {"tool": "erase", "arguments": {"all": True}})
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", destroy_last), consent=policy
    )

    assert chain.outcome is Outcome.DECLINED
    assert policy.asked == [
        ("relay", destroy_last["arguments"], 2, "relay"),
        ("erase", {"all": True}, 3, "relay"),
    ]
    assert len(await peer.calls()) == 2


async def test_a_policy_may_allow_what_the_default_declines(peer: Peer) -> None:
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", {"tool": "destroy"}), consent=Policy(lambda _: True)
    )

    assert (chain.outcome, tools(chain)) == (Outcome.COMPLETED, ["relay", "destroy"])


async def test_a_policy_that_raises_fails_the_chain_and_hides_nothing(peer: Peer) -> None:
    def broken(_: Proposal) -> bool:
        raise LookupError("no policy today")

    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(peer.client, "relay", say("x", ECHO), consent=Policy(broken))

    assert isinstance(failure.value.__cause__, LookupError)
    result = failure.value.result
    assert (result.outcome, texts(result)) == (Outcome.FAILED, ["x"])
    assert "no policy today" in result.detail
    assert "'echo'" in result.detail
    assert result.pending is not None
    assert result.pending.tool == "echo"
    assert len(await peer.calls()) == 1


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


@pytest.mark.parametrize(
    ("name", "cause"), [("crash", MCPError), ("misfit", RuntimeError)], ids=["error", "misfit"]
)
async def test_a_first_call_that_fails(peer: Peer, name: str, cause: type[Exception]) -> None:
    if name == "misfit":
        await peer.client.list_tools()
    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(peer.client, name)

    result = failure.value.result
    assert isinstance(failure.value.__cause__, cause)
    assert (result.outcome, result.steps, result.content) == (Outcome.FAILED, (), [])
    assert f"{name!r} (call 1)" in result.detail
    assert str(failure.value) == result.detail
    with pytest.raises(ValueError, match="no call"):
        result.merged()


@pytest.mark.parametrize("name", ["crash", "misfit"])
async def test_a_call_that_fails_in_the_middle_keeps_the_steps(peer: Peer, name: str) -> None:
    told: list[Step] = []
    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(
            peer.client, "relay", say("one", relay("two", {"tool": name})), on_step=told.append
        )

    result = failure.value.result
    assert result.outcome is Outcome.FAILED
    assert tools(result) == ["relay", "relay"]
    assert texts(result) == ["one", "two"]
    assert tuple(told) == result.steps
    assert f"{name!r} (call 3)" in result.detail
    assert result.merged().structured_content == {"said": "two"}
    assert [call["tool"] for call in await peer.calls()] == ["relay", "relay", name]


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


async def test_cancelled_between_two_calls_it_makes_no_other(peer: Peer) -> None:
    # With the list at hand, nothing between the two calls has to wait for the server.
    catalog = ToolCatalog(peer.client)
    await catalog.find("echo")
    with anyio.CancelScope() as scope:
        await call_tool_with_chaining(
            peer.client,
            "relay",
            say("x", ECHO),
            catalog=catalog,
            on_step=lambda _: scope.cancel(),
        )
        pytest.fail("the chain outlived its cancellation")

    assert scope.cancelled_caught
    assert [call["tool"] for call in await peer.calls()] == ["relay"]


async def test_a_cancelled_chain_does_not_even_begin(peer: Peer) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await call_tool_with_chaining(peer.client, "echo")

    assert await peer.calls() == []


async def test_each_step_is_told_before_the_next_call(peer: Peer) -> None:
    seen: list[tuple[int, str, int]] = []
    count = 0

    async def asynchronously(step: Step) -> None:
        nonlocal count
        await anyio.lowlevel.checkpoint()
        count += len(await peer.calls())
        seen.append((step.level, step.tool, count))

    await call_tool_with_chaining(
        peer.client, "relay", say("x", relay("y", ECHO)), on_step=asynchronously
    )

    # How many calls the server had seen each time says that none ran ahead.
    assert seen == [(1, "relay", 1), (2, "relay", 2), (3, "echo", 3)]


async def test_a_plain_function_can_be_told_too(peer: Peer) -> None:
    told: list[Step] = []
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", {"name": "echo"}), on_step=told.append
    )

    assert tuple(told) == chain.steps
    assert told[1].deprecated_alias


async def test_an_on_step_that_raises_fails_the_chain_and_hides_nothing(peer: Peer) -> None:
    def full(_: Step) -> None:
        raise OSError("disk full")

    with pytest.raises(ChainFailed) as failure:
        await call_tool_with_chaining(peer.client, "relay", say("x", ECHO), on_step=full)

    assert isinstance(failure.value.__cause__, OSError)
    assert tools(failure.value.result) == ["relay"]
    assert "on_step" in failure.value.result.detail
    assert len(await peer.calls()) == 1


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
