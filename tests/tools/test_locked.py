"""The flow that must work exactly: a locked account hands itself off."""

from typing import Any

import pytest
from mcp.types import InputRequiredResult, TextContent

from banking_server.chaining import CLIENT_EXTENSION, Outcome, call_tool_with_chaining

from ..kit.bank import Question, World, audiences, next_tool, one_round, structured, words
from ..kit.words import (
    CHOICE,
    DEPOSIT,
    EURO,
    EVERYDAY,
    FOREIGN,
    HANDOFF,
    LOCKED,
    LOCKED_REASON,
    LOCKED_TEXT,
    PAYEE,
    PREPARE,
    RETIREMENT,
    SAVINGS,
)

pytestmark = pytest.mark.anyio

DIRECTIVE = {"tool": HANDOFF, "arguments": {"reason": LOCKED_REASON}}


def is_locked_answer(result: Any) -> None:
    assert result.is_error is False
    first = result.content[0]
    assert isinstance(first, TextContent)
    assert first.text == LOCKED_TEXT
    assert audiences(first) == ["user"]
    assert structured(result) == {
        "status": "account_locked",
        "accountId": LOCKED,
        "accountName": "Primary Checking",
    }
    assert next_tool(result) == DIRECTIVE


async def test_word_for_word_for_a_client_that_declared(world: World, mode: str) -> None:
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


async def test_a_client_that_did_not_declare_is_told_in_words_after_the_users(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, toAccountId=SAVINGS, amount=100)

    is_locked_answer(result)
    assert [audiences(block) for block in result.content] == [["user"], ["assistant"]]
    said = words(result, "assistant")
    assert HANDOFF in said
    assert LOCKED_REASON in said


@pytest.mark.parametrize("can_be_asked", [False, True])
async def test_locked_is_answered_before_anything_is_asked(
    world: World, mode: str, can_be_asked: bool
) -> None:
    """The to-account is missing, yet nobody asks for it: `Customer` fails on a question."""
    async with world.customer(mode=mode, can_be_asked=can_be_asked) as customer:
        is_locked_answer(await customer.call(PREPARE, fromAccountId=LOCKED, amount=100))
        assert customer.asked == []


REST: list[dict[str, Any]] = [
    {"amount": 0},
    {"amount": -5},
    {"amount": 19.999},
    {"amount": 1e15},
    {"amount": 10**400},
    {"amount": 5_250_750},
    {"amount": "5"},
    {"amount": True},
    {"amount": None},
    {"amount": []},
    {"amount": {"value": 5}},
    {},
    {"amount": 5, "toAccountId": "acc_nowhere"},
    {"amount": 5, "toAccountId": FOREIGN},
    {"amount": 5, "toAccountId": LOCKED},
    {"amount": 5, "toAccountId": DEPOSIT},
    {"amount": 5, "toAccountId": EURO},
    {"amount": 5, "toAccountId": ""},
    {"amount": 5, "toAccountId": 7},
    {"amount": 5, "scheduledDate": "yesterday"},
    {"amount": 5, "scheduledDate": "2020-01-01"},
    {"amount": 5, "scheduledDate": 20260303},
    {"amount": 5, "memo": "x" * 1_000_000},
    {"amount": 5, "memo": "a\x00b"},
    {"amount": 5, "memo": "\ud800"},
    {"amount": 5, "memo": ["a"]},
    {"amount": "x", "toAccountId": [], "scheduledDate": {}, "memo": False},
]


async def test_locked_wins_over_every_other_bad_argument(world: World) -> None:
    before = world.stored()
    async with world.customer() as customer:
        for rest in REST:
            is_locked_answer(await customer.call(PREPARE, fromAccountId=LOCKED, **rest))
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "account_locked")] * len(REST)


async def test_an_unknown_argument_is_refused_by_name_even_then(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, amount=5, currency="USD")
    assert result.is_error
    assert structured(result)["field"] == "currency"


async def test_nobody_learns_of_anothers_lock(world: World) -> None:
    async with world.customer("CUST002") as customer:
        result = await customer.call(PREPARE, fromAccountId=LOCKED, amount="x")
    assert structured(result)["field"] == "amount"
    assert "lock" not in words(result)


async def test_choosing_the_locked_account_starts_the_handoff(world: World, mode: str) -> None:
    before = world.stored()
    async with world.customer(mode=mode, answers=[{"picked": LOCKED}]) as customer:
        is_locked_answer(await customer.call(PREPARE, amount=100))

    (question,) = customer.asked
    assert question.message == "Which account should the money be taken from?"
    assert list(question.options) == [LOCKED, EURO, EVERYDAY, SAVINGS]
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "account_locked")]


