"""Handing over to a person, where the client cannot ask how to be connected."""

import pytest

from ..kit.bank import World, structured, words
from ..kit.words import CHOICE, HANDOFF

pytestmark = pytest.mark.anyio


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

        chosen = await customer.call(CHOICE, handoffId=handoff_id, choice="callback")
        assert structured(chosen)["choice"] == "callback"
        assert structured(chosen)["handoffId"] == handoff_id
        changed = await customer.call(CHOICE, handoffId=handoff_id, choice="realtime")
        assert structured(changed)["choice"] == "realtime"
        again = await customer.call(CHOICE, handoffId=handoff_id, choice="realtime")
        assert structured(again) == structured(changed)
    assert world.sql("SELECT choice FROM handoff") == [("realtime",)]
