"""Each step is the caller's own call: authorized, audited and isolated, over HTTP too."""

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import InputRequiredResult

from banking_server.chaining import IDENTIFIER
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.tokens import Tokens, load_keys

from ..kit.bank import Customer, World, code_of, everything, next_tool, settings
from ..kit.model import ScriptedModel, error, scripted_model
from ..kit.words import (
    ACCOUNTS,
    BALANCE,
    CHOICE,
    CONFIRM,
    EVERYDAY,
    FOREIGN,
    PREPARE,
    SAVINGS,
    STATEMENT,
    TO_SAVINGS,
)
from .support import (
    MULTIPLEX,
    ClientModel,
    multiplex,
    multiplex_round,
    prompt,
    ref,
    request,
    results,
    statuses,
    wanted_in,
)

pytestmark = pytest.mark.anyio

BOTH_SCOPES = ("bank:read", "bank:transfer")


class RoundRobin(httpx2.AsyncBaseTransport):
    """Sends each request to the next of several servers, as a load balancer would."""

    def __init__(self, apps: list[Any]) -> None:
        self.next = itertools.cycle([httpx2.ASGITransport(app) for app in apps])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await next(self.next).handle_async_request(request)


class HttpBank:
    """Two HTTP servers of one bank, which know nothing of each other but the file."""

    def __init__(self, world: World, apps: list[Any]) -> None:
        self.world = world
        self.settings = settings(world.location)
        self.apps = apps

    @asynccontextmanager
    async def customer(
        self, customer: str, mode: str, scopes: tuple[str, ...] = BOTH_SCOPES, **options: Any
    ) -> AsyncIterator[Customer]:
        """Connect a customer with a token of their own."""
        tokens = Tokens(load_keys(self.settings).tokens, self.settings.resource)
        token = tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(minutes=5))
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, transport=RoundRobin(self.apps)
        )
        person = Customer(mode)
        person.answers = options.pop("answers", [])
        async with Client(
            streamable_http_client(self.settings.resource, http_client=http),
            mode=mode,
            elicitation_callback=person.on_question,
            **options,
        ) as person.client:
            yield person


