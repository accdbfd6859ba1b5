"""What a host is told and asked while its chain runs, and what is left if something fails.

The client suite has the rules of following.
"""

from typing import Any

import anyio
import pytest
from mcp import Client, ClientSession
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult

from tool_chaining import (
    META_KEY,
    ChainResult,
    ConsentPolicy,
    Follower,
    Outcome,
    Proposal,
    Step,
    TrustHints,
)
from tool_chaining.client import NOT_ASKED

from .support import FakeClient, Noting, follow, result, texts, tool

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


B = {"tool": "b"}


async def test_a_policy_is_asked_about_each_follow_up_after_the_step_before_it() -> None:
    happened: list[tuple[str, str, int, str | None]] = []

    def asked(proposal: Proposal) -> bool:
        happened.append(
            (proposal.previous_tool, proposal.tool.name, proposal.level, proposal.title)
        )
        return proposal.tool.name != "destroy"

    async def told(step: Step) -> None:
        await anyio.lowlevel.checkpoint()
        happened.append(("", step.tool, step.level, step.title))

    last = {"tool": "destroy", "arguments": {"all": True}, "title": "Clear the desk"}
    chain = await follow(following(B, last), "a", consent=Noting(asked), on_step=told)

    assert chain.outcome is Outcome.DECLINED
    assert happened == [
        ("", "a", 1, None),
        ("a", "b", 2, None),
        ("", "b", 2, None),
        ("b", "destroy", 3, "Clear the desk"),
    ]


def broken(_: Any) -> Any:
    raise LookupError("no policy today")


async def test_a_policy_that_raises_fails_the_chain_and_hides_nothing() -> None:
    client = following(B)
    chain = await follow(client, "a", consent=Noting(broken))

    assert isinstance(chain.error, LookupError)
    with pytest.raises(LookupError, match="no policy today"):
        chain.raise_for_failure()
    assert (chain.outcome, texts(chain)) == (Outcome.FAILED, ["a"])
    assert "no policy today" in chain.detail
    assert chain.unfinished is not None
    assert len(client.calls) == 1


@pytest.mark.parametrize("answer", ["no", "yes", 1, None, object(), ["yes"]])
async def test_only_true_is_a_yes(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    client = following(B)
    chain = await follow(client, "a", consent=Noting(answer))
    assert chain.outcome is Outcome.DECLINED
    assert client.calls == [("a", {})]
    assert f"Noting.allows returned {type(answer).__name__}: only True is a yes" in caplog.text


@pytest.mark.parametrize("listener", ["on_step", "on_end"])
async def test_a_listener_that_raises_is_logged_and_changes_nothing(
    listener: str, caplog: pytest.LogCaptureFixture
) -> None:
    chain = await follow(following(B), "a", **{listener: broken})
    assert (chain.outcome, len(chain.steps)) == (Outcome.COMPLETED, 2)
    assert "no policy today" in caplog.text
    with anyio.CancelScope() as scope:
        stop = {"on_step": lambda _: scope.cancel(), listener: broken}
        if listener == "on_step":
            stop["consent"] = Noting(lambda _: scope.cancel())
        await follow(following(B), "a", **stop)
    assert scope.cancelled_caught


class Misspelt(ConsentPolicy):
    async def allow(self, proposal: Proposal) -> bool:
        return True


@pytest.mark.parametrize(
    ("client", "options", "problem"),
    [
        (object(), {}, "object has no protocol_version, server_capabilities, call_tool, list_t"),
        (ClientSession.__new__(ClientSession), {}, r"use mcp\.Client, or with mcp 1\.x"),
        (following(), {"consent": lambda _: True}, "consent must be a tool_chaining.ConsentPolicy"),
        (following(), {"consent": TrustHints}, "not TrustHints itself: pass an instance"),
        (following(), {"rules": "rules.toml"}, r"must be tool_chaining\.rules\.Rules.*not str"),
        (following(), {"limit": 0}, "at least 1"),
    ],
)
def test_a_wrong_client_policy_or_option_is_refused_before_any_call(
    client: Any, options: Any, problem: str
) -> None:
    with pytest.raises(ValueError if "limit" in options else TypeError, match=problem):
        Follower(client, **options)


async def test_a_client_that_is_not_connected_yet_fits_and_a_misspelt_policy_fails() -> None:
    Follower(Client(MCPServer("later")))
    assert (await follow(following(B), "a", consent=Misspelt())).outcome is Outcome.FAILED


async def test_arguments_that_are_no_object_are_named_as_such() -> None:
    with pytest.raises(TypeError, match="arguments must be a dict, not list"):
        await follow(following(), "a", [1])


async def test_a_server_that_was_never_asked_is_not_followed_and_the_detail_says_so() -> None:
    client = following(B)
    client.server_capabilities = None
    chain = await follow(client, "a")
    assert (chain.outcome, chain.detail) == (Outcome.DECLINED, NOT_ASKED)


async def test_what_happens_after_the_last_result_changes_no_outcome() -> None:
    ended: list[ChainResult] = []
    with anyio.CancelScope() as scope:
        await follow(following(), "a", on_step=lambda _: scope.cancel(), on_end=ended.append)
    assert [chain.outcome for chain in ended] == [Outcome.COMPLETED]
