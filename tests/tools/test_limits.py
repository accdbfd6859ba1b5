"""A limit of the bank's, as a client sees it: a refusal that says which, and what to do."""

import pytest

from banking_server.bank.rules import Rules
from banking_server.server.settings import Settings

from ..kit.bank import World, code_of, next_tool, structured, words
from ..kit.words import HANDOFF, wrong

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _little_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules(max_pending_transfers=1, max_open_handoffs=1, max_wrong_codes_an_hour=1)
    monkeypatch.setattr(Settings, "rules", lambda _: rules)


async def test_a_limit_is_a_clear_refusal(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as customer:
        prepared = await customer.prepare()
        code, transfer_id = code_of(prepared), structured(prepared)["transferId"]
        await customer.confirm(transfer_id, confirmationCode=wrong(code))
        await customer.call(HANDOFF, reason="Lost card")
        for result, said in (
            (await customer.prepare(amount=1), "1 of your transfers wait to be confirmed"),
            (await customer.call(HANDOFF, reason="Stolen card"), "1 of your requests wait"),
            (
                await customer.confirm(transfer_id, confirmationCode=code),
                "Too many confirmation codes",
            ),
        ):
            assert result.is_error
            assert structured(result)["status"] == "too_many"
            assert structured(result)["message"] == words(result)
            assert words(result).startswith(said)
            assert next_tool(result) is None
    assert [outcome for _, outcome in world.outcomes()].count("too_many") == 3
