"""How fast a customer may go, and what they are told who go faster, or find the bank busy."""

import logging
from typing import Any

import pytest
from mcp import Client, MCPError

from banking_server.bank import accounts as bank_accounts
from banking_server.bank.storage import BankBusy
from banking_server.server.build import build_server
from banking_server.tools import calling
from banking_server.tools.limits import BURST_SECONDS, RateLimiter

from ..kit.bank import World, settings, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY
from ..multiplex.support import MULTIPLEX, request
from ..server.in_memory import Seconds


def taken(limiter: RateLimiter, customer: str = "CUST001") -> int:
    """How many calls there is room for now."""
    count = 0
    while not limiter.wait(customer):
        count += 1
    return count


def test_a_burst_and_then_so_many_calls_a_second() -> None:
    seconds = Seconds()
    limiter = RateLimiter(4, seconds)
    assert taken(limiter) == taken(limiter, "CUST002") == 4 * BURST_SECONDS
    assert limiter.wait("CUST001") == pytest.approx(0.25)
    seconds.now += 0.2
    assert limiter.wait("CUST001") == pytest.approx(0.05)
    seconds.now += 0.05
    assert limiter.wait("CUST001") == 0
    seconds.now += 1
    assert taken(limiter) == 4
    seconds.now += 3600
    assert taken(limiter) == 4 * BURST_SECONDS


def server(world: World, seconds: Seconds) -> Any:
    chosen = settings(world.location).model_copy(update={"calls_per_second": 2})
    return build_server(chosen, customer="CUST001", clock=world.clock, monotonic=seconds)


@pytest.mark.anyio
async def test_a_call_too_many_is_refused_and_leaves_nothing(world: World) -> None:
    seconds = Seconds()
    async with Client(server(world, seconds)) as client:
        for _ in range(4):
            assert not (await client.call_tool(ACCOUNTS)).is_error
        refused = await client.call_tool(ACCOUNTS)
        assert len(world.events()) == 4
        seconds.now += 0.5
        assert not (await client.call_tool(ACCOUNTS)).is_error
    assert refused.is_error
    assert structured(refused)["status"] == "busy"
    assert "again in 1 second" in words(refused)
    assert len(world.events()) == 5


@pytest.mark.anyio
async def test_steps_inside_a_call_count_too(world: World) -> None:
    async with Client(server(world, Seconds())) as client:
        result = await client.call_tool(
            MULTIPLEX, {"tools": [request(number, ACCOUNTS) for number in range(5)]}
        )
    steps = structured(result)["results"]
    assert [each["status"] for each in steps] == ["done"] * 3 + ["failed"] * 2
    assert steps[-1]["structuredContent"]["status"] == "busy"
    assert [event["outcome"] for event in world.events()] == ["listed"] * 3 + ["completed"]


@pytest.mark.anyio
async def test_a_busy_bank_is_no_incident(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise BankBusy()

    monkeypatch.setattr(bank_accounts, "get_balance", busy)
    monkeypatch.setattr(bank_accounts, "list_accounts", busy)
    recorded: list[object] = []

    async def record(*arguments: object) -> None:
        recorded.append(arguments)
        raise BankBusy()

    monkeypatch.setattr(calling, "record", record)
    async with world.customer() as customer:
        for arguments in ({"accountId": EVERYDAY}, {"accountId": 5}):
            result = await customer.call(BALANCE, **arguments)
            assert result.is_error
            assert structured(result)["status"] == "busy"
            assert "incident" not in structured(result)
            assert "try again in a moment" in words(result)
        # Who waited for the bank in vain does not wait again for the record of that.
        assert len(recorded) == 1
        with pytest.raises(MCPError, match="try again in a moment"):
            await customer.client.read_resource("banking://accounts")
    incidents = [each for each in caplog.records if each.name.startswith("banking_server")]
    assert [each for each in incidents if each.levelno >= logging.WARNING] == []
