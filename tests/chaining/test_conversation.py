"""The record of doubt: what a later chain might repeat, and what ends the doubt (TC-C-55)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolResult

from tool_chaining import (
    CallRefused,
    ChainResult,
    Conversation,
    Follower,
    FollowUpStatus,
    NobodyToAsk,
    Outcome,
    TrustHints,
)
from tool_chaining.caller import was_refused
from tool_chaining.conversation import MAX_DOUBTS, CallKey

from .support import FakeClient, Noting, never, result, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

ADDS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
ONCE = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "openWorldHint": False,
    "idempotentHint": True,
}
FAILS = result("The back end did not answer.", error=True)
A_DAY = 24 * 3600.0

Answer = CallToolResult | dict[str, Any] | Exception | Awaitable[CallToolResult]


class Bank:
    """`prepare` names `pay`, with a new id each time; `pay` answers as it is told to."""

    def __init__(self, *answers: Callable[[], Answer] | Answer, hints: Any = ADDS) -> None:
        self.paid: list[dict[str, Any]] = []
        self.answers = [*answers]
        tools = [tool("pay", annotations=hints), tool("notify", annotations=ADDS)]
        self.client = FakeClient(tools, self.answer)
        self.now = 0.0
        self.follower = Follower(
            self.client,
            consent=TrustHints(),
            conversation=Conversation(clock=lambda: self.now),
        )

    def answer(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "prepare":
            to = arguments.get("to", "Ann")
            then = {"tool": "pay", "arguments": {"to": to, "id": f"tr_{len(self.paid)}"}}
            return result("prepared", nextTool=then)
        if name == "notify":
            return never()
        self.paid.append(arguments)
        answer = self.answers.pop(0) if self.answers else result("paid")
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def prepare(self, to: str = "Ann", **changed: Any) -> ChainResult:
        return await replace(self.follower, **changed).call_tool("prepare", {"to": to})


LOST = ConnectionError("the process died")


@pytest.mark.parametrize(
    ("answer", "hints", "same", "other"),
    [
        # A lost answer counts for the whole conversation, an error only for the same wish.
        (LOST, ADDS, False, False),
        (FAILS, ADDS, False, True),
        # A second call of it does no harm, by hints that are trusted.
        (FAILS, ONCE, True, True),
        (LOST, ONCE, False, False),
        (LOST, {"readOnlyHint": True}, True, True),
        # It was refused, or was answered as it should be.
        (CallRefused("401"), ADDS, True, True),
        (MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "ask"), ADDS, True, True),
        (result("paid"), ADDS, True, True),
    ],
)
async def test_what_puts_a_call_in_doubt_and_for_whom(
    answer: Answer, hints: Any, same: bool, other: bool
) -> None:
    for to, may in (("Ann", same), ("Bob", other)):
        bank = Bank(answer, hints=hints)
        await bank.prepare("Ann")
        chain = await bank.prepare(to)
        assert len(bank.paid) == 1 + may
        assert chain.outcome is (Outcome.COMPLETED if may else Outcome.DECLINED)
        # The model is given no call that may have taken effect.
        assert may or (chain.unfinished is not None and not chain.unfinished.suggested)


async def test_a_task_is_in_doubt_for_the_same_wish_only() -> None:
    for to, may in (("Ann", False), ("Bob", True)):
        bank = Bank()
        bank.client.protocol_version = "2025-11-25"
        bank.client.server_capabilities = {"experimental": {"com.example/tool-chaining": {}}}
        bank.answers = [{"task": {"taskId": "t"}}]
        first = await bank.prepare("Ann")
        assert "it was answered with a task" in str(first.merged_json()["content"])
        assert (await bank.prepare(to)).outcome is (Outcome.COMPLETED if may else Outcome.DECLINED)


@pytest.mark.parametrize(
    ("between", "again"),
    [
        # The model calls the tool itself: only an equal call that succeeds settles it.
        (("pay", {"to": "Ann", "id": "tr_0"}), True),
        (("pay", {"to": "Bob", "id": "tr_0"}), False),
    ],
)
async def test_a_result_ends_the_doubt_about_an_equal_call_alone(between: Any, again: bool) -> None:
    bank = Bank(LOST)
    await bank.prepare()
    await bank.follower.call_tool(*between)
    chain = await bank.prepare()
    assert (chain.outcome is Outcome.COMPLETED) is again
    bank = Bank(LOST, FAILS)
    await bank.prepare()
    await bank.follower.call_tool(*between)
    assert (await bank.prepare()).outcome is Outcome.DECLINED, "an error settles nothing"


async def test_a_first_call_that_was_lost_counts_too() -> None:
    bank = Bank(LOST)
    assert (await bank.follower.call_tool("pay", {"to": "Cid"})).outcome is Outcome.FAILED
    assert (await bank.prepare()).outcome is Outcome.DECLINED


async def test_the_error_of_a_first_call_is_the_models_own_affair() -> None:
    bank = Bank(FAILS)
    await bank.follower.call_tool("pay", {"to": "Cid"})
    assert not bank.follower.conversation.doubts("pay", CallKey.of("pay", {"to": "Cid"}))


@pytest.mark.parametrize("in_doubt", [True, False])
async def test_a_call_is_suggested_only_where_nobody_could_be_asked_and_none_is_in_doubt(
    in_doubt: bool,
) -> None:
    def nobody(_: Any) -> bool:
        raise NobodyToAsk

    for policy in (None, Noting(nobody, again=nobody)):
        bank = Bank(LOST)
        if in_doubt:
            await bank.prepare()
        chain = await bank.prepare(consent=policy)
        assert chain.unfinished is not None
        assert chain.unfinished.suggested is not in_doubt
        assert ('call the tool "pay" once' in str(chain.merged_json())) is not in_doubt


@pytest.mark.parametrize("answer", [result("paid"), MCPError(HEADER_MISMATCH, "again")])
async def test_a_persons_yes_ends_the_doubt_once_the_call_was_sent(answer: Answer) -> None:
    bank = Bank(LOST, answer)
    person = Noting(True, again=True)
    for _ in range(3):
        await bank.prepare(consent=person)
    last = "allows" if isinstance(answer, CallToolResult) else "allows_again"
    assert [question for question, _ in person.asked] == ["allows", "allows_again", last]


async def test_a_person_who_may_say_no_is_asked_again_and_never_told_less() -> None:
    bank = Bank(LOST)
    for again in (False, False, True):
        await bank.prepare(consent=Noting(True, again=again))
    assert len(bank.paid) == 2


async def test_the_doubt_survives_a_new_connection_and_lasts_a_day() -> None:
    bank = Bank(LOST)
    await bank.prepare()
    old, bank.client = bank.client, FakeClient(bank.client.tools, bank.answer)
    assert old is not bank.client
    bank.follower = Follower(
        bank.client, consent=TrustHints(), conversation=bank.follower.conversation
    )
    bank.now = A_DAY - 1
    assert (await bank.prepare()).outcome is Outcome.DECLINED
    bank.now = A_DAY
    assert (await bank.prepare()).outcome is Outcome.COMPLETED


async def test_conversations_that_cannot_be_told_apart_do_not_block_each_other() -> None:
    bank = Bank(LOST)
    bank.follower.conversation = Conversation(shared=True)
    await bank.prepare("Ann")
    assert (await bank.prepare("Ann")).outcome is Outcome.DECLINED
    yes = Noting(True, again=True)
    assert (await bank.prepare("Ann", consent=yes)).outcome is Outcome.COMPLETED
    # One person's yes ends nothing for the others, and another wish is nobody's doubt.
    assert (await bank.prepare("Ann")).outcome is Outcome.DECLINED
    assert (await bank.prepare("Bob")).outcome is Outcome.COMPLETED


def test_the_record_is_bounded() -> None:
    conversation = Conversation()
    for number in range(MAX_DOUBTS + 5):
        with conversation.call(CallKey("pay", str(number)), CallKey("prepare", "")):
            pass
    assert len(conversation.doubts("pay", CallKey("prepare", ""))) == MAX_DOUBTS


async def test_a_result_that_was_not_delivered_is_not_made_again() -> None:
    """The host's own limit ends the chain during a slow third call; its model begins again."""
    bank = Bank(result("paid", nextTool={"tool": "notify"}))
    with anyio.move_on_after(0.05):
        await bank.prepare("Ann")
    assert (await bank.prepare("Ann")).outcome is Outcome.DECLINED
    assert (await bank.prepare("Bob")).outcome is Outcome.COMPLETED
    # A host that drops a result which it was given says so itself.
    bank = Bank()
    bank.follower.not_delivered(await bank.prepare("Ann"))
    assert (await bank.prepare("Ann")).outcome is Outcome.DECLINED
    assert len(bank.paid) == 1


