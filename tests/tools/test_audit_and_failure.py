"""What the auditor finds, and what is said when the bank itself fails."""

import logging
from typing import Any

import pytest

from banking_server.bank import accounts as bank_accounts
from banking_server.bank.storage import BankBusy
from banking_server.tools import calling
from tool_chaining import IDENTIFIER

from ..kit.bank import World, everything, next_tool, structured, words
from ..kit.words import ACCOUNTS, BALANCE, EVERYDAY, HANDOFF, PREPARE, SAVINGS

pytestmark = pytest.mark.anyio


PROVENANCE = {IDENTIFIER: {"chainId": "chain-1", "level": 2, "previousTool": PREPARE}}


@pytest.mark.parametrize("can_be_asked", [False, True])
async def test_the_provenance_of_a_call_is_recorded(
    world: World, mode: str, can_be_asked: bool
) -> None:
    """Recorded whatever becomes of the call, and believed in nothing."""
    answers: list[Any] | None = ["decline", {"picked": "callback"}] if can_be_asked else None
    async with world.customer(mode=mode, answers=answers) as customer:
        for tool, arguments in [
            (PREPARE, {"amount": 5}),
            (HANDOFF, {"reason": "x"}),
            (BALANCE, {"accountId": 5}),
            (ACCOUNTS, {}),
            ("no_such_tool", {}),
        ]:
            await customer.call(tool, meta=PROVENANCE, **arguments)
    assert [
        (event["chain_id"], event["chain_level"], event["chain_previous_tool"])
        for event in world.events()
    ] == [("chain-1", 2, PREPARE)] * 5


@pytest.mark.only_on("sqlite", "postgresql")
async def test_a_database_failure_is_an_incident_without_details(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Each table that a call needs is dropped behind the server's back."""
    calls: list[tuple[str, dict[str, Any], str]] = [
        (HANDOFF, {"reason": "Lost card"}, "handoff"),
        (PREPARE, {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 5}, "transfer"),
        (ACCOUNTS, {}, "account"),
        (ACCOUNTS, {}, "audit_event"),
        (BALANCE, {"accountId": 5}, "audit_event"),
        ("no_such_tool", {}, "audit_event"),
    ]
    async with world.customer(can_be_asked=True) as customer:
        dropped: set[str] = set()
        incidents = []
        for tool, arguments, table in calls:
            if table not in dropped:
                world.drop(table)
                dropped.add(table)
            customer.answers = [{"picked": "callback"}] if tool == HANDOFF else []
            result = await customer.call(tool, **arguments)
            assert result.is_error, (tool, table)
            incident = structured(result)["incident"]
            incidents.append(incident)
            assert structured(result)["status"] == "unavailable"
            assert "temporarily unavailable" in words(result)
            assert incident in words(result)
            assert next_tool(result) is None
            says_nothing(everything(result), table)

    assert len(set(incidents)) == len(calls)
    for incident in incidents:
        (line,) = [record for record in caplog.records if incident in record.getMessage()]
        assert line.levelno == logging.ERROR
        assert line.exc_info is not None
        assert line.exc_info[1] is not None


def says_nothing(answer: str, table: str) -> None:
    for detail in (
        "sqlite",
        "SQL",
        "Traceback",
        "no such table",
        f" {table}",
        ".py",
        "Error",
        "bank.db",
    ):
        assert detail not in answer.replace("isError", ""), answer


@pytest.mark.anyio
async def test_a_busy_bank_is_no_incident(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise BankBusy()

    monkeypatch.setattr(bank_accounts, "get_balance", busy)
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
    incidents = [each for each in caplog.records if each.name.startswith("banking_server")]
    assert [each for each in incidents if each.levelno >= logging.WARNING] == []
