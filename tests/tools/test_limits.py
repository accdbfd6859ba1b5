"""How fast a customer may go, and what they are told who go faster, or find the bank busy."""

import logging
from typing import Any

import pytest
from mcp import Client, MCPError

from banking_server.bank import accounts as bank_accounts
from banking_server.bank.storage import BankBusy
from banking_server.server.build import build_server
from banking_server.tools import calling

from ..kit.bank import World, settings, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY
from ..multiplex.support import MULTIPLEX, request
from ..server.in_memory import Seconds


def server(world: World, seconds: Seconds) -> Any:
    chosen = settings(world.location).model_copy(update={"calls_per_second": 2})
    return build_server(chosen, customer="CUST001", clock=world.clock, monotonic=seconds)


@pytest.mark.anyio
async def test_calls_beyond_the_rate_limit_are_refused(world: World) -> None:
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
async def test_multiplexed_steps_count_toward_the_rate_limit(world: World) -> None:
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
