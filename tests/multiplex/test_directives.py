"""A step's directive ends the sequence, and is the whole call's."""

import json

import pytest

from banking_server.chaining import CLIENT_EXTENSION, Outcome

from ..kit.bank import World, next_tool, structured, words
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    HANDOFF,
    LOCKED,
    LOCKED_TEXT,
    PREPARE,
    TO_AN_AGENT,
)
from .support import MULTIPLEX, ClientModel, multiplex, prompt, request, results

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

LOCKED_STEPS = [
    request(1, ACCOUNTS),
    request(2, PREPARE, {"fromAccountId": LOCKED, "amount": 5}),
    request(3, HANDOFF, {"reason": "never asked"}),
    request(4, BALANCE, {"accountId": prompt("never asked either")}),
]


async def test_a_directive_stops_the_sequence_and_becomes_the_whole_calls(
    world: World, mode: str
) -> None:
    model = ClientModel({})
    async with world.customer(mode=mode, sampling_callback=model) as me:
        result = await multiplex(me, *LOCKED_STEPS)
    assert next_tool(result) == TO_AN_AGENT
    # This client follows no directives, so its model is told in words.
    assert "Next step suggested by this server" in words(result, "assistant")
    assert HANDOFF in words(result, "assistant")
    # Once in structured content too, and in no copy of it.
    assert structured(result)["nextStep"] == TO_AN_AGENT
    assert "nextStep" not in words(result) + json.dumps(results(result))
    assert LOCKED_TEXT in structured(result)["message"]
    # What is for the user alone reaches them, and no list of results.
    assert result.content[0].text == LOCKED_TEXT  # type: ignore[union-attr]
    assert not result.is_error
    assert structured(result)["status"] == "stopped"
    listed, stopped, *rest = results(result)
    assert (listed["status"], stopped["status"]) == ("done", "done")
    assert stopped["structuredContent"]["status"] == "account_locked"
    assert stopped["content"] == []
    for step, number in zip(rest, (3, 4), strict=True):
        assert (step["id"], step["status"]) == (number, "not_run")
        assert step["message"] == "An earlier step's result names the tool to call next."
    assert model.received == []
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, PREPARE, MULTIPLEX]
    assert world.stored()["handoff"] == []


async def test_a_chaining_client_follows_the_directive_of_a_sequence(world: World) -> None:
    async with world.customer(
        answers=[{"picked": "callback"}], extensions=[CLIENT_EXTENSION]
    ) as me:
        chain = await me.chain(MULTIPLEX, tools=LOCKED_STEPS)
    assert chain.outcome is Outcome.COMPLETED
    assert [step.tool for step in chain.steps] == [MULTIPLEX, HANDOFF]
    assert chain.steps[1].arguments == (next_tool(chain.steps[0].result) or {})["arguments"]
    assert words(chain.steps[0].result, "user") in words(chain.merged())
    assert world.sql("SELECT choice FROM handoff") == [("callback",)]
    # The steps belong to the call that they are part of, and so to its place in the chain.
    trail = [
        (event["tool"], event["chain_id"], event["chain_level"], event["chain_previous_tool"])
        for event in world.events()
    ]
    assert trail == [
        (ACCOUNTS, chain.chain_id, 1, None),
        (PREPARE, chain.chain_id, 1, None),
        (MULTIPLEX, chain.chain_id, 1, None),
        (HANDOFF, chain.chain_id, 2, MULTIPLEX),
    ]