# --- chains side by side (TC-C-57) ----------------------------------------------------------------


async def together(*chains: Callable[[], Awaitable[ChainResult]]) -> list[ChainResult]:
    ended: list[ChainResult] = []

    async def run(chain: Callable[[], Awaitable[ChainResult]]) -> None:
        ended.append(await chain())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for chain in chains:
                group.start_soon(run, chain)
    return ended


@pytest.mark.parametrize(("same", "at_once"), [(False, 5), (True, 1)])
async def test_chains_side_by_side_all_complete(same: bool, at_once: int) -> None:
    running, most = 0, 0

    async def pay() -> CallToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.wait_all_tasks_blocked()
        running -= 1
        return result("paid")

    bank = Bank(*[pay] * 5)
    ended = await together(
        *[lambda n=n: bank.prepare("Ann" if same else f"Ann {n}") for n in range(5)]
    )
    assert [chain.outcome for chain in ended] == [Outcome.COMPLETED] * 5
    assert len(bank.paid) == 5
    assert most == at_once


async def test_a_chain_that_waited_looks_at_the_record_again() -> None:
    async def lost() -> CallToolResult:
        await anyio.wait_all_tasks_blocked()
        raise LOST

    bank = Bank(lost)
    ended = await together(*[bank.prepare] * 3)
    assert sorted(chain.outcome for chain in ended) == ["declined", "declined", "failed"]
    assert len(bank.paid) == 1