@asynccontextmanager
async def http_bank(world: World) -> AsyncIterator[HttpBank]:
    async with AsyncExitStack() as running:
        apps = []
        # A session would live in one of them.
        chosen = settings(world.location).model_copy(update={"max_sessions": 0})
        for _ in range(2):
            app = http_app(chosen, clock=world.clock)
            await running.enter_async_context(app.router.lifespan_context(app))
            apps.append(app)
        yield HttpBank(world, apps)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model that knows of one account, and nothing else; the servers are told of it."""

    def answer(asked: dict[str, Any]) -> Any:
        wanted = wanted_in(asked["messages"][-1]["content"])
        return SAVINGS if wanted == "savings" else error(500, "the oracle at 10.9.8.7 is silent")

    with scripted_model(answer) as model:
        monkeypatch.setenv("BANKING_MODEL_URL", model.url)
        monkeypatch.setenv("BANKING_MODEL_NAME", "scripted")
        monkeypatch.setenv("BANKING_MODEL_RETRIES", "0")
        yield model


async def test_a_token_that_may_only_read_cannot_transfer_by_way_of_a_sequence(
    world: World, mode: str
) -> None:
    chain = {"chainId": "0b0e7a3c-chain", "level": 2, "previousTool": ACCOUNTS}
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", mode, scopes=("bank:read",)) as me,
    ):
        result = await me.call(
            MULTIPLEX,
            tools=[
                request(1, ACCOUNTS),
                request(2, PREPARE, {**TO_SAVINGS, "amount": 5}),
                request(3, CONFIRM, {"transferId": "tr_x", "action": "cancel"}),
                request(4, BALANCE, {"accountId": SAVINGS}),
            ],
            meta={IDENTIFIER: chain},
        )
    assert result.is_error
    assert statuses(result) == ["done", "failed", "failed", "done"]
    for step in results(result)[1:3]:
        assert step["message"] == f"{step['tool']} needs a token with the scope bank:transfer."
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
            (PREPARE, "scope_missing", None),
            (CONFIRM, "scope_missing", None),
            (BALANCE, "balance", SAVINGS),
            (MULTIPLEX, "completed", None),
        )
    ]


@pytest.mark.parametrize("amount", [ref("#/0/nowhere"), prompt("how much"), "no number"])
async def test_nothing_is_looked_up_or_inferred_for_a_step_without_its_scope(
    world: World, mode: str, amount: Any
) -> None:
    model = ClientModel({})
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", mode, scopes=("bank:read",), sampling_callback=model) as me,
    ):
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, PREPARE, {**TO_SAVINGS, "amount": amount})
        )
    assert results(result)[1]["message"] == f"{PREPARE} needs a token with the scope bank:transfer."
    assert (PREPARE, "scope_missing") in world.outcomes()
    assert model.received == []


async def test_a_step_without_its_scope_that_cannot_be_recorded_is_a_failure_of_ours(
    world: World, mode: str
) -> None:
    world.sql(
        "CREATE TRIGGER full BEFORE INSERT ON audit_event WHEN NEW.outcome = 'scope_missing' "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", mode, scopes=("bank:read",)) as me,
    ):
        result = await multiplex(
            me, request(1, PREPARE, {**TO_SAVINGS, "amount": 5}), request(2, ACCOUNTS)
        )
    assert statuses(result) == ["failed", "done"]
    failed, _ = results(result)
    assert failed["structuredContent"]["status"] == "unavailable"
    assert failed["structuredContent"]["incident"]
    assert "scope" not in everything(result)
    assert world.outcomes() == [(ACCOUNTS, "listed"), (MULTIPLEX, "completed")]


async def test_questions_may_be_answered_through_another_server(world: World) -> None:
    """Sampling and a confirmation: each round goes to the other of two servers."""
    model = ClientModel({"everyday": EVERYDAY, "savings": SAVINGS})
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", "auto", sampling_callback=model, answers=[{"agreed": True}]) as me,
    ):
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(
                2,
                PREPARE,
                {
                    "fromAccountId": prompt("everyday"),
                    "toAccountId": prompt("savings"),
                    "amount": 1.01,
                },
            ),
            request(
                3,
                CONFIRM,
                {"transferId": ref("#/1/structuredContent/transferId"), "action": "confirm"},
            ),
        )
    assert statuses(result) == ["done"] * 3, results(result)
    assert results(result)[2]["structuredContent"]["status"] == "posted"
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, PREPARE, CONFIRM, MULTIPLEX]


async def test_a_state_is_good_for_its_own_customer_only(world: World) -> None:
    steps = [request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("mine")})]
    model = ClientModel({})
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", "auto", sampling_callback=model) as mine,
        bank.customer("CUST002", "auto", sampling_callback=model) as other,
    ):
        asked = await multiplex_round(mine, *steps)
        assert isinstance(asked, InputRequiredResult)
        before = len(world.events())
        with pytest.raises(MCPError, match="requestState"):
            await multiplex_round(other, *steps, request_state=asked.request_state)
        assert len(world.events()) == before


async def test_without_a_way_to_ask_the_error_says_what_to_do(world: World) -> None:
    """2025-11-25 without a session: the client's model cannot be reached, though it is offered.

    The customer cannot be asked either, and so is told to give the code.
    """
    model = ClientModel({})
    async with (
        http_bank(world) as bank,
        bank.customer("CUST001", "legacy", sampling_callback=model) as me,
    ):
        result = await multiplex(
            me,
            request(1, PREPARE, {**TO_SAVINGS, "amount": 2.01}),
            request(
                2,
                CONFIRM,
                {"transferId": ref("#/0/structuredContent/transferId"), "action": "confirm"},
            ),
            request(3, BALANCE, {"accountId": prompt("savings")}),
        )
        assert model.received == []
        assert me.asked == []
        assert statuses(result) == ["done", "done", "failed"]
        prepared, unconfirmed, unanswered = results(result)
        assert unconfirmed["structuredContent"]["status"] == "confirmation_needed"
        assert unanswered["message"].startswith("arguments.accountId: ")
        assert "BANKING_MODEL_URL" in unanswered["message"]
        confirm = {
            "transferId": prepared["structuredContent"]["transferId"],
            "action": "confirm",
            "confirmationCode": code_of(result),
        }
        confirmed = await multiplex(me, request(1, CONFIRM, confirm))
    assert results(confirmed)[0]["structuredContent"]["status"] == "posted"


async def test_the_servers_model_answers_over_http(
    world: World, endpoint: ScriptedModel, mode: str
) -> None:
    async with http_bank(world) as bank, bank.customer("CUST001", mode) as me:
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("savings")})
        )
    assert statuses(result) == ["done", "done"]
    assert results(result)[1]["structuredContent"]["accountId"] == SAVINGS


async def test_a_strangers_error_is_an_incident_and_no_detail_of_our_endpoint(
    world: World, endpoint: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    async with http_bank(world) as bank, bank.customer("CUST001", "auto") as me:
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, BALANCE, {"accountId": prompt("what it costs")})
        )
    assert statuses(result) == ["done", "failed"]
    message = results(result)[1]["message"]
    assert message.startswith("arguments.accountId: the bank's language model gives no answer now.")
    assert "127.0.0.1" not in message
    assert "10.9.8.7" not in message
    incident = message.rstrip(".").split()[-1]
    (line,) = [line for line in caplog.text.splitlines() if incident in line]
    assert "HTTP 500" in line


async def test_two_customers_at_once_share_nothing_of_one_server(
    world: World, endpoint: ScriptedModel
) -> None:
    """With the client's model and with the server's, in the middle of each other's calls."""
    own = {"CUST001": EVERYDAY, "CUST002": FOREIGN}
    outcomes: dict[str, list[Any]] = {customer: [] for customer in own}
    models = {customer: ClientModel({"mine": account}) for customer, account in own.items()}

    async def calls(bank: HttpBank, customer: str, options: dict[str, Any], wanted: str) -> None:
        async with bank.customer(customer, "auto", **options) as me:
            for number in range(3):
                result = await multiplex(
                    me,
                    request(f"{customer} {number}", ACCOUNTS),
                    request("inferred", BALANCE, {"accountId": prompt(wanted)}),
                )
                outcomes[customer].append(result)

    async with http_bank(world) as bank, anyio.create_task_group() as at_once:
        for customer, model in models.items():
            at_once.start_soon(calls, bank, customer, {"sampling_callback": model}, "mine")
            at_once.start_soon(calls, bank, customer, {}, "savings")

    accounts = {
        customer: {
            account
            for (account,) in world.sql(
                "SELECT account_id FROM account WHERE customer_id = ?", customer
            )
        }
        for customer in own
    }
    for customer, other in (("CUST001", "CUST002"), ("CUST002", "CUST001")):
        assert len(outcomes[customer]) == 6
        assert len(models[customer].received) == 3
        seen = [json.dumps(results(one)[0]) for one in outcomes[customer]]
        seen.append(models[customer].told)
        for account in accounts[other]:
            assert not any(account in text for text in seen)
    assert len(endpoint.requests) == 6
    for asked in endpoint.requests:
        text = asked["messages"][-1]["content"]
        assert sum(any(one in text for one in ids) for ids in accounts.values()) == 1
    # An id that the model made up of somebody else's is as unknown as any other.
    refused = [one for one in outcomes["CUST002"] if statuses(one)[1] == "failed"]
    assert len(refused) == 3
    assert "you have nothing with the id 'acc_savings_001'" in everything(refused[0])


