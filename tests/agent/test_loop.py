"""The agent: what it does with the model's replies, and what the model gets to see."""

from itertools import pairwise
from typing import Any

import pytest

from banking_server.agent import (
    AllowReadOnly,
    ChainStopped,
    Corrected,
    ModelReplied,
    OfferedTool,
    RunOutcome,
)
from banking_server.agent.prompt import answer_now
from banking_server.chaining import Outcome

from ..kit.model import (
    Reply,
    call,
    error,
    native,
)
from .shop_server import SECRET, TITLE
from .support import Consent, scene

pytestmark = pytest.mark.anyio


# --- answers and calls ----------------------------------------------------------------------------


async def test_native_calls_are_made_and_answered_by_their_ids() -> None:
    both = Reply("Looking.", calls=[("price", {"door": "oak"}), ("price", {"door": "elm"})])
    async with scene([both, "Both 80."], tools="native", stream=True) as s:
        run = await s.agent.ask("What are oak and elm?")
    assert run.answer == "Both 80."
    assert [step.step.arguments["door"] for step in run.calls] == ["oak", "elm"]
    first, second = s.model.requests
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"price", "buy"}
    assert "for_the_app" not in s.model.told
    assert "Tool: price" not in first["messages"][0]["content"]
    assistant, oak, elm = second["messages"][2:]
    assert [one["function"]["name"] for one in assistant["tool_calls"]] == ["price", "price"]
    ids = [one["id"] for one in assistant["tool_calls"]]
    assert [oak["tool_call_id"], elm["tool_call_id"]] == ids
    assert (oak["role"], oak["content"]) == ("tool", "Result of price:\noak costs 80 EUR")
    assert "".join(s.shown) == "Looking.Both 80."


async def test_a_reply_is_held_to_the_tools_if_the_endpoint_can() -> None:
    answer = call("reply_to_user", message="80 EUR.")
    async with scene([call("price", door="oak"), answer], stream=True) as s:
        assert (await s.agent.ask("What is oak?")).answer == "80 EUR."
    assert "".join(s.shown) == "80 EUR."
    held = s.model.requests[0]["response_format"]
    assert held["type"] == "json_schema"
    options = held["json_schema"]["schema"]["anyOf"]
    price = next(one for one in options if one["properties"]["tool"] == {"const": "price"})
    assert price["properties"]["arguments"]["properties"]["currency"] == {"enum": ["EUR", "USD"]}


async def test_an_endpoint_that_rejects_the_schema_is_asked_without() -> None:
    async with scene([error(400, "no such type"), "One.", "Two."]) as s:
        first, second = await s.agent.ask("1"), await s.agent.ask("2")
    assert (first.answer, second.answer) == ("One.", "Two.")
    assert ["response_format" in request for request in s.model.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Is it {80}?</think>It is 80.", "It is 80."),
        ("so it is</think>\n\nIt is 80.", "It is 80."),
    ],
)
async def test_thoughts_are_neither_shown_nor_kept(text: str, answer: str) -> None:
    async with scene([text, "Yes."], stream=True) as s:
        run = await s.agent.ask("What is oak?")
        await s.agent.ask("Sure?")
    assert run.answer == answer
    assert s.model.requests[1]["messages"][2]["content"] == answer
    taken_back = "so it is\n" if text.startswith("so") else ""
    assert "".join(s.shown) == f"{taken_back}{answer}Yes."


# --- calls that cannot be made --------------------------------------------------------------------

BAD_CALLS = {
    "a tool that is not there": (call("sell", door="oak"), "no tool 'sell'; the tools are: price"),
    "a tool for the app": (call("for_the_app"), "no tool 'for_the_app'"),
    "arguments missing": (call("buy"), "'door' is a required property"),
    "two at once": (call("buy", door="a") + call("buy", door="b"), "goes on after"),
}


