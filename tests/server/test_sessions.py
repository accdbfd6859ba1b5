"""Sessions of 2025-11-25 over HTTP: whose they are, and how long a call waits."""

import re
from pathlib import Path

import anyio
import pytest

from banking_server.tools import calling

from ..kit.servers import tool_call
from ..kit.words import CONFIRM, HANDOFF, PREPARE, TO_SAVINGS
from .in_memory import LOOK, Talk, bank_in_memory

pytestmark = pytest.mark.anyio

ASK = tool_call(HANDOFF, {"reason": "A question"})


# --- whose it is ----------------------------------------------------------------------------------


async def test_a_session_is_its_customers(full: Path) -> None:
    async with bank_in_memory(full) as bank:
        mine, other = Talk(bank), Talk(bank, "CUST002")
        other.session = "0" * 32
        unknown = await other.send(LOOK)
        other.session = await mine.open()
        for stolen in (await other.send(LOOK), await other.send({}, "DELETE")):
            assert (stolen.status_code, stolen.content) == (404, unknown.content)
        # The customer's next token goes on with it, for what it is good for.
        later = Talk(bank, "CUST001", "bank:read")
        later.session = mine.session
        assert await later.works()
        # One that has expired does not.
        mine.token = bank.token(age=3600)
        refused = await mine.send(LOOK)
        assert refused.status_code == 401


async def test_an_answer_needs_the_scope_of_the_call_that_asked(full: Path) -> None:
    """Which a token for reading does not have, though it is the same customer's."""
    async with bank_in_memory(full) as bank:
        talk, reader = Talk(bank), Talk(bank, "CUST001", "bank:read")
        reader.session = await talk.open()
        prepared = await talk.send(tool_call(PREPARE, {**TO_SAVINGS, "amount": 5}))
        (transfer,) = re.findall(r'"transferId":"(\w+)"', prepared.text)[:1]
        confirm = tool_call(CONFIRM, {"transferId": transfer, "action": "confirm"})
        yes = {"result": {"action": "accept", "content": {"agreed": True}}, "jsonrpc": "2.0"}
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(talk.send, {**confirm, "id": 9})
            await anyio.wait_all_tasks_blocked()
            for id_ in range(5):
                refused = await reader.send({**yes, "id": id_})
                assert (refused.status_code, "bank:transfer" in refused.text) == (403, True)
            assert bank.sql("SELECT status FROM transfer") == [("pending",)]
            await talk.send({}, "DELETE")
        # A question of a call that only reads is answered with the scope for reading.
        reader.session = None
        await reader.open()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(reader.send, ASK)
            await anyio.wait_all_tasks_blocked()
            assert (await reader.send({**yes, "id": 99})).status_code == 202
            await reader.send({}, "DELETE")


# --- how long -------------------------------------------------------------------------------------


async def test_calls_that_wait_for_an_answer_are_bounded_in_time(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "QUESTION_SECONDS", 0.1)
    async with bank_in_memory(full) as bank:
        talk = Talk(bank)
        await talk.open()
        with bank.events() as events:
            told = (await talk.send(ASK)).text
        assert "Nobody answered" in told
        assert [(tool, outcome) for _, tool, outcome, *_ in events] == [(HANDOFF, "invalid_answer")]
