"""No customer can see, infer or touch what belongs to another."""

from typing import Any

import pytest

from ..kit.bank import World, code_of, everything, structured
from ..kit.words import (
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    HANDOFF,
    PAYEE,
    PREPARE,
    REPORT,
    SAVINGS,
    STATEMENT,
)

pytestmark = pytest.mark.anyio


async def everything_of_theirs(world: World) -> dict[str, Any]:
    """Let CUST001 have one of each record, in every state; return the ids."""
    async with world.customer() as owner:
        pending = await owner.prepare(amount=1)
        posted = await owner.prepare(fromAccountId=SAVINGS, toAccountId=PAYEE, amount=3000)
        posted_id = structured(posted)["transferId"]
        await owner.confirm(posted_id, confirmationCode=code_of(posted))
        large = await owner.prepare(fromAccountId=SAVINGS, amount=12_000, toAccountId=PAYEE)
        handoff = await owner.call(HANDOFF, reason="Lost card")
        page = structured(await owner.call(STATEMENT, accountId="acc_everyday_001"))
    return {
        "pending": structured(pending)["transferId"],
        "code": code_of(pending),
        "posted": posted_id,
        "large": structured(large)["transferId"],
        "handoff": structured(handoff)["handoffId"],
        "cursor": page["nextCursor"],
    }


OWN = {"fromAccountId": "acc_checking_002", "toAccountId": "acc_savings_002", "amount": 5}
FOREIGN_CALLS: list[tuple[str, str, dict[str, Any]]] = [
    *[
        (tool, "accountId", {"accountId": account, **more})
        for account in ("acc_checking_001", "acc_savings_001", PAYEE, "acc_equity_usd")
        for tool, more in [
            (BALANCE, {}),
            (STATEMENT, {}),
            (STATEMENT, {"days": 365, "cursor": "$cursor"}),
        ]
    ],
    *[
        (PREPARE, field, {**OWN, field: account})
        for account in ("acc_checking_001", SAVINGS, PAYEE, "acc_euro_001", "acc_deposit_001")
        for field in ("fromAccountId", "toAccountId")
    ],
    *[
        (tool, "transferId", {"transferId": transfer, **more})
        for transfer in ("$pending", "$posted", "$large")
        for tool, more in [
            (CONFIRM, {"action": "confirm"}),
            (CONFIRM, {"action": "confirm", "confirmationCode": "$code"}),
            (CONFIRM, {"action": "cancel"}),
            (APPROVAL, {"reason": "Please"}),
            (APPROVAL, {"reason": ""}),
            (REPORT, {"rule": "external-payee-3000"}),
            (REPORT, {"rule": ""}),
        ]
    ],
    (CHOICE, "handoffId", {"handoffId": "$handoff", "choice": "callback"}),
]
"""Tool, the argument that is somebody else's, and all arguments; `$` marks what is theirs."""


@pytest.mark.only_on("sqlite", "postgresql")
@pytest.mark.parametrize("can_be_asked", [False, True])
async def test_another_customer_s_id_is_answered_like_an_unknown_id(
    world: World, can_be_asked: bool
) -> None:
    theirs = await everything_of_theirs(world)
    before, events = world.stored(), len(world.events())
    async with world.customer("CUST002", can_be_asked=can_be_asked) as other:
        for tool, field, marked in FOREIGN_CALLS:
            arguments = {
                name: theirs[value[1:]] if str(value).startswith("$") else value
                for name, value in marked.items()
            }
            foreign = arguments[field]
            nobodys = foreign[:-4] + ("9999" if not foreign.endswith("9999") else "8888")
            to_foreign, to_nobodys = [
                everything(await other.call(tool, **{**arguments, field: id_})).replace(id_, "ID")
                for id_ in (foreign, nobodys)
            ]
            assert to_foreign == to_nobodys
            assert "not_found" in to_foreign
    assert other.asked == []
    assert world.stored() == before
    left = {
        (event["customer_id"], event["outcome"], event["subject"])
        for event in world.events()[events:]
    }
    assert left == {("CUST002", "not_found", None)}
