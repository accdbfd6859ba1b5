"""What a host is told and asked while its chain runs, and what is left if something fails.

The rules of following are in `test_follower`; on the wire, the client suite has them.
"""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult

from tool_chaining import (
    META_KEY,
    ChainResult,
    Outcome,
    Proposal,
)

from .support import FakeClient, follow, result, texts, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

TOOLS = [
    *(tool(name) for name in ("a", "b", "c")),
    tool("destroy", annotations={"destructiveHint": True}),
]


def following(*directives: Any) -> FakeClient:
    """A client whose calls bring these directives, one after another, and then none."""

    def answer(name: str, _: Any) -> CallToolResult:
        made = len(client.calls) - 1
        meta = {META_KEY: directives[made]} if made < len(directives) else {}
        return result(name, **meta)

    client = FakeClient(TOOLS, answer)
    return client


B, C = {"tool": "b"}, {"tool": "c"}


class Policy:
    """A host's own policy, which writes down what it was asked."""

    def __init__(self, allows: Callable[[Proposal], bool]) -> None:
        self.asked: list[tuple[str, dict[str, Any], int, str]] = []
        self.decide = allows

    async def allows(self, proposal: Proposal) -> bool:
        name, arguments = proposal.tool.name, proposal.arguments
        self.asked.append((name, arguments, proposal.level, proposal.previous_tool))
        return self.decide(proposal)


async def test_a_limit_below_one_is_refused_before_any_call() -> None:
    client = following()
    with pytest.raises(ValueError, match="at least 1"):
        await follow(client, "a", limit=0)

    assert client.calls == []


async def test_a_proposal_is_told_before_consent_is_asked_for() -> None:
    happened: list[tuple[str, str, int]] = []

    def asked(proposal: Proposal) -> bool:
        happened.append(("asked", proposal.tool.name, proposal.level))
        return proposal.tool.name != "destroy"

    async def proposed(proposal: Proposal) -> None:
        await anyio.lowlevel.checkpoint()
        assert proposal.title == ("Clear the desk" if proposal.tool.name == "destroy" else None)
        happened.append(("proposed", proposal.tool.name, proposal.level))

    policy = Policy(asked)
    last = {"tool": "destroy", "arguments": {"all": True}, "title": "Clear the desk"}
    chain = await follow(
        following(B, last),
        "a",
        consent=policy,
        on_proposal=proposed,
        on_step=lambda step: happened.append(("step", step.tool, step.level)),
    )

    assert chain.outcome is Outcome.DECLINED
    assert policy.asked == [("b", {}, 2, "a"), ("destroy", {"all": True}, 3, "b")]
    assert happened == [
        ("step", "a", 1),
        ("proposed", "b", 2),
        ("asked", "b", 2),
        ("step", "b", 2),
        ("proposed", "destroy", 3),
        ("asked", "destroy", 3),
    ]


def broken(_: Any) -> bool:
    raise LookupError("no policy today")


@pytest.mark.parametrize("asked", [{"consent": Policy(broken)}, {"on_step": broken}])
async def test_a_host_that_raises_fails_the_chain_and_hides_nothing(asked: Any) -> None:
    client = following(B)
    chain = await follow(client, "a", **asked)

    assert isinstance(chain.error, LookupError)
    with pytest.raises(LookupError, match="no policy today"):
        chain.raise_for_failure()
    assert (chain.outcome, texts(chain)) == (Outcome.FAILED, ["a"])
    assert "no policy today" in chain.detail
    assert chain.unfinished is not None
    assert len(client.calls) == 1


async def test_cancelled_between_two_calls_it_makes_no_other() -> None:
    client = following(B)
    with anyio.CancelScope() as scope:
        await follow(client, "a", on_step=lambda _: scope.cancel())
        pytest.fail("the chain outlived its cancellation")

    assert scope.cancelled_caught
    assert client.calls == [("a", {})]


async def test_what_happens_after_the_last_result_changes_no_outcome() -> None:
    ended: list[ChainResult] = []
    with anyio.CancelScope() as scope:
        await follow(following(), "a", on_step=lambda _: scope.cancel(), on_end=ended.append)
    assert [chain.outcome for chain in ended] == [Outcome.COMPLETED]
