"""Pydantic AI's toolset: what its model is told, and that no call is repeated unasked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from mcp import Client

from tool_chaining import CLIENT_EXTENSION, Follower, NobodyToAsk

from ..kit.model import Reply, ScriptedModel, native, scripted_model
from ..kit.shop import CODE, Person, Shop

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    shop: Shop
    model: ScriptedModel
    person: Person
    agent: Any

    def told(self) -> str:
        """Return what the model was told last, of its call."""
        message = self.model.requests[-1]["messages"][-1]
        assert message["role"] == "tool"
        return str(message["content"])


@asynccontextmanager
async def scene(script: Any, answer: Any = True, **options: Any) -> AsyncIterator[Scene]:
    """Connect an agent of Pydantic AI, whose model is a script, with the shop."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from tool_chaining.adapters.pydantic_ai import ChainingToolset

    shop, person = Shop(), Person(answer)
    mode = options.pop("mode", "auto")
    ask_first = options.pop("ask_first", True)
    with scripted_model(script) as model:
        async with Client(shop.mcp, extensions=[CLIENT_EXTENSION], mode=mode) as client:
            follower = Follower(client, consent=person, **options)
            toolset = ChainingToolset(follower, ask_first=ask_first)
            provider = OpenAIProvider(base_url=model.url, api_key="none")
            agent = Agent(OpenAIChatModel("scripted", provider=provider), toolsets=[toolset])
            yield Scene(shop, model, person, agent)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_failed_audit_after_a_payment_invites_no_second_payment(mode: str) -> None:
    async with scene([native("prepare"), "The audit failed."], mode=mode) as s:
        assert (await s.agent.run("Pay.")).output == "The audit failed."
    assert s.shop.calls == ["prepare", "pay", "audit"]
    assert s.person.asked == [("prepare", 1, False), ("pay", 2, False), ("audit", 3, False)]
    words = "Prepared.\nPaid 5.\nError executing tool audit: The auditor is ill.\n"
    assert s.told().startswith(words)
    assert '"pay", has already run. Do not call it again.' in s.told()
    assert 'Calling "prepare" again could repeat what was already done.' in s.told()
    assert "try again" not in s.told()


async def test_a_tool_that_fails_is_no_reason_to_try_again() -> None:
    async with scene([native("audit"), "No."]) as s:
        await s.agent.run("Audit.")
    assert s.told() == "audit failed:\nError executing tool audit: The auditor is ill."


@pytest.mark.parametrize("first", ["pay", "prepare"])
async def test_a_call_whose_answer_is_lost_is_repeated_only_by_a_persons_yes(first: str) -> None:
    """Whether the model made the call, or a directive."""
    call = native(first, **({"amount": 5} if first == "pay" else {}))
    script = [call, "It may have been paid.", native("pay", amount=5), "Yes."]
    async with scene(script, call_timeout=0.5) as s:
        s.shop.stalls = {"pay"}
        await s.agent.run("Pay.")
        assert s.shop.calls.count("pay") == 1
        assert "not known whether" in s.told()
        assert "again unless you know that it did not" in s.told()
        assert "try again" not in s.told()
        s.shop.stalls = set()
        s.person.asked.clear()
        await s.agent.run("Pay all the same.")
    assert s.person.asked[0] == ("pay", 1, True)


async def test_a_chain_that_was_cancelled_is_repeated_only_by_a_persons_yes() -> None:
    """The payment of the cancelled run is in doubt for the next one."""
    from pydantic_ai import CancellationToken
    from pydantic_ai.exceptions import RunCancelled

    token = CancellationToken()
    async with scene([native("prepare"), native("prepare"), "Stopped."]) as s:
        s.shop.stalls = {"pay"}

        async def cancel() -> None:
            await s.shop.stalled.wait()
            token.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            with pytest.raises(RunCancelled) as cancelled:
                await s.agent.run("Pay.", cancellation_token=token)
        assert s.shop.calls == ["prepare", "pay"]
        s.shop.stalls, s.person.agrees_again = set(), False
        ended = await s.agent.run("Go on.", message_history=cancelled.value.all_messages())
    assert ended.output == "Stopped."
    assert s.person.asked[-1] == ("pay", 2, True)
    assert s.shop.calls == ["prepare", "pay", "prepare"], "no second payment"
    assert "an earlier call may have taken effect" in s.told()


async def test_what_is_for_the_user_alone_reaches_the_user_and_no_model() -> None:
    seen: list[Any] = []
    async with scene([native("show_code"), "Sent."], on_step=seen.append) as s:
        await s.agent.run("A code, please.")
    assert seen[0].result["content"][0]["text"] == CODE
    assert "431" not in s.model.told
    withheld = "[shown to the user, and not to you]"
    assert s.told() == f'{withheld}\n{{"status": "sent", "text": "{withheld}"}}'


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(False, "the user did not agree"), (NobodyToAsk, "nobody can be asked to allow it")],
)
async def test_without_a_yes_the_model_is_told_and_nothing_is_called(
    answer: Any, reason: str
) -> None:
    async with scene([native("pay", amount=5), "No."], answer) as s:
        await s.agent.run("Pay.")
    assert s.shop.calls == []
    assert s.told() == f"pay was not called: {reason}. Do not call it again for this request."


async def test_calls_of_one_reply_are_made_one_after_another_and_unknown_tools_never() -> None:
    both = Reply(calls=[("prepare", {}), ("sell", {}), ("pay", {"amount": 7})])
    async with scene([both, "Done."], ask_first=False) as s:
        await s.agent.run("Both.")
        prepared, unknown, paid = s.model.requests[-1]["messages"][-3:]
    assert "Prepared." in prepared["content"]
    assert "Unknown tool" in unknown["content"]
    assert "Paid 7." in paid["content"]
    # Without `ask_first`, the framework decides on the model's own calls.
    assert [one[:2] for one in s.person.asked] == [("pay", 2), ("audit", 3), ("audit", 2)]
    assert s.shop.calls == ["prepare", "pay", "audit", "pay", "audit"]