async def test_somebody_who_agreed_before_the_other_call_was_lost_is_asked_again() -> None:
    both_asked = anyio.Event()
    person = Noting()

    async def agree(question: str, proposal: Any) -> bool:
        person.asked.append((question, proposal))
        if len(person.asked) == 2:
            both_asked.set()
        await both_asked.wait()
        return question == "allows"

    person._answered = agree  # type: ignore[method-assign]
    bank = Bank(LOST)
    ended = await together(*[lambda: bank.prepare(consent=person)] * 2)
    assert sorted(chain.outcome for chain in ended) == ["declined", "failed"]
    assert [question for question, _ in person.asked] == ["allows", "allows", "allows_again"]
    assert len(bank.paid) == 1


def test_only_a_refusal_proves_that_nothing_was_done() -> None:
    refused = [MCPError(code, "no") for code in (-32020, -32021, -32022)] + [CallRefused()]
    assert all(map(was_refused, refused))
    others = [MCPError(code, "no") for code in (-32601, -32602, -32603, -32042)] + [LOST]
    assert not any(map(was_refused, others))


async def test_the_error_of_a_chain_is_the_clients_own() -> None:
    def refuse() -> Exception:
        refusal = CallRefused()
        refusal.__cause__ = MCPError(-32603, "Server returned an error response")
        return refusal

    bank = Bank(refuse)
    chain = await bank.prepare()
    assert isinstance(chain.error, MCPError)
    assert [each.status for each in chain.follow_ups] == [FollowUpStatus.NOT_MADE]