@pytest.mark.parametrize(("reply", "told"), BAD_CALLS.values(), ids=BAD_CALLS)
async def test_a_bad_call_is_never_made_and_the_model_is_told(reply: str, told: str) -> None:
    async with scene([reply, call("buy", door="oak"), "Bought."]) as s:
        run = await s.agent.ask("Buy an oak door.")
    assert run.answer == "Bought."
    assert s.log.calls == [("buy", {"door": "oak"})]
    assert told in s.model.requests[1]["messages"][-1]["content"]
    assert [type(entry) for entry in run.transcript][:2] == [ModelReplied, Corrected]


# --- directives -----------------------------------------------------------------------------------


async def test_a_directive_is_followed_without_asking_the_model() -> None:
    async with scene([call("reserve", door="oak"), "It is ordered."]) as s:
        run = await s.agent.ask("Reserve oak.")
    assert run.answer == "It is ordered."
    assert s.log.calls == [
        ("reserve", {"door": "oak"}),
        ("order", {"door": "oak", "reason": "out of stock"}),
    ]
    assert len(s.model.requests) == 2
    assert [(c.by, c.step.tool, c.step.level) for c in run.calls] == [
        ("model", "reserve", 1),
        ("directive", "order", 2),
    ]
    told = s.model.last_message()
    assert "ordered oak: no. 77" in told
    # One answer to the one call that the model made, with the fate of the other.
    assert '"status": "out_of_stock"' in told
    assert "That call was made for you: do not make it again." in told
    assert "nextStep" not in s.model.told


async def test_a_tool_that_the_model_is_not_offered_is_not_followed_to() -> None:
    script = [call("order", door="oak"), call("reserve", door="oak"), "No."]
    async with scene(script, kept_back=["order"]) as s:
        run = await s.agent.ask("Reserve oak.")
    assert s.called == ["reserve"]
    stopped = [entry for entry in run.transcript if isinstance(entry, ChainStopped)]
    assert [entry.outcome for entry in stopped] == [Outcome.DECLINED]
    assert "was not made" in s.model.last_message()


@pytest.mark.parametrize("consent", [True, False])
async def test_the_model_never_reads_a_directive_or_the_words_for_one(consent: bool) -> None:
    """A server also puts its directive in words, for clients that did not declare."""
    script = [call("clear_out"), call("reserve", door="oak"), "Done."]
    async with scene(script, consent=Consent(consent), declare=False) as s:
        run = await s.agent.ask("Clear out, reserve oak.")
    said = [block for called in run.calls for block in called.step.result.content]
    assert sum("Next step" in str(block) for block in said) == 2
    assert "Next step" not in s.model.told
    assert TITLE in str(run.calls[0].step.result)
    assert TITLE not in s.model.told
    assert "nextTool" not in s.model.told


# --- a call whose answer was lost ---------------------------------------------------------------