async def test_money_may_still_go_into_a_locked_account(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.prepare(toAccountId=LOCKED)
    assert structured(result)["status"] == "pending"


async def test_the_chain_of_the_story(world: World, mode: str) -> None:
    async with world.customer(mode=mode, answers=[{"picked": "callback"}]) as customer:
        chain = await call_tool_with_chaining(
            customer.client,
            PREPARE,
            {"fromAccountId": LOCKED, "toAccountId": SAVINGS, "amount": 250},
        )
    assert chain.outcome is Outcome.COMPLETED
    assert [step.tool for step in chain.steps] == [PREPARE, HANDOFF]
    said = [block.text for block in chain.content if isinstance(block, TextContent)]
    assert said[0] == LOCKED_TEXT
    assert "call you back" in said[-1]
    ((reason, choice, status),) = world.sql("SELECT reason, choice, status FROM handoff")
    assert (reason, choice, status) == (LOCKED_REASON, "callback", "open")
    first, second = world.events()
    assert first["chain_id"] == second["chain_id"] == chain.chain_id
    assert [event["chain_level"] for event in (first, second)] == [1, 2]
    assert [event["chain_previous_tool"] for event in (first, second)] == [None, PREPARE]


# --- the handoff itself ---------------------------------------------------------------------------


def picks(value: str) -> Any:
    def answer(question: Question) -> dict[str, Any]:
        assert question.options == {
            "realtime": "Speak to an agent now",
            "callback": "Be called back",
        }
        return {"picked": value}

    return answer


@pytest.mark.parametrize("choice", ["realtime", "callback"])
async def test_the_customer_is_asked_how_to_connect(world: World, mode: str, choice: str) -> None:
    async with world.customer(mode=mode, answers=[picks(choice)]) as customer:
        result = await customer.call(HANDOFF, reason="Lost card")
        again = await customer.call(HANDOFF, reason="Lost card")

    assert len(customer.asked) == 1, "what was chosen is not asked again"
    assert not result.is_error
    assert structured(result)["choice"] == choice
    assert structured(result)["status"] == "open"
    assert "choices" not in structured(result)
    assert structured(again) == structured(result)
    assert world.sql("SELECT customer_id, reason, choice, status FROM handoff") == [
        ("CUST001", "Lost card", choice, "open")
    ]
    assert world.outcomes() == [(HANDOFF, "handoff_opened")] * 2


@pytest.mark.parametrize("answer", ["decline", "cancel"])
async def test_no_answer_leaves_the_choice_open(world: World, mode: str, answer: str) -> None:
    async with world.customer(mode=mode, answers=[answer, picks("realtime")]) as customer:
        result = await customer.call(HANDOFF, reason="Lost card")
        assert not result.is_error
        assert structured(result)["choices"] == ["realtime", "callback"]
        assert "choice" not in structured(result)
        later = await customer.call(HANDOFF, reason="Lost card")
    assert structured(later)["handoffId"] == structured(result)["handoffId"]
    assert structured(later)["choice"] == "realtime"
    assert world.sql("SELECT count(*) FROM handoff") == [(1,)]


async def test_a_client_that_cannot_be_asked_gets_text_that_another_tool_completes(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as customer:
        offered = await customer.call(HANDOFF)
        said = words(offered)
        assert "speak to an agent now" in said
        assert "called back" in said
        assert structured(offered)["choices"] == ["realtime", "callback"]
        handoff_id = structured(offered)["handoffId"]
        assert handoff_id in words(offered, "assistant")
        assert CHOICE in words(offered, "assistant")

        chosen = await customer.call(CHOICE, handoffId=handoff_id, choice="callback")
        assert structured(chosen)["choice"] == "callback"
        assert structured(chosen)["handoffId"] == handoff_id
        changed = await customer.call(CHOICE, handoffId=handoff_id, choice="realtime")
        assert structured(changed)["choice"] == "realtime"
        again = await customer.call(CHOICE, handoffId=handoff_id, choice="realtime")
        assert structured(again) == structured(changed)
    assert world.sql("SELECT choice FROM handoff") == [("realtime",)]


async def test_one_open_handoff_for_each_reason_and_customer(world: World) -> None:
    async with world.customer() as first, world.customer("CUST002") as second:
        ids = [
            structured(await who.call(HANDOFF, **arguments))["handoffId"]
            for who, arguments in [
                (first, {}),
                (first, {"reason": None}),
                (first, {"reason": "  "}),
                (first, {"reason": "Lost card"}),
                (second, {"reason": "Lost card"}),
                (second, {}),
            ]
        ]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids)) == 4
    assert world.sql("SELECT count(*) FROM handoff") == [(4,)]


async def test_a_claimed_handoff_is_with_its_agent(world: World) -> None:
    async with world.customer() as customer:
        opened = structured(await customer.call(HANDOFF, reason="Lost card"))
        world.sql(
            "UPDATE handoff SET status = 'claimed', claimed_by = 'Alex', claimed_at = created_at"
        )
        late = await customer.call(CHOICE, handoffId=opened["handoffId"], choice="callback")
        assert late.is_error
        assert structured(late)["field"] == "handoffId"
        assert "Alex" not in words(late)
        another = structured(await customer.call(HANDOFF, reason="Lost card"))
    assert another["handoffId"] != opened["handoffId"]


