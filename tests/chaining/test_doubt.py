"""Calls whose effect is unknown: how many are kept, for how long, and who may make one again."""

from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult

from tool_chaining import CallsInDoubt, ChainResult, Outcome, Proposal
from tool_chaining.doubt import KEPT

from .support import FakeClient, a_names_b, follow, result, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def test_the_newest_thousand_are_kept() -> None:
    calls = CallsInDoubt()
    for n in range(KEPT):
        calls.add((f"t{n}", "{}"))
    calls.add(("t0", "{}"))  # Started again, so it is new.
    calls.add(("another", "{}"))

    kept = [("t0", "{}") in calls, ("t1", "{}") in calls, ("t2", "{}") in calls]
    assert (kept, KEPT) == ([True, False, True], 1_000)


@pytest.mark.parametrize("first", ["lost", "answered"])
async def test_of_two_calls_side_by_side_each_has_a_fate_of_its_own(first: str) -> None:
    """One is lost and one is answered, in either order; the next chain makes no such call."""
    released = {"lost": anyio.Event(), "answered": anyio.Event()}
    statuses = iter(released)

    async def b() -> CallToolResult:
        status = next(statuses)
        await released[status].wait()
        if status == "lost":
            raise ConnectionError("the line is cut")
        return result("b")

    def answer(name: str, arguments: Any) -> Any:
        return b() if name == "b" else a_names_b(name, arguments)

    async def run() -> None:
        ended.append(await follow(client, "b"))

    ended: list[ChainResult] = []
    client = FakeClient([tool("b")], answer)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(run)
            while len(client.calls) < 2:
                await anyio.lowlevel.checkpoint()
            # While they are under way, nobody knows their effect either.
            assert (await follow(client, "a")).outcome is Outcome.DECLINED
            for status in sorted(released, key=lambda status: status != first):
                released[status].set()
                await anyio.wait_all_tasks_blocked()
    chain = await follow(client, "a")

    assert {each.outcome for each in ended} == {Outcome.FAILED, Outcome.COMPLETED}
    assert chain.outcome is Outcome.DECLINED
    assert "was started before, whether it took effect is not known" in chain.detail
    assert [name for name, _ in client.calls] == ["b", "b", "a", "a"]


async def test_of_two_chains_whose_users_are_asked_side_by_side_one_makes_the_call() -> None:
    """Both users are asked before either call is started; the second yes comes too late."""
    both_asked, paid = anyio.Event(), anyio.Event()

    async def pay() -> CallToolResult:
        await paid.wait()
        return result("b")

    def answer(name: str, arguments: Any) -> Any:
        return pay() if name == "b" else a_names_b(name, arguments)

    class Person:
        """Somebody who is asked, and who agrees to no call a second time."""

        async def allows(self, proposal: Proposal) -> bool:
            asked.append(("once", proposal.tool.name))
            if len(asked) == 2:
                both_asked.set()
            await both_asked.wait()
            return True

        async def allows_again(self, proposal: Proposal) -> bool:
            asked.append(("again", proposal.tool.name))
            return False

    async def run() -> None:
        ended.append(await follow(client, "a", consent=Person()))

    asked, ended = list[tuple[str, str]](), list[ChainResult]()
    client = FakeClient([tool("b")], answer)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            paid.set()

    assert [chain.outcome for chain in ended] == [Outcome.DECLINED, Outcome.COMPLETED]
    assert asked == [("once", "b"), ("once", "b"), ("again", "b")]
    assert [name for name, _ in client.calls] == ["a", "a", "b"]
