"""The flow that must work exactly: a locked account names the handoff.

The chain to its end, over stdio and HTTP: `tests/server`.
"""

from typing import Any

import pytest
from mcp.types import TextContent

from tool_chaining import CLIENT_EXTENSION

from ..kit.bank import World, audiences, facts, next_tool, words
from ..kit.words import (
    EURO,
    FOREIGN,
    HANDOFF,
    LOCKED,
    LOCKED_REASON,
    LOCKED_TEXT,
    PREPARE,
    SAVINGS,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

DIRECTIVE = {"tool": HANDOFF, "arguments": {"reason": LOCKED_REASON}}


def is_locked_answer(result: Any) -> None:
    assert result.is_error is False
    first = result.content[0]
    assert isinstance(first, TextContent)
    assert first.text == LOCKED_TEXT
    assert audiences(first) == ["user"]
    assert facts(result) == {
        "status": "account_locked",
        "accountId": LOCKED,
        "accountName": "Primary Checking",
    }
    assert next_tool(result) == DIRECTIVE


@pytest.mark.only_on("sqlite", "postgresql")
async def test_a_declared_client_gets_the_text_and_the_directive_word_for_word(
    world: World, mode: str
) -> None:
    before = world.stored()
    async with world.customer(mode=mode, extensions=[CLIENT_EXTENSION]) as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, toAccountId=SAVINGS, amount=100)

    is_locked_answer(result)
    assert len(result.content) == 1
    assert {key for key in result.meta or {} if not key.startswith("io.modelcontextprotocol/")} == {
        "nextTool"
    }
    assert world.stored() == before
    assert world.events() == [
        {
            "customer_id": "CUST001",
            "tool": PREPARE,
            "outcome": "account_locked",
            "subject": LOCKED,
            "chain_id": None,
            "chain_level": None,
            "chain_previous_tool": None,
        }
    ]


@pytest.mark.parametrize("can_be_asked", [False, True])
async def test_a_locked_account_is_answered_without_a_question(
    world: World, mode: str, can_be_asked: bool
) -> None:
    """The to-account is missing, yet nobody asks for it: `Customer` fails on a question."""
    async with world.customer(mode=mode, can_be_asked=can_be_asked) as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, amount=100)
        assert customer.asked == []
    is_locked_answer(result)
    # This client does not say that it follows directives, so its model is told in words.
    assert [audiences(block) for block in result.content] == [["user"], ["assistant"]]
    said = words(result, "assistant")
    assert HANDOFF in said
    assert LOCKED_REASON in said


REST: list[dict[str, Any]] = [
    {"amount": 5_250_750},
    *({"amount": 5, "toAccountId": to} for to in ("acc_nowhere", FOREIGN, LOCKED, EURO, "")),
    *({"amount": 5, "scheduledDate": on} for on in ("yesterday", "2020-01-01")),
    *({"amount": 5, "memo": memo} for memo in ("x" * 1_000_000, "a\x00b", "\ud800")),
]


async def test_a_locked_account_takes_precedence_over_other_refusals(world: World) -> None:
    before = world.stored()
    async with world.customer() as customer:
        for rest in REST:
            is_locked_answer(await customer.call(PREPARE, fromAccountId=LOCKED, **rest))
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "account_locked")] * len(REST)


@pytest.mark.parametrize("amount", [0, -5, 19.999, 10**400, "5", None])
async def test_an_invalid_amount_takes_precedence_over_a_locked_account(
    world: World, amount: Any
) -> None:
    async with world.customer() as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, amount=amount)
    assert result.is_error
    assert "nextTool" not in result.meta
    assert words(result).startswith("amount: ")
