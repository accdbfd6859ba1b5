"""Prepare, confirm and cancel: the customer's own act, and exactly once."""

import logging
import re
from typing import Any

import pytest
from mcp.server.mcpserver import AcceptedElicitation
from mcp.types import CallToolResult, ElicitResult, InputRequiredResult

from banking_server.bank.rules import NoConsent
from banking_server.tools.transfers.confirm import given_consent

from ..kit.bank import (
    Customer,
    Question,
    World,
    answered,
    audiences,
    code_at_desk,
    code_of,
    everything,
    facts,
    next_tool,
    one_round,
    refused,
    structured,
    words,
)
from ..kit.words import (
    CONFIRM,
    DEPOSIT,
    EURO,
    EVERYDAY,
    LOCKED,
    PAYEE,
    PREPARE,
    RETIREMENT,
    SAVINGS,
    wrong,
)

pytestmark = pytest.mark.anyio

YES: dict[str, Any] = {"agreed": True}


async def prepared(customer: Customer, **arguments: Any) -> tuple[str, str]:
    """Prepare a transfer; return its id and code."""
    result = await customer.prepare(**arguments)
    assert not result.is_error, words(result)
    has_code = "Your confirmation code" in words(result)
    code = code_of(result) if has_code else code_at_desk(result)
    return structured(result)["transferId"], code


def status_of(world: World, transfer_id: str) -> str:
    ((status,),) = world.sql("SELECT status FROM transfer WHERE transfer_id = ?", transfer_id)
    return str(status)


# --- prepare --------------------------------------------------------------------------------------


async def test_preparing_reserves_and_gives_the_code_to_the_user(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as customer:
        result = await customer.prepare(amount=25.5, memo="Treats")
        balance = structured(await customer.call("get_account_balance", accountId=EVERYDAY))

    receipt = facts(result)
    assert receipt.pop("transferId").startswith("tr_")
    assert receipt == {
        "status": "pending",
        "fromAccountId": EVERYDAY,
        "toAccountId": SAVINGS,
        "amount": 25.5,
        "currency": "USD",
        "memo": "Treats",
        "approval": "none",
        "createdAt": "2026-03-02T10:00:00Z",
        "expiresAt": "2026-03-02T10:10:00Z",
    }
    code = code_of(result)
    holders = [block for block in result.content if code in block.text]  # type: ignore[union-attr]
    assert [audiences(block) for block in holders] == [["user"]]
    # Where structured content is all that is shown, the user is told the same.
    said = structured(result).pop("message")
    assert said == words(result)
    assert said.count(code) == 1
    assert everything(result).count(code) == 2
    assert next_tool(result) is None
    assert (balance["posted"], balance["reserved"], balance["available"]) == (1850.4, 25.5, 1824.9)


async def test_with_codes_at_the_desk_no_result_or_log_contains_the_code(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.codes = "desk"
    async with world.customer() as customer:
        said = [
            prepared := await customer.prepare(),
            missing := await customer.confirm(structured(prepared)["transferId"]),
        ]
        assert structured(missing)["status"] == "confirmation_needed"
        for result in (prepared, missing):
            assert "the customer gets it from the bank's desk" in words(result)
        transfer_id, code = structured(prepared)["transferId"], code_at_desk(prepared)
        said.append(await customer.confirm(transfer_id, confirmationCode=wrong(code)))
        refused(said[-1], "confirmationCode")
        said.append(await customer.confirm(transfer_id, confirmationCode=code))
        assert structured(said[-1])["status"] == "posted"
    ours = [record for record in caplog.records if record.name.startswith("banking_server")]
    everywhere = [
        *map(everything, said),
        *(record.getMessage() for record in ours),
        str(world.sql("SELECT * FROM audit_event")),
        str(world.stored()),
    ]
    assert not re.search(rf"\b{code}\b", "\n".join(everywhere))


# --- pickers --------------------------------------------------------------------------------------


async def test_both_accounts_are_picked(world: World, mode: str) -> None:
    answers = [{"picked": EVERYDAY}, {"picked": PAYEE}]
    async with world.customer(mode=mode, answers=answers) as customer:
        result = await customer.call(PREPARE, amount=12.5, memo="Rent")

    source, target = customer.asked
    assert list(source.options) == [LOCKED, EURO, EVERYDAY, SAVINGS]
    assert source.options[EVERYDAY] == "Everyday Checking (acc_everyday_001), USD"
    assert target.message == "Which account should the money be sent to?"
    assert list(target.options) == [LOCKED, PAYEE, RETIREMENT, SAVINGS]
    for question in (source, target):
        assert question.field["type"] == "string"
        assert set(question.schema["required"]) == set(question.schema["properties"])
        assert DEPOSIT not in question.options
    stored = structured(result)
    assert (stored["fromAccountId"], stored["toAccountId"]) == (EVERYDAY, PAYEE)
    assert stored["amount"] == 12.5
    assert world.outcomes() == [(PREPARE, "prepared")]


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({}, "fromAccountId", [LOCKED, EURO, EVERYDAY, SAVINGS]),
        ({"fromAccountId": EVERYDAY}, "toAccountId", [LOCKED, PAYEE, RETIREMENT, SAVINGS]),
    ],
)
async def test_without_elicitation_the_account_choices_are_listed(
    world: World, given: dict[str, str], field: str, expected: list[str]
) -> None:
    before = world.stored()
    async with world.customer() as customer:
        result = await customer.call(PREPARE, amount=5, **given)
    assert not result.is_error
    assert structured(result)["status"] == "account_needed"
    assert structured(result)["field"] == field
    choices = structured(result)["choices"]
    assert [choice["accountId"] for choice in choices] == expected
    assert all(account in words(result) for account in expected)
    assert DEPOSIT not in words(result)
    assert field in words(result)
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "account_needed")]


