"""Handing over to a person: one open handoff a reason, and how to be connected."""

from typing import Any

import pytest

from ..kit.bank import Question, World, structured, words
from ..kit.words import CHOICE, HANDOFF

pytestmark = pytest.mark.anyio


def picks(value: str) -> Any:
    def answer(question: Question) -> dict[str, Any]:
        assert question.options == {
            "realtime": "Speak to an agent now",
            "callback": "Be called back",
        }
        return {"picked": value}

    return answer


@pytest.mark.parametrize("answer", ["decline", "cancel"])
async def test_a_declined_question_leaves_the_choice_open(world: World, answer: str) -> None:
    async with world.customer(answers=[answer, picks("realtime")]) as customer:
        result = await customer.call(HANDOFF, reason="Lost card")
        assert not result.is_error
        assert structured(result)["choices"] == ["realtime", "callback"]
        assert "choice" not in structured(result)
        later = await customer.call(HANDOFF, reason="Lost card")
    assert structured(later)["handoffId"] == structured(result)["handoffId"]
    assert structured(later)["choice"] == "realtime"
    assert world.sql("SELECT count(*) FROM handoff") == [(1,)]


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