async def test_two_customers_in_the_middle_of_their_calls_share_nothing(
    world: World, mode: str
) -> None:
    """At the same time, in one process; and nothing stays from one call to the next either."""
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
            mine = {"CUST001": EVERYDAY, "CUST002": FOREIGN}[customer]
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
        told = models[customer].told
        for foreign in (*(account for (account,) in accounts), f"of {other}"):
            assert foreign not in told
            assert foreign not in everything(outcomes[customer])

    # Nor does anything stay from one call to the next of the same customer.
    again = ClientModel({"my account": SAVINGS})
    async with world.customer(mode=mode, sampling_callback=again) as me:
        await multiplex(me, request("fresh", BALANCE, {"accountId": prompt("my account")}))
    assert "of CUST001" not in again.told
    assert EVERYDAY not in again.told


@pytest.mark.parametrize(
    ("tool", "argument", "foreign", "more"),
    [
        (BALANCE, "accountId", FOREIGN, {}),
        (STATEMENT, "accountId", FOREIGN, {}),
        (PREPARE, "fromAccountId", FOREIGN, {"toAccountId": SAVINGS, "amount": 5}),
        (CONFIRM, "transferId", ..., {"action": "confirm", "confirmationCode": "123456"}),
        (CHOICE, "handoffId", ..., {"choice": "callback"}),
    ],
)
async def test_somebody_elses_id_is_answered_like_one_that_does_not_exist(
    world: World, mode: str, tool: str, argument: str, foreign: Any, more: dict[str, Any]
) -> None:
    if foreign is ...:
        async with world.customer("CUST002", mode=mode) as other:
            made = await (
                other.call(PREPARE, fromAccountId=FOREIGN, toAccountId="acc_savings_002", amount=5)
                if tool == CONFIRM
                else other.call("request_agent_handoff", reason="A question")
            )
        assert made.structured_content is not None
        foreign = made.structured_content[argument]
    unknown = foreign[:-3] + "zzz"
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, tool, {**more, argument: foreign}),
            request(2, tool, {**more, argument: unknown}),
        )
    theirs, nobodys = (json.dumps({**step, "id": 0}) for step in results(result))
    assert statuses(result) == ["failed", "failed"]
    assert theirs.replace(foreign, "ID") == nobodys.replace(unknown, "ID")
    assert next_tool(result) is None


