"""The record of doubt: what a later chain might repeat, and what ends the doubt (TC-C-55)."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolResult

from tool_chaining import (
    IDENTIFIER,
    CallRefused,
    ChainResult,
    Conversation,
    Follower,
    FollowUpStatus,
    Outcome,
    TrustHints,
)
from tool_chaining.conversation import MAX_DOUBTS, CallKey

from .support import FakeClient, Noting, result, tool

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

ADDS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
ONCE = {**ADDS, "idempotentHint": True}
FAILS = result("The back end did not answer.", error=True)
A_DAY = 24 * 3600.0

Answer = CallToolResult | dict[str, Any] | Exception


class Bank:
    """`prepare` names `pay`, with a new id each time; `pay` answers as it is told to."""

    def __init__(self, *answers: Answer, hints: Any = ADDS) -> None:
        self.paid: list[dict[str, Any]] = []
        self.answers = [*answers]
        self.client = FakeClient([tool("pay", annotations=hints)], self.answer)
        # The revision that has tasks.
        self.client.protocol_version = "2025-11-25"
        self.client.server_capabilities = {"experimental": {IDENTIFIER: {}}}
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
        self.paid.append(arguments)
        answer = self.answers.pop(0) if self.answers else result("paid")
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
        ({"task": {"taskId": "t"}}, ADDS, False, True),
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


async def test_the_error_of_a_first_call_is_the_models_own_affair() -> None:
    bank = Bank(FAILS)
    await bank.follower.call_tool("pay", {"to": "Cid"})
    assert not bank.follower.conversation.doubts("pay", CallKey.of("pay", {"to": "Cid"}))


@pytest.mark.parametrize("answer", [result("paid"), MCPError(HEADER_MISMATCH, "again")])
async def test_a_persons_yes_ends_the_doubt_once_the_call_was_sent(answer: Answer) -> None:
    bank = Bank(LOST, answer)
    person = Noting(True, again=True)
    for _ in range(3):
        await bank.prepare(consent=person)
    last = "allows" if isinstance(answer, CallToolResult) else "allows_again"
    assert [question for question, _ in person.asked] == ["allows", "allows_again", last]


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


def test_the_record_is_bounded() -> None:
    conversation = Conversation()
    for number in range(MAX_DOUBTS + 5):
        with conversation.call(CallKey("pay", str(number)), CallKey("prepare", "")):
            pass
    assert len(conversation.doubts("pay", CallKey("prepare", ""))) == MAX_DOUBTS


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
    ended: list[str] = []

    async def prepare() -> None:
        ended.append((await bank.prepare(consent=person)).outcome)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(prepare)
            group.start_soon(prepare)
    assert sorted(ended) == ["declined", "failed"]
    assert [question for question, _ in person.asked] == ["allows", "allows", "allows_again"]
    assert len(bank.paid) == 1


async def test_the_error_of_a_chain_is_the_clients_own() -> None:
    refusal = CallRefused()
    refusal.__cause__ = MCPError(-32603, "Server returned an error response")
    chain = await Bank(refusal).prepare()
    assert isinstance(chain.error, MCPError)
    assert [each.status for each in chain.follow_ups] == [FollowUpStatus.NOT_MADE]
