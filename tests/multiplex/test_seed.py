"""The seed's snippet has three faults; a test for each shows that ours has none of them."""

import anyio
import pytest

from ..kit.bank import World, everything
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, SAVINGS
from .support import FORM, ClientModel, given, multiplex, prompt, request, results, statuses

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]


async def test_the_seed_sends_every_string_to_the_model_and_ours_does_not(
    world: World, mode: str
) -> None:
    """It looks for the prefix, and then ignores what it found."""
    model = ClientModel({"a greeting": "Good morning"})
    strings = {"colour": "red", "tags": ["a tag"], "extra": {"deep": "a string"}}
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(
            me,
            request(1, BALANCE, {"accountId": SAVINGS}),
            request(2, FORM, {**strings, "note": prompt("a greeting")}),
            request(3, FORM, strings),
        )
    assert statuses(result) == ["done"] * 3
    assert model.wanted == ["a greeting"]
    assert given(result, 1) == {**strings, "note": "Good morning"}
    assert given(result, 2) == strings
    assert "a string" not in model.told


async def test_the_seed_shares_one_context_between_callers_and_ours_does_not(
    world: World, mode: str
) -> None:
    """Two customers in the middle of their calls at the same time, in one process.

    `test_callers` has the same through one HTTP server.
    """
    both_are_asked = anyio.Event()
    models = {name: ClientModel({"my account": ""}) for name in ("CUST001", "CUST002")}
    outcomes = {}

    async def call(customer: str) -> None:
        model = models[customer]

        async def when_both_are_asked(context, params):  # type: ignore[no-untyped-def]
            answer = await model(context, params)
            if all(one.received for one in models.values()):
                both_are_asked.set()
            with anyio.fail_after(30):
                await both_are_asked.wait()
            return answer

        async with world.customer(customer, mode=mode, sampling_callback=when_both_are_asked) as me:
            mine = {"CUST001": EVERYDAY, "CUST002": "acc_checking_002"}[customer]
            model.answers = {"my account": mine}
            outcomes[customer] = await multiplex(
                me,
                request(f"of {customer}", ACCOUNTS),
                request(2, BALANCE, {"accountId": prompt("my account")}),
            )

    async with anyio.create_task_group() as at_once:
        for customer in models:
            at_once.start_soon(call, customer)

    for customer, other in (("CUST001", "CUST002"), ("CUST002", "CUST001")):
        assert statuses(outcomes[customer]) == ["done", "done"]
        accounts = world.sql("SELECT account_id FROM account WHERE customer_id = ?", other)
        assert accounts
        # The description of an argument has one of the ids as its example.
        told = models[customer].told.replace("like acc_savings_001", "")
        for foreign in (*(account for (account,) in accounts), f"of {other}"):
            assert foreign not in told
            assert foreign not in everything(outcomes[customer])

    # Nor does anything stay from one call to the next of the same customer.
    again = ClientModel({"my account": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=again) as me:
        await multiplex(me, request("fresh", BALANCE, {"accountId": prompt("my account")}))
    assert "of CUST001" not in again.told
    assert EVERYDAY not in again.told


async def test_the_seed_swallows_errors_and_ours_does_not(world: World, mode: str) -> None:
    """There a model that fails lets the tool run with the prompt itself as its argument."""
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, FORM, {"note": prompt("nobody is there to answer")}),
            request(3, BALANCE, {"accountId": "nonsense"}),
        )
    assert result.is_error
    assert statuses(result) == ["done", "failed", "failed"]
    _, unanswered, unknown = results(result)
    assert "arguments.note: " in unanswered["message"]
    assert "structuredContent" not in unanswered
    assert "you have nothing with the id 'nonsense'" in unknown["content"][0]["text"]
    assert FORM not in [tool for tool, _ in world.outcomes()]
