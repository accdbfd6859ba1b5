"""Tools whose last call has an unknown effect: when one is, and who may call it again."""

from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.types import HEADER_MISMATCH, CallToolResult, ToolAnnotations

from tool_chaining import CallsInDoubt, ChainResult, FollowUpStatus, Outcome, Proposal
from tool_chaining.refused import was_refused

from .support import FakeClient, a_names_b, follow, result, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def test_a_result_settles_what_was_lost_before_its_call_started() -> None:
    calls = CallsInDoubt()
    with calls.call("pay") as early:
        with calls.call("pay"):
            pass  # Lost.
        early.status = FollowUpStatus.MADE
    assert "pay" in calls, "its call started before the other was lost"
    with calls.call("pay") as refused:
        refused.status = FollowUpStatus.NOT_MADE
    assert "pay" in calls
    with calls.call("pay") as late:
        assert "look" not in calls
        late.status = FollowUpStatus.MADE
    assert "pay" not in calls


@pytest.mark.parametrize("again", [False, True])
async def test_other_arguments_and_a_new_client_do_not_end_the_doubt(again: bool) -> None:
    """The server makes a new id each time, and its process died in between."""

    class Person:
        async def allows(self, proposal: Proposal) -> bool:
            return True

        async def allows_again(self, proposal: Proposal) -> bool:
            return again

    in_doubt, paid = CallsInDoubt(), list[Any]()

    def answer(name: str, arguments: Any) -> Any:
        if name == "pay":
            paid.append(arguments["id"])
            if len(paid) == 1:
                raise ConnectionError("the process died")
            return result("paid")
        return result("prepared", nextTool={"tool": "pay", "arguments": {"id": f"tr_{len(paid)}"}})

    for _ in range(2):
        client = FakeClient([tool("pay")], answer)
        chain = await follow(client, "prepare", consent=Person(), in_doubt=in_doubt)
    assert paid == (["tr_0", "tr_1"] if again else ["tr_0"])
    assert chain.outcome is (Outcome.COMPLETED if again else Outcome.DECLINED)


@pytest.mark.parametrize("first", ["lost", "answered"])
async def test_of_two_calls_side_by_side_each_has_an_effect_of_its_own(first: str) -> None:
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
    client = FakeClient([tool("b", annotations=ToolAnnotations(destructive_hint=False))], answer)
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
    assert 'whether an earlier call of "b" took effect is not known' in chain.detail
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


@pytest.mark.parametrize(
    ("statuses", "code", "refused"),
    [
        ([401], None, True),
        ([403], None, True),
        ([400, 401], None, True),
        # The first request was lost, or brought a question: the server may have acted on it.
        ([None, 401], None, False),
        ([200, 403], None, False),
        ([200, 400], HEADER_MISMATCH, False),
        ([400], HEADER_MISMATCH, True),
        ([], HEADER_MISMATCH, True),
        ([400], None, False),
        ([], None, False),
    ],
)
def test_a_call_is_not_made_only_if_each_request_of_it_was_refused(
    statuses: list[int | None], code: int | None, refused: bool
) -> None:
    error = ConnectionError("lost") if code is None else MCPError(code, "refused")
    assert was_refused(error, statuses) is refused
