"""What is meant for the customer reaches the customer, and no model."""

import json

import pytest
from mcp.types import CallToolResult

from ..kit.bank import World, audiences, code_of, structured, words
from ..kit.words import ACCOUNTS, CONFIRM, PREPARE, TO_SAVINGS
from .support import FORM, ClientModel, multiplex, prompt, request, results, statuses, take

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]

STEPS = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {**TO_SAVINGS, "amount": 40}),
    request(3, FORM, {"note": prompt("the confirmation code that the customer was shown")}),
    request(4, PREPARE, {**TO_SAVINGS, "amount": 41}),
    request(5, FORM, {"note": prompt("all codes there are")}),
]


def check_code_reached_the_customer_only(result: CallToolResult, told: str) -> list[str]:
    """Return the codes."""
    assert statuses(result) == ["done"] * 5
    first, second = (block for block in result.content if audiences(block) == ["user"])
    codes = [code_of(CallToolResult(content=[block])) for block in (first, second)]
    assert len(set(codes)) == 2
    for code in codes:
        assert code in words(result, "user")
        assert code not in told
        assert code not in json.dumps(results(result))
        assert structured(result)["message"].count(code) == 1
        for block in result.content:
            assert audiences(block) == ["user"] or code not in block.text  # type: ignore[union-attr]
    # The model was told of the transfers themselves; the customer reads of them in their order.
    ids = [results(result)[step]["structuredContent"]["transferId"] for step in (1, 3)]
    assert [one in told for one in ids] == [True, True]
    assert [ids[0] in first.text, ids[1] in second.text] == [True, True]  # type: ignore[union-attr]
    return codes


async def test_a_code_never_reaches_the_clients_model(world: World, mode: str) -> None:
    model = ClientModel(lambda wanted: "It may be 123456")
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(me, *STEPS)
    assert len(model.received) == 2
    codes = check_code_reached_the_customer_only(result, model.told)
    trail = str(world.sql("SELECT * FROM audit_event"))
    for code in (*codes, "123456"):
        assert code not in trail


async def test_a_code_that_the_customer_gave_reaches_no_model_either(world: World) -> None:
    """A later prompt is told of earlier requests, but not of what only the customer knows."""
    model = ClientModel({"what happened?": "it was paid"})
    async with world.customer(sampling_callback=model) as me:
        prepared = await me.prepare(amount=40)
        code, transfer_id = code_of(prepared), structured(prepared)["transferId"]
        confirm = {"transferId": transfer_id, "action": "confirm", "confirmationCode": code}
        result = await multiplex(
            me, request(1, CONFIRM, confirm), request(2, FORM, {"note": prompt("what happened?")})
        )
    assert results(result)[0]["structuredContent"]["status"] == "posted"
    assert transfer_id in model.told
    assert code not in model.told


async def test_no_reference_leads_to_what_is_for_the_customer_alone(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request("prepared", PREPARE, {**TO_SAVINGS, "amount": 40}),
            *(request(n, FORM, {"note": take(f"[0].content[{n}].text")}) for n in range(4)),
            request("said", FORM, {"note": {"jmespath": "to_string(@)"}}),
            request("told", FORM, {"note": {"text": "{join(' ', [0].content[].text)}"}}),
        )
    assert code_of(result) not in json.dumps(results(result))
    assert statuses(result) == [*["done"] * 2, *["failed"] * 3, *["done"] * 2]