class AsksAgain(Consent):
    """A host that can also be asked about a call whose effect is unknown."""

    def __init__(self, answer: bool) -> None:
        super().__init__(True)
        self._again = answer
        self.again: list[str] = []

    async def allows_again(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        self.again.append(tool.name)
        return self._again


async def test_the_models_own_call_whose_answer_was_lost_is_not_made_again_unasked() -> None:
    """Nor by a chain (TC-C-55)."""
    consent = AsksAgain(True)
    script = [call("pay", amount=80), call("pay", amount=80), "?", call("pay", amount=80), "Paid."]
    async with scene(script, consent=consent) as s:
        s.agent.call_timeout = 0.3
        assert (await s.agent.ask("Pay.")).answer == "?"
        assert (s.called, consent.again) == (["pay"], [])
        assert (await s.agent.ask("Pay all the same.")).answer == "Paid."
    assert (s.called, consent.again) == (["pay", "pay"], ["pay"])


# --- consent --------------------------------------------------------------------------------------


async def test_hints_that_are_not_trusted_decide_nothing() -> None:
    consent = Consent(True)
    script = [call("price", door="oak"), call("reserve", door="oak"), "Ordered."]
    async with scene(script, consent=consent, trust=False) as s:
        await s.agent.ask("Reserve oak.")
    assert [tool for tool, _ in consent.calls] == s.called == ["price", "reserve", "order"]
    for trust, called in ((False, []), (True, ["price", "reserve"])):
        async with scene(script, consent=AllowReadOnly(), trust=trust) as s:
            await s.agent.ask("Reserve oak.")
        # An order is annotated as harmless, which is no reason to ask less for a directive's.
        assert s.called == called


# --- audiences ------------------------------------------------------------------------------------


async def test_what_is_for_the_user_alone_is_kept_from_the_model() -> None:
    async with scene([call("code"), "You have your code.", "Hm."]) as s:
        run = await s.agent.ask("Give me a code.")
        await s.agent.ask("Which one?")
    assert SECRET in str(run.calls[0].step.result)
    assert SECRET not in s.model.told
    assert "431" not in s.model.told
    assert "[shown to the user, and not to you]" in s.model.told
    assert '\\"made\\": true' in s.model.told


# --- bounds ---------------------------------------------------------------------------------------


def endless(request: dict[str, Any]) -> str:
    return call("price", door=str(len(request["messages"])))


async def test_turns_are_bounded() -> None:
    async with scene(endless, bounds={"turns": 4}) as s:
        run = await s.agent.ask("Go on for ever.")
        assert run.outcome is RunOutcome.TURN_LIMIT
        assert len(run.replies) == len(s.model.requests) == 4
        assert run.report() == (
            "The model has replied 4 times. Done so far: "
            + "; ".join(["price (by the model)"] * 4)
            + "."
        )


async def test_time_is_bounded_while_a_tool_is_called() -> None:
    script = [native("pay", amount=1), "I am back."]
    async with scene(script, bounds={"seconds": 0.5}, tools="native") as s:
        run = await s.agent.ask("Wait.")
        assert run.outcome is RunOutcome.TIME_LIMIT
        assert "The call of pay was under way" in run.report()
        again = await s.agent.ask("Are you there?")
    assert again.answer == "I am back."
    # Each native call has its answer, or endpoints would refuse the conversation.
    roles = [message["role"] for message in s.model.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


# --- what would bring nothing new -----------------------------------------------------------------


@pytest.mark.parametrize("form", ["prompt", "native"])
async def test_a_repetition_ends_in_an_answer_without_tools(form: str) -> None:
    once = call("buy", door="oak") if form == "prompt" else native("buy", door="oak")
    other = call("price", door="elm") if form == "prompt" else native("price", door="elm")
    async with scene([once, other, once, "Bought once."], tools=form) as s:
        run = await s.agent.ask("Buy oak.")
        assert (run.outcome, run.answer) == (RunOutcome.ANSWERED, "Bought once.")
        assert s.called == ["buy", "price"]
        last = s.model.requests[-1]
        assert "tools" not in last
        words = last["messages"][-1]["content"]
        assert words.endswith(answer_now("Buy oak."))
        # Two messages of the user's in a row are refused by some models' templates.
        roles = [message["role"] for message in last["messages"]]
        assert ("user", "user") not in pairwise(roles)
        assert ("elm costs 80" in words) is (form == "prompt")
        s.model._script = iter(["Yes."])
        await s.agent.ask("Sure?")
    # What asked for the answer is not kept.
    assert answer_now("Buy oak.") not in str(s.model.requests[-1])


async def test_corrections_are_bounded() -> None:
    script = [call("buy", door="oak"), *[call("sell")] * 9]
    async with scene(script, bounds={"corrections": 2}) as s:
        run = await s.agent.ask("Go.")
    assert run.outcome is RunOutcome.CORRECTION_LIMIT
    assert run.answer is None
    assert len(s.model.requests) == 1 + 2 + 1
    assert "buy (by the model)" in run.report()