async def test_a_replayed_answer_opens_no_second_handoff(world: World) -> None:
    async with world.customer(can_be_asked=True) as customer:
        arguments = {"reason": "Lost card"}
        asked = await one_round(customer, HANDOFF, arguments)
        assert isinstance(asked, InputRequiredResult)
        ((key, _),) = (asked.input_requests or {}).items()
        answers = {key: {"action": "accept", "content": {"picked": "callback"}}}
        results = [
            await one_round(
                customer,
                HANDOFF,
                arguments,
                input_responses=answers,
                request_state=asked.request_state,
            )
            for _ in range(3)
        ]
    assert len({structured(result)["handoffId"] for result in results}) == 1  # type: ignore[arg-type]
    assert world.sql("SELECT count(*) FROM handoff") == [(1,)]


async def test_an_answer_that_does_not_fit_is_no_answer(world: World, mode: str) -> None:
    answers: list[Any] = [{"picked": "pigeon"}, {}, {"picked": 5}, {"chosen": "callback"}]
    async with world.customer(mode=mode, answers=answers) as customer:
        for _ in list(answers):
            result = await customer.call(HANDOFF, reason="Lost card")
            assert result.is_error
            assert structured(result)["status"] == "invalid_answer"
            assert "Resolver" not in words(result)
            assert "banking_server" not in words(result)
    assert world.sql("SELECT count(*) FROM handoff") == [(0,)]
    assert world.outcomes() == [(HANDOFF, "invalid_answer")] * len(answers)


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


async def test_only_what_is_missing_is_asked(world: World, mode: str) -> None:
    async with world.customer(mode=mode, answers=[{"picked": SAVINGS}]) as customer:
        await customer.prepare(toAccountId=...)
        assert [question.message for question in customer.asked] == [
            "Which account should the money be sent to?"
        ]
        assert EVERYDAY not in customer.asked[0].options


async def test_a_declined_picker_prepares_nothing(world: World, mode: str) -> None:
    before = world.stored()
    first = {"picked": EVERYDAY}
    rounds: list[list[Any]] = [["decline"], ["cancel"], [first, "decline"], [first, "cancel"]]
    async with world.customer(mode=mode, can_be_asked=True) as customer:
        for answers in rounds:
            customer.answers = list(answers)
            result = await customer.call(PREPARE, amount=5)
            assert customer.answers == []
            assert not result.is_error
            assert structured(result) == {"status": "declined"}
            assert next_tool(result) is None
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "declined")] * len(rounds)


async def test_where_nobody_can_be_asked_the_choices_are_listed(world: World, mode: str) -> None:
    before = world.stored()
    async with world.customer(mode=mode) as customer:
        source = await customer.call(PREPARE, amount=5)
        target = await customer.call(PREPARE, amount=5, fromAccountId=EVERYDAY)
    for result, field, expected in [
        (source, "fromAccountId", [LOCKED, EURO, EVERYDAY, SAVINGS]),
        (target, "toAccountId", [LOCKED, PAYEE, RETIREMENT, SAVINGS]),
    ]:
        assert not result.is_error
        assert structured(result)["status"] == "account_needed"
        assert structured(result)["field"] == field
        choices = structured(result)["choices"]
        assert [choice["accountId"] for choice in choices] == expected
        assert all(account in words(result) for account in expected)
        assert DEPOSIT not in words(result)
        assert field in words(result)
    assert world.stored() == before
    assert world.outcomes() == [(PREPARE, "account_needed")] * 2


async def test_nobody_picks_accounts_for_a_transfer_that_cannot_be(world: World) -> None:
    async with world.customer(can_be_asked=True) as customer:
        result = await customer.call(PREPARE, amount=19.999)
    assert result.is_error
    assert structured(result)["field"] == "amount"


async def test_no_foreign_account_can_be_picked(world: World, mode: str) -> None:
    async with world.customer(mode=mode, answers=[{"picked": FOREIGN}]) as customer:
        result = await customer.call(PREPARE, amount=5)
    assert result.is_error
    assert structured(result)["status"] == "invalid_answer"
    assert set(customer.asked[0].options) == {LOCKED, EURO, EVERYDAY, SAVINGS}


async def test_an_account_with_no_counterpart_has_no_choices(world: World) -> None:
    """Of its currency the euro account is the only one."""
    async with world.customer(can_be_asked=True) as customer:
        result = await customer.call(PREPARE, fromAccountId=EURO, amount=5)
    assert result.is_error
    assert structured(result)["field"] == "toAccountId"


async def test_a_customer_without_accounts_has_none_to_pick(world: World, mode: str) -> None:
    world.sql("INSERT INTO customer (customer_id, name) VALUES ('CUST009', 'New Example')")
    async with world.customer("CUST009", mode=mode, can_be_asked=True) as customer:
        result = await customer.call(PREPARE, amount=5)
        assert result.is_error
        assert structured(result)["field"] == "fromAccountId"
        assert structured(await customer.call("list_accounts")) == {"accounts": []}
