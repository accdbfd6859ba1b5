"""Chains through the proxy: one call for the client, each step at the server.

The rules of following are in the client suite, which `test_suites.py` runs through the proxy.
"""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ElicitResult

from .scripted import Shop, asking, outcome, prepare, said
from .wire import CHAINING, JSON, NEW, OLD, Refused, proxy_in_a_thread, wire

pytestmark = pytest.mark.anyio


async def test_a_client_without_elicitation_is_not_asked(tmp_path: Path) -> None:
    of_the_weather = {"sure": {"method": "weather/ask"}}
    weather = {"result": {**asking()["result"], "inputRequests": of_the_weather}}
    shop = Shop(tmp_path, NEW, answers={"form": [asking("sure")], "weather": [weather]})
    with proxy_in_a_thread(shop.options("ask")) as proxy:
        async with wire(proxy, NEW, capabilities={"elicitation": {"url": {}}}) as client:
            result = await client.call("prepare")
            assert result["_meta"][CHAINING]["outcome"] == "declined"
            assert not client.heard
        async with wire(proxy, NEW, capabilities={}) as client:
            for tool, why in (
                ("form", "Elicitation not supported"),
                ("weather", "Method not found"),
            ):
                with pytest.raises(Refused) as refused:
                    await client.call(tool)
                assert refused.value.error["message"] == why


async def test_a_request_state_is_valid_for_one_answer_to_one_call_of_its_caller(
    tmp_path: Path,
) -> None:
    rounds = [asking("one"), asking("two", "three"), said("Paid.")]
    shop = Shop(tmp_path, NEW, answers={"pay": rounds, "form": [asking("sure")]})
    asks: JSON = {"name": "prepare", "arguments": {"to": "Ann"}}
    with proxy_in_a_thread(shop.options()) as proxy:
        async with wire(proxy, NEW, authorization="Bearer own") as client:
            answers = client.answering(await client.ask("tools/call", asks))
            *state, last = answers["requestState"]
            forged = "".join([*state, "B" if last == "A" else "A"])
            for wrong in (
                # As it would be if the proxy had been started anew meanwhile.
                {**asks, **answers, "requestState": forged},
                {**asks, **answers, "arguments": {"to": "Bob"}},
                {**answers, "name": "form", "arguments": {}},
            ):
                await refused_anew(client, wrong)
        for authorization in (None, "Bearer other"):
            async with wire(proxy, NEW, authorization=authorization) as other:
                await refused_anew(other, {**asks, **answers})
        # It comes on any connection of its caller.
        async with wire(proxy, NEW, authorization="Bearer own") as again:
            interim = await again.ask("tools/call", {**asks, **answers})
            assert interim["resultType"] == "input_required"
            # The answer to one question is none to a later one, nor to one of a further call.
            await refused_anew(again, {**asks, **answers})
            later = {**asks, **again.answering(interim)}
            assert len((await again.ask("tools/call", later))["content"]) == 3
            await refused_anew(again, later)
            assert len(shop.made("prepare")) == 1
            # One question is still open when the proxy ends, and does not keep it.
            await again.ask("tools/call", {"name": "form", "arguments": {}})


async def test_a_refusal_after_a_question_is_not_believed(tmp_path: Path) -> None:
    """The server has acted on the first request, and the code may be the client's own."""
    refused = {"error": {"code": -32021, "message": "No."}}
    shop = Shop(tmp_path, NEW, answers={"pay": [asking("sure"), refused]})

    async def accept(*_: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={})

    async with shop.host("stdio", asked=accept) as host:
        result = await prepare(host)
    assert result.meta is not None
    assert [one["status"] for one in result.meta[CHAINING]["followUps"]] == ["unknown"]


async def refused_anew(client: Any, params: JSON) -> None:
    with pytest.raises(Refused) as refused:
        await client.ask("tools/call", params)
    assert refused.value.error["code"] == -32602
    assert "Make the call again" in refused.value.error["message"]


async def test_a_question_that_nobody_answers_ends(tmp_path: Path) -> None:
    async def never(*_: Any) -> Any:
        await anyio.sleep_forever()

    asks: JSON = {"name": "prepare", "arguments": {"to": "Ann"}}
    (tmp_path / NEW).mkdir()
    late = {"pay": [{**said("Paid."), "after": 0.4}]}
    older, newer = Shop(tmp_path), Shop(tmp_path / NEW, NEW, answers=late)
    async with older.host("stdio", older.options("ask", parked_for=0.1), never) as host:
        assert outcome(await prepare(host)) == "declined"
    with proxy_in_a_thread(newer.options("ask", parked_for=0.2)) as proxy:
        async with wire(proxy, NEW) as client:
            # The time is that of the person, and not that of the server.
            result = await client.through("tools/call", asks)
            assert result["_meta"][CHAINING]["outcome"] == "completed"
            interim = await client.ask("tools/call", asks)
            await anyio.sleep(0.5)
            await refused_anew(client, {**asks, **client.answering(interim)})


@pytest.mark.parametrize("trusts", [True, False])
async def test_without_a_user_to_ask_a_step_is_suggested_to_the_model(
    trusts: bool, tmp_path: Path
) -> None:
    """What only a person could allow is suggested to the model, whose host then decides."""
    shop = Shop(tmp_path)
    async with shop.host("stdio", shop.options(None, trust_hints=trusts)) as host:
        result = await prepare(host)
    assert outcome(result) == ("completed" if trusts else "declined")
    assert len(shop.made()) == trusts
    items = [item.model_dump(by_alias=True) for item in result.content]
    marked = [one["text"] for one in items if CHAINING in (one["_meta"] or {})]
    assert [text.endswith('{"to": "Ann", "id": "0"}') for text in marked] == [True] * (not trusts)
    # Hosts that show `_meta` to their model show no arguments of a call that was not made.
    assert result.meta is not None
    (entry,) = result.meta[CHAINING]["followUps"]
    assert ("arguments" in entry) is trusts


async def test_a_follow_up_call_has_a_progress_token_of_its_own(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.host("stdio") as host:
        meta: Any = {"com.acme/approved": "prepare", "progressToken": 3}
        await host.call_tool("prepare", {"to": "Ann"}, meta=meta)
    first, second = [one["meta"] for one in shop.noted if "meta" in one]
    assert first["com.acme/approved"] == "prepare"
    assert second.keys() == {CHAINING, "progressToken"}
    assert first["progressToken"] != second["progressToken"]


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_results_of_a_server_that_is_not_followed_pass_unchanged(
    revision: str, tmp_path: Path
) -> None:
    """It has never heard of the extension, and means something else by the same names."""
    result = {
        **said("Assembled.")["result"],
        "content": [{"type": "text", "text": "x", "_meta": {CHAINING: {"describes": "nextTool"}}}],
        "structuredContent": {"step": 3, "nextStep": {"tool": "hammer", "minutes": 5}},
        "_meta": {"nextTool": "hammer"},
        "isError": None,
    }
    tool = {"name": "prepare", "inputSchema": {}, "outputSchema": {"type": "object"}}
    answers = {"prepare": [{"result": result}]}
    shop = Shop(tmp_path, revision, answers=answers, tools=[[tool]], advertises=False)
    with proxy_in_a_thread(shop.options()) as url:
        async with wire(url, revision) as client:
            received = await client.call("prepare")
            assert {name: received[name] for name in result} == result
            assert (await client.ask("tools/list"))["tools"] == [tool]
            assert CHAINING not in client.greeting
