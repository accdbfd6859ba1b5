"""Each step is the caller's own call: authorized, audited and isolated, over HTTP too."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, InputRequiredResult

from banking_server.chaining import IDENTIFIER
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.tokens import Tokens, load_keys

from ..kit.bank import Customer, World, everything, settings
from ..kit.model import ScriptedModel, error, scripted_model
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    EVERYDAY,
    FOREIGN,
    PREPARE,
    SAVINGS,
    TO_SAVINGS,
)
from .support import (
    MULTIPLEX,
    ClientModel,
    answered,
    multiplex,
    multiplex_round,
    prompt,
    request,
    results,
    statuses,
    take,
    wanted_in,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def over_http(
    world: World, customer: str = "CUST001", mode: str = "auto", **options: Any
) -> AsyncIterator[Customer]:
    """Connect a customer with a token that may only read, to a server without sessions."""
    chosen = settings(world.location).model_copy(update={"max_sessions": 0})
    app = http_app(chosen, clock=world.clock)
    token = Tokens(load_keys(chosen).tokens, chosen.resource).mint(
        customer, ["bank:read"], now=utc_now(), lifetime=timedelta(minutes=5)
    )
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, transport=httpx2.ASGITransport(app)
    )
    person = Customer(mode)
    async with (
        app.router.lifespan_context(app),
        Client(
            streamable_http_client(chosen.resource, http_client=http), mode=mode, **options
        ) as person.client,
    ):
        yield person


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model that knows of one account, and nothing else; the servers are told of it."""

    def answer(asked: dict[str, Any]) -> Any:
        wanted = wanted_in(asked["messages"][-1]["content"])
        return SAVINGS if wanted == "savings" else error(500, "the oracle at 10.9.8.7 is silent")

    with scripted_model(answer) as model:
        monkeypatch.setenv("BANKING_MODEL_URL", model.url)
        monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
        monkeypatch.setattr("banking_server.agent.endpoint.RETRIES", 0)
        yield model


async def test_a_step_without_its_scope_is_refused_and_every_step_leaves_an_event(
    world: World,
) -> None:
    """Nothing is looked up or inferred for it; and the chain is the whole call's."""
    chain = {"chainId": "0b0e7a3c-chain", "level": 2, "previousTool": ACCOUNTS}
    model = ClientModel({})
    async with over_http(world, sampling_callback=model) as me:
        result = await me.call(
            MULTIPLEX,
            tools=[
                request(1, ACCOUNTS),
                request(2, PREPARE, {**TO_SAVINGS, "amount": 5}),
                request(3, PREPARE, {**TO_SAVINGS, "amount": prompt("how much")}),
                request(4, PREPARE, {**TO_SAVINGS, "amount": take("[0].nowhere")}),
                request(5, BALANCE, {"accountId": SAVINGS}),
                request(6, BALANCE, {"accountId": 5}),
                request(7, BALANCE, {"accountId": FOREIGN}),
            ],
            meta={IDENTIFIER: chain},
        )
    assert result.is_error
    assert statuses(result) == ["done", *["failed"] * 3, "done", "failed", "failed"]
    for step in results(result)[1:4]:
        assert step["message"] == f"{step['tool']} needs a token with the scope bank:transfer."
    assert model.received == []
    assert world.stored()["transfer"] == []
    assert world.events() == [
        {
            "customer_id": "CUST001",
            "tool": tool,
            "outcome": outcome,
            "subject": subject,
            "chain_id": "0b0e7a3c-chain",
            "chain_level": 2,
            "chain_previous_tool": ACCOUNTS,
        }
        for tool, outcome, subject in (
            (ACCOUNTS, "listed", None),
            *[(PREPARE, "scope_missing", None)] * 3,
            (BALANCE, "balance", SAVINGS),
            (BALANCE, "invalid_arguments", None),
            (BALANCE, "not_found", None),
            (MULTIPLEX, "completed", None),
        )
    ]


async def test_a_question_is_answered_through_another_server_by_its_own_customer(
    world: World,
) -> None:
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("mine")})]
    model = ClientModel({})
    async with (
        over_http(world, sampling_callback=model) as me,
        over_http(world, sampling_callback=model) as me_again,
        over_http(world, "CUST002", sampling_callback=model) as other,
    ):
        asked = await multiplex_round(me, *steps)
        assert isinstance(asked, InputRequiredResult)
        answers = answered(asked, SAVINGS)
        before = world.events()
        with pytest.raises(MCPError, match="requestState"):
            await multiplex_round(other, *steps, **answers)
        assert world.events() == before
        result = await multiplex_round(me_again, *steps, **answers)
    assert isinstance(result, CallToolResult)
    assert statuses(result) == ["done", "done"]
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, BALANCE, MULTIPLEX]


async def test_without_a_way_to_ask_the_error_says_what_to_do(world: World) -> None:
    """2025-11-25 without a session: the client's model cannot be reached, though it is offered."""
    model = ClientModel({})
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("savings")})]
    async with over_http(world, mode="legacy", sampling_callback=model) as me:
        result = await multiplex(me, *steps)
    assert model.received == []
    assert statuses(result) == ["done", "failed"]
    assert "BANKING_MODEL_URL" in results(result)[1]["message"]


async def test_a_strangers_error_is_an_incident_and_no_detail_of_our_endpoint(
    world: World, endpoint: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    async with over_http(world) as me:
        result = await multiplex(
            me,
            request(1, BALANCE, {"accountId": prompt("savings")}),
            request(2, BALANCE, {"accountId": prompt("what it costs")}),
        )
    assert statuses(result) == ["done", "failed"]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: the bank's language model gives no answer now.")
    assert "127.0.0.1" not in message
    assert "10.9.8.7" not in message
    incident = message.rstrip(".").split()[-1]
    (line,) = [line for line in caplog.text.splitlines() if incident in line]
    assert "HTTP 500" in line


async def test_two_customers_in_the_middle_of_their_calls_share_nothing(
    world: World, mode: str
) -> None:
    """At the same time, in one process."""
    both_are_asked = anyio.Event()
    own = {"CUST001": EVERYDAY, "CUST002": FOREIGN}
    models = {name: ClientModel({"my account": account}) for name, account in own.items()}
    outcomes = {}

    async def call(customer: str) -> None:
        async def when_both_are_asked(context: Any, params: Any) -> Any:
            answer = await models[customer](context, params)
            if all(one.received for one in models.values()):
                both_are_asked.set()
            with anyio.fail_after(30):
                await both_are_asked.wait()
            return answer

        async with world.customer(customer, mode=mode, sampling_callback=when_both_are_asked) as me:
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
        told = models[customer].told
        for foreign in (*(account for (account,) in accounts), f"of {other}"):
            assert foreign not in told
            assert foreign not in everything(outcomes[customer])