async def test_every_step_and_the_whole_leave_an_event_of_their_own(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as me:
        await me.call(
            MULTIPLEX,
            tools=[
                request(1, ACCOUNTS),
                request(2, BALANCE, {"accountId": 5}),
                request(3, BALANCE, {"accountId": FOREIGN}),
                request(4, PREPARE, {**TO_SAVINGS, "amount": 5}),
                request(5, BALANCE, {"accountId": prompt("nobody answers")}),
                request(6, BALANCE, {"accountId": ref("#/1/structuredContent/field")}),
            ],
            meta={
                IDENTIFIER: {
                    "chainId": "0b0e7a3c-chain", "level": 2, "previousTool": ACCOUNTS,
                }
            },
        )  # fmt: skip
    events = world.events()
    assert [(event["tool"], event["outcome"]) for event in events] == [
        (ACCOUNTS, "listed"),
        (BALANCE, "invalid_arguments"),
        (BALANCE, "not_found"),
        (PREPARE, "prepared"),
        (MULTIPLEX, "completed"),
    ]
    assert {event["customer_id"] for event in events} == {"CUST001"}
    ((transfer,),) = world.sql("SELECT transfer_id FROM transfer")
    assert [event["subject"] for event in events][3] == transfer
    assert {event["chain_level"] for event in events} == {2}
    assert {event["chain_previous_tool"] for event in events} == {ACCOUNTS}
    assert len({event["chain_id"] for event in events}) == 1


async def test_a_repeated_prepare_in_a_sequence_is_the_same_transfer(
    world: World, mode: str
) -> None:
    """The same limits and the same protection from repeats as for single calls."""
    step = {**TO_SAVINGS, "amount": 5}
    async with world.customer(mode=mode) as me:
        result = await multiplex(me, request(1, PREPARE, step), request(2, PREPARE, step))
        single = await me.prepare(amount=5)
    first, second = (one["structuredContent"]["transferId"] for one in results(result))
    assert single.structured_content is not None
    assert first == second == single.structured_content["transferId"]


async def test_wrong_codes_are_counted_over_steps_as_over_calls(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as me:
        prepared = await me.prepare(amount=5)
        code = code_of(prepared)
        assert prepared.structured_content is not None
        confirm = {"transferId": prepared.structured_content["transferId"], "action": "confirm"}
        guesses = [f"{(int(code) + n) % 1_000_000:06d}" for n in range(1, 6)]
        result = await multiplex(
            me,
            *(
                request(guess, CONFIRM, {**confirm, "confirmationCode": guess})
                for guess in [*guesses, code]
            ),
        )
    assert statuses(result) == ["failed"] * 6
    assert world.sql("SELECT status FROM transfer") == [("voided",)]
