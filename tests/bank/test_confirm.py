"""Confirming and cancelling: what the model of `test_state_machine` does not look at.

That is who may, what was declined, and what is recorded and said.
"""

import pytest

from banking_server.bank.location import Location
from banking_server.bank.rules import NotFound
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.cancel import cancel_transfer
from banking_server.bank.transfers.confirm import decline_transfer
from banking_server.bank.transfers.outcomes import (
    Declined,
    Expired,
    Posted,
    Voided,
)

from .support import (
    DAY,
    NOW,
    call,
    confirm,
    outcomes,
    prepared,
    sql,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


async def cancel(bank: Bank, transfer_id: str, *, customer: str = "CUST001", at=NOW) -> object:  # type: ignore[no-untyped-def]
    return await cancel_transfer(bank, call("cancel", at=at, customer=customer), transfer_id)


@pytest.mark.on_each
async def test_a_yes_to_a_question_that_was_declined_since(bank: Bank, path: Location) -> None:
    outcome = await prepared(bank)
    transfer_id = outcome.transfer.transfer_id
    declined = await decline_transfer(bank, call("confirm"), transfer_id)
    late = await confirm(bank, transfer_id)
    assert declined == late == Declined(outcome.transfer.model_copy(update={"declines": 1}))
    assert [o for _, o, _ in outcomes(path)][1:] == ["declined", "declined"]
    # The code is another act.
    assert isinstance(await confirm(bank, transfer_id, agreed=False, code=outcome.code), Posted)
    assert isinstance(
        await decline_transfer(bank, call("confirm", customer="CUST002"), transfer_id), NotFound
    )


async def test_a_no_that_comes_late_says_what_became_of_the_transfer(
    bank: Bank, path: Location
) -> None:
    made, cancelled, forgotten = [
        (await prepared(bank, amount)).transfer.transfer_id for amount in ("1", "2", "3")
    ]
    receipt = await confirm(bank, made)
    await cancel(bank, cancelled)
    assert await decline_transfer(bank, call("confirm"), made) == receipt
    assert isinstance(await decline_transfer(bank, call("confirm"), cancelled), Voided)
    assert isinstance(
        await decline_transfer(bank, call("confirm", at=NOW + DAY), forgotten), Expired
    )
    assert sql(path, "SELECT sum(declines) FROM transfer") == [(0,)]
