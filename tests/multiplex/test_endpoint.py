"""The server's own model, where the client offers none: a real endpoint on a real socket."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ..kit.bank import World
from ..kit.model import Raw, Reply, ScriptedModel, Silence, error, scripted_model
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, SAVINGS
from .support import (
    FORM,
    ClientModel,
    given,
    multiplex,
    prompt,
    request,
    results,
    statuses,
    wanted_in,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]

KEY = "sk-for-tests-only"

STEPS = [
    request(1, ACCOUNTS),
    request(2, BALANCE, {"accountId": prompt("the savings account")}),
    request(3, BALANCE, {"accountId": EVERYDAY}),
]


@contextmanager
def configured(
    monkeypatch: pytest.MonkeyPatch, script: Any, **more: str
) -> Iterator[ScriptedModel]:
    """An endpoint that answers by the script, and an environment that names it."""
    with scripted_model(script) as endpoint:
        variables = {"URL": endpoint.url, "NAME": "scripted", "KEY": KEY, **more}
        for name, value in variables.items():
            monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
        monkeypatch.setattr("banking_server.agent.endpoint.RETRIES", 0)
        yield endpoint


async def test_the_endpoint_infers_where_the_client_offers_no_model(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with configured(monkeypatch, [SAVINGS, "a note"]) as endpoint:
        async with world.customer(mode=mode) as me:
            result = await multiplex(
                me, *STEPS, request(4, FORM, {"note": prompt("a note"), "colour": "blue"})
            )
    assert statuses(result) == ["done"] * 4
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS
    assert given(result) == {"note": "a note", "colour": "blue"}
    first, second = endpoint.requests
    _, user = first["messages"]
    assert wanted_in(user["content"]) == "the savings account"
    assert first["model"] == "scripted"
    # What one argument is to be shows in the others: the model is told the whole request.
    told = {"note": prompt("a note"), "colour": "blue"}
    assert json.dumps({"request to complete": {"name": FORM, "arguments": told}}) in (
        second["messages"][1]["content"].splitlines()
    )
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_the_clients_own_model_comes_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ClientModel({"the savings account": SAVINGS})
    with configured(monkeypatch, []) as endpoint:
        async with world.customer(sampling_callback=model) as me:
            result = await multiplex(me, *STEPS)
        assert endpoint.requests == []
    assert statuses(result) == ["done"] * 3
    assert len(model.received) == 1


FAILURES: dict[str, tuple[Any, str]] = {
    "bad key": (error(401, f"no such key: {KEY}"), "BANKING_MODEL_KEY"),
    "no completion": (Raw(b'{"choices": [{"message": {"content": {"a": 1}}}]}'), "no usable reply"),
    "empty answer": (Reply(""), "the model answered nothing"),
    "silence": (Silence(), "did not answer within 0.3 seconds"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failing_endpoint_is_a_clear_error_and_loses_no_result(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, said = FAILURES[name]
    with configured(monkeypatch, [action], TIMEOUT="0.3" if name == "silence" else "20"):
        async with world.customer() as me:
            result = await multiplex(me, *STEPS)
    assert statuses(result) == ["done", "failed", "done"]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: ")
    assert said in message
    assert "\n" not in message
    assert KEY not in json.dumps(result.structured_content)
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, BALANCE, "multiplex_tools"]
