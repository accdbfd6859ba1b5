"""Escalations, each followed by a client as far as it goes.

The locked account has `test_locked.py`, and the report of a payment is in `banking.yaml`, by which
the conformance suite judges the bank.
"""

import pytest

from tool_chaining import ChainResult, Outcome

from ..kit.bank import World, code_of, next_tool, structured, words
from ..kit.words import APPROVAL, CHOICE, CONFIRM, EVERYDAY, HANDOFF, PREPARE, SAVINGS

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

LARGE = {"fromAccountId": SAVINGS, "toAccountId": EVERYDAY, "amount": 10_000.01}
REASON = "The amount is above what can be transferred without a manager's approval"

TITLES = {
    APPROVAL: "Ask a manager to approve this transfer: the bank requires it for this amount",
    HANDOFF: "Speak to an agent: no manager is at the branch at this hour",
    PREPARE: "Prepare the transfer again: it was not confirmed in time",
}
"""What the user is told of each step; the locked account's directive says nothing."""


def tools(followed: ChainResult) -> list[str]:
    return [step.tool for step in followed.steps]


# --- above the approval threshold -----------------------------------------------------------------


async def test_a_large_transfer_outside_branch_hours_chains_to_an_agent(world: World) -> None:
    """The clock starts on a Monday at 10:00; the branch is open Mon-Fri 08:00-18:00."""
    world.clock.move(hours=-2.001)
    async with world.customer(answers=[{"picked": "callback"}]) as customer:
        followed = await customer.chain(PREPARE, **LARGE)
    assert followed.outcome is Outcome.COMPLETED
    expected = [PREPARE, APPROVAL, HANDOFF]
    assert tools(followed) == expected
    assert [step.title for step in followed.steps[1:]] == [TITLES[APPROVAL], TITLES[HANDOFF]]
    assert [event["tool"] for event in world.events()] == expected
    assert [event["chain_level"] for event in world.events()] == [1, 2, 3]
    assert {event["chain_id"] for event in world.events()} == {followed.chain_id}
    assert world.sql("SELECT status, approval FROM transfer") == [("pending", "requested")]
    transfer_id = followed.steps[0].result["structuredContent"]["transferId"]
    ((reason, choice),) = world.sql("SELECT reason, choice FROM handoff")
    assert transfer_id in reason
    assert choice == "callback"
    assert followed.steps[1].result["structuredContent"]["branchOpen"] is False


@pytest.mark.only_on("sqlite", "postgresql")
async def test_a_large_transfer_is_confirmed_once_a_manager_has_approved_it(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as customer:
        prepared = await customer.prepare(**LARGE)
        transfer_id, code = structured(prepared)["transferId"], code_of(prepared)
        assert next_tool(prepared) == {
            "tool": APPROVAL,
            "arguments": {"transferId": transfer_id, "reason": REASON},
            "title": TITLES[APPROVAL],
        }
        assert structured(prepared)["approval"] == "required"
        assert structured(prepared)["expiresAt"] == "2026-03-03T10:00:00Z"

        # Nobody has asked the manager yet: the chain sees to it.
        early = await customer.confirm(transfer_id, confirmationCode=code)
        assert early.is_error
        assert structured(early)["field"] == "transferId"
        assert (next_tool(early) or {})["tool"] == APPROVAL
        requested = await customer.call(APPROVAL, transferId=transfer_id, reason="New kitchen")
        assert next_tool(requested) is None
        asked = structured(requested)
        assert (asked["status"], asked["branchOpen"]) == ("requested", True)
        waiting = await customer.confirm(transfer_id, confirmationCode=code)
        assert waiting.is_error
        assert structured(waiting)["approval"] == "requested"
        assert next_tool(waiting) is None
        await world.grant()
        told = structured(await customer.call(APPROVAL, transferId=transfer_id, reason="Again"))
        assert told["status"] == "granted"
        posted = await customer.confirm(transfer_id, confirmationCode=code)
    assert structured(posted)["approval"] == "granted"
    assert world.sql("SELECT reason FROM approval") == [("New kitchen",)]


# --- recovery from an expired transfer ------------------------------------------------------------


async def test_an_expired_transfer_is_prepared_again(world: World, mode: str) -> None:
    """It is replaced once, and stays expired: `tests/bank/test_transfers.py`."""
    details = {
        "fromAccountId": EVERYDAY,
        "toAccountId": SAVINGS,
        "amount": 25.1,
        "scheduledDate": "2026-03-20",
        "memo": "Treats",
    }
    async with world.customer(mode=mode) as customer:
        prepared = await customer.prepare(**details)
        transfer_id = structured(prepared)["transferId"]
        world.clock.move(minutes=10)

        result = await customer.confirm(transfer_id, confirmationCode=code_of(prepared))
        assert not result.is_error
        assert "expired" in words(result)
        assert structured(result)["status"] == "expired"
        assert next_tool(result) == {
            "tool": PREPARE,
            "arguments": {**details, "expiredTransferId": transfer_id},
            "title": TITLES[PREPARE],
        }

        followed = await customer.chain(CONFIRM, transferId=transfer_id, action="confirm")
        assert followed.outcome is Outcome.COMPLETED
        assert tools(followed) == [CONFIRM, PREPARE]
        renewed = followed.steps[-1].result["structuredContent"]
        assert renewed["status"] == "pending"
        assert renewed["transferId"] != transfer_id
        assert {name: renewed[name] for name in details} == details


# --- the handoff, where the client cannot ask how to be connected ---------------------------------


async def test_without_elicitation_the_choice_is_made_by_another_tool(
    world: World,
) -> None:
    async with world.customer() as customer:
        offered = await customer.call(HANDOFF)
        said = words(offered)
        assert "speak to an agent now" in said
        assert "called back" in said
        assert structured(offered)["choices"] == ["realtime", "callback"]
        handoff_id = structured(offered)["handoffId"]
        assert handoff_id in words(offered, "assistant")
        assert CHOICE in words(offered, "assistant")

        chosen = await customer.call(CHOICE, handoffId=handoff_id, choice="realtime")
        assert structured(chosen)["choice"] == "realtime"
        assert structured(chosen)["handoffId"] == handoff_id
    assert world.sql("SELECT choice FROM handoff") == [("realtime",)]