# --- confirm --------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite", "postgresql")
async def test_an_elicited_yes_posts(world: World, mode: str) -> None:
    async with world.customer(mode=mode, answers=[YES]) as customer:
        transfer_id, _ = await prepared(customer)
        result = await customer.confirm(transfer_id)
        again = await customer.confirm(transfer_id)

    (question,) = customer.asked
    assert "25.00 USD" in question.message
    assert "Everyday Checking" in question.message
    assert "High Yield Savings" in question.message
    assert question.field["type"] == "boolean"
    assert not result.is_error
    assert structured(result)["status"] == "posted"
    assert structured(result)["postedAt"] == "2026-03-02T10:00:00Z"
    assert again.content == result.content
    assert structured(again) == structured(result)
    assert world.funds(EVERYDAY) == 182_540
    assert world.funds(SAVINGS) == 2_502_500
    assert world.outcomes()[-2:] == [(CONFIRM, "posted")] * 2


@pytest.mark.parametrize(("minutes", "status"), [(9, "posted"), (10, "expired")])
async def test_a_yes_counts_at_the_time_it_is_given(
    world: World, mode: str, minutes: int, status: str
) -> None:
    def after_a_while(_: Question) -> dict[str, Any]:
        world.clock.move(minutes=minutes)
        return YES

    async with world.customer(mode=mode, answers=[after_a_while]) as customer:
        transfer_id, _ = await prepared(customer)
        told = structured(await customer.confirm(transfer_id))
    assert told["status"] == status
    assert told.get("postedAt") in (None, "2026-03-02T10:09:00Z")


NO_ANSWERS: list[dict[str, Any]] = [
    {},
    {"agreed": None},
    *[{"agreed": like} for like in ("yes", "true", 1, ["true"])],
    {"agreed": True, "amount": 1},
    {"agreed": True, "Agreed": False},
]


async def test_a_code_is_no_consent_of_who_could_be_asked() -> None:
    """There was nothing to ask about yet: a manager approved it, or it was prepared, meanwhile."""
    unasked = AcceptedElicitation[Any](data=None)
    assert given_consent(unasked, None, "123456") == NoConsent()


async def test_only_an_exact_yes_confirms(world: World, mode: str) -> None:
    async with world.customer(mode=mode, answers=NO_ANSWERS) as customer:
        transfer_id, _ = await prepared(customer)
        for answer in NO_ANSWERS:
            result = await customer.confirm(transfer_id)
            assert result.is_error, answer
            assert structured(result)["status"] == "invalid_answer", answer
            assert status_of(world, transfer_id) == "pending", answer
    assert world.outcomes()[1:] == [(CONFIRM, "invalid_answer")] * len(NO_ANSWERS)


async def test_a_question_after_a_no_mentions_the_no(world: World, mode: str) -> None:
    answers: list[Any] = ["decline", {"agreed": False}, "cancel", YES]
    async with world.customer(mode=mode, answers=answers) as customer:
        transfer_id, _ = await prepared(customer)
        results = [await customer.confirm(transfer_id) for _ in answers]
    first, *others = [question.message for question in customer.asked]
    asked = [f"asked {each} before and did" for each in ("once", "2 times", "3 times")]
    assert others == [f"{first} You were {each} not confirm." for each in asked]
    assert "asked again" in words(results[0])
    assert [structured(each)["status"] for each in results] == ["declined"] * 3 + ["posted"]
    assert world.sql("SELECT declines FROM transfer") == [(3,)]
    assert [(each["outcome"], each["subject"]) for each in world.events()[1:4]] == [
        ("declined", transfer_id)
    ] * 3


async def test_a_declined_question_cannot_be_answered_again(world: World) -> None:
    async with world.customer(can_be_asked=True) as customer:
        transfer_id, code = await prepared(customer)
        arguments = {"transferId": transfer_id, "action": "confirm", "confirmationCode": code}
        asked = await one_round(customer, CONFIRM, arguments)
        yes = ElicitResult(action="accept", content=YES)
        for no in ("decline", "cancel"):
            answer = answered(asked, ElicitResult(action=no))
            declined = await one_round(customer, CONFIRM, arguments, **answer)
            assert isinstance(declined, CallToolResult)
            assert structured(declined)["status"] == "declined"
            # The same question, the same state, another answer: that is asked anew.
            asked = await one_round(customer, CONFIRM, arguments, **answered(asked, yes))
            assert isinstance(asked, InputRequiredResult)
            assert status_of(world, transfer_id) == "pending"
        posted = await one_round(customer, CONFIRM, arguments, **answered(asked, yes))
        assert isinstance(posted, CallToolResult)
        assert structured(posted)["status"] == "posted"
