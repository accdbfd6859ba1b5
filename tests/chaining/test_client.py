"""The client half against a real server, in memory and in both eras.

The scripted server says whatever its arguments tell it to; see `chain_server.Script`. What a
transport can change is in `test_client_transports`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from banking_server.chaining import (
    CLIENT_EXTENSION,
    ChainFailed,
    Outcome,
    Proposal,
    Step,
    ToolCatalog,
    call_tool_with_chaining,
)
from banking_server.chaining import client as follower

from ..kit.words import MODES
from .chain_server import build
from .scripts import ECHO, relay, say, texts, tools
from .support import Peer, connect

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=MODES)
async def connected(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Peer]:
    """One connection to the scripted server for all tests of this module, without a transport."""
    async with connect(
        build("scripted"), "memory", request.param, extensions=[CLIENT_EXTENSION]
    ) as peer:
        yield peer


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


@pytest.mark.parametrize(
    "name", ["destroy", "app_only", "bare", "typed", "remote_schema", "nowhere"]
)
async def test_the_first_call_is_the_callers_own_choice(peer: Peer, name: str) -> None:
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


async def test_of_a_long_name_the_beginning_is_told(peer: Peer) -> None:
    chain = await call_tool_with_chaining(peer.client, "relay", say("x", {"tool": "n" * 5_000}))

    assert chain.outcome is Outcome.UNKNOWN_TOOL
    assert f"{'n' * 127}\u2026" in chain.detail
    assert len(chain.detail) < 250


async def test_results_that_take_too_much_room_end_the_chain(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "MAX_KEPT", 6_000)
    policy = Policy(lambda _: True)
    chain = await call_tool_with_chaining(
        peer.client, "relay", say("x", relay("y" * 4_000, relay("z"))), consent=policy
    )

    assert (chain.outcome, texts(chain)) == (Outcome.DECLINED, ["x", "y" * 4_000])
    assert "the results so far have more than 6,000 characters" in chain.detail
    assert (chain.pending is not None, len(policy.asked)) == (True, 1)


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


async def test_a_proposal_is_told_before_consent_is_asked_for(peer: Peer) -> None:
    happened: list[tuple[str, str, int]] = []

    def asked(proposal: Proposal) -> bool:
        happened.append(("asked", proposal.tool.name, proposal.level))
        return proposal.tool.name != "destroy"

    async def proposed(proposal: Proposal) -> None:
        await anyio.lowlevel.checkpoint()
        happened.append(("proposed", proposal.tool.name, proposal.level))

    chain = await call_tool_with_chaining(
        peer.client,
        "relay",
        say("x", relay("y", {"tool": "destroy"})),
        consent=Policy(asked),
        on_proposal=proposed,
        on_step=lambda step: happened.append(("step", step.tool, step.level)),
    )

    assert chain.outcome is Outcome.DECLINED
    assert happened == [
        ("step", "relay", 1),
        ("proposed", "relay", 2),
        ("asked", "relay", 2),
        ("step", "relay", 2),
        ("proposed", "destroy", 3),
        ("asked", "destroy", 3),
    ]


@pytest.mark.parametrize(
    "directive",
    [{"tool": "nowhere"}, {"tool": "typed"}, {"tool": "app_only"}, {"name": 5}],
    ids=["unknown", "invalid", "hidden", "malformed"],
)
async def test_a_call_that_cannot_be_made_is_not_proposed(
    peer: Peer, directive: dict[str, Any]
) -> None:
    told: list[Proposal] = []
    await call_tool_with_chaining(
        peer.client, "relay", say("x", relay("x", directive)), on_proposal=told.append
    )

    assert [proposal.tool.name for proposal in told] == ["relay"]


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


async def test_cancelled_between_two_calls_it_makes_no_other(peer: Peer) -> None:
    # With the list at hand, nothing between the two calls has to wait for the server.
    catalog = ToolCatalog(peer.client)
    await catalog.list()
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
