"""Sessions of 2025-11-25 over HTTP: who is asked, whose they are, and how many there may be."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from banking_server.chaining import IDENTIFIER, SETTINGS
from banking_server.server import sessions

from ..kit.bank import Customer, code_of, structured
from ..kit.servers import Chooser, HttpServer, http_client, tool_call
from ..kit.words import HANDOFF, PREPARE
from .in_memory import Bank, bank_in_memory

pytestmark = pytest.mark.anyio

YES = {"agreed": True}


def initialize(capabilities: dict[str, Any]) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "a client", "version": "1"},
        },
    }


ASK_ME = initialize({"elicitation": {}})
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LOOK = tool_call("list_accounts")
ASK = tool_call(HANDOFF, {"reason": "A question"})


class Talk:
    """One customer's requests to the application, and their session once they have one."""

    def __init__(self, bank: Bank, customer: str = "CUST001", *scopes: str) -> None:
        self.bank = bank
        self.token = bank.token(customer, *scopes)
        self.session: str | None = None

    async def send(self, message: Any, method: str = "POST", **headers: str) -> httpx2.Response:
        if self.session is not None:
            headers["Mcp_Session_Id"] = self.session
        return await self.bank.send(message, self.token, method, **headers)

    async def open(self) -> str:
        """Open a session, as a client that can be asked something does."""
        opened = await self.send(ASK_ME)
        assert opened.status_code == 200, opened.text
        self.session = opened.headers["Mcp-Session-Id"]
        assert (await self.send(READY)).status_code == 202
        return self.session

    async def works(self) -> bool:
        """Whether the session is there."""
        looked = await self.send(LOOK)
        assert looked.status_code in (200, 404), looked.text
        return looked.status_code == 200


# --- being asked, over a socket -------------------------------------------------------------------


async def test_who_can_be_asked_is_asked_and_no_code_stands_in(bank: HttpServer) -> None:
    customer = Customer("legacy")
    connected = http_client(bank.url, bank.token("CUST002"), "legacy", customer.on_question)
    mine = {"fromAccountId": "acc_savings_002", "toAccountId": "acc_checking_002"}
    answers: dict[str, Any] = {"declined": "decline", "posted": YES}
    async with connected as customer.client:
        prepared = await customer.prepare(**mine)
        transfer, code = structured(prepared)["transferId"], code_of(prepared)
        for status, said in answers.items():
            customer.answers = [said]
            confirmed = await customer.confirm(transfer, confirmationCode=code)
            assert structured(confirmed)["status"] == status
    assert len(customer.asked) == 2


async def test_two_customers_are_asked_at_once_each_their_own(bank: HttpServer) -> None:
    """Each answers when both have been asked."""
    both = anyio.Event()
    asked: list[str] = []

    async def ask(customer: str, choice: str) -> None:
        async def answer(context: Any, params: Any) -> Any:
            asked.append(customer)
            if len(asked) == 2:
                both.set()
            await both.wait()
            return await Chooser(choice)(context, params)

        async with http_client(bank.url, bank.token(customer), "legacy", answer) as client:
            result = await client.call_tool(HANDOFF, {"reason": f"For {choice}"})
        assert structured(result)["choice"] == choice

    with anyio.fail_after(30):
        async with anyio.create_task_group() as customers:
            customers.start_soon(ask, "CUST002", "realtime")
            customers.start_soon(ask, "CUST003", "callback")


# --- who gets one ---------------------------------------------------------------------------------


async def test_who_follows_directives_gets_no_words(full: Path) -> None:
    async with bank_in_memory(full) as bank:
        talk = Talk(bank)
        opened = await talk.send(initialize({"experimental": {IDENTIFIER: SETTINGS}}))
        talk.session = opened.headers["Mcp-Session-Id"]
        assert (await talk.send(READY)).status_code == 202
        locked = {"fromAccountId": "acc_checking_001", "amount": 250}
        called = await talk.send(tool_call(PREPARE, locked))
    (line,) = [line for line in called.text.splitlines() if '"result"' in line]
    result = json.loads(line.removeprefix("data: "))["result"]
    assert result["_meta"]["nextTool"]["tool"] == HANDOFF
    assert len(result["content"]) == 1
    assert "nextStep" not in result["structuredContent"]


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
        assert (await later.send(tool_call(PREPARE))).status_code == 403
        # One that has expired does not.
        expired = bank.token(age=3600)
        refused = await bank.send(LOOK, expired, Mcp_Session_Id=mine.session or "")
        assert refused.status_code == 401


async def test_a_session_ends_when_its_client_says_so(full: Path) -> None:
    async with bank_in_memory(full) as bank:
        talk = Talk(bank)
        await talk.open()
        listened = await talk.send({}, "GET")
        assert (listened.status_code, listened.headers["Allow"]) == (405, "POST, DELETE")
        # In the middle of calls it is no fault.
        async with anyio.create_task_group() as at_once:
            for number in range(4):
                at_once.start_soon(talk.send, {**LOOK, "id": number})
            at_once.start_soon(talk.send, {}, "DELETE")
        assert not await talk.works()


# --- how many, and how long -----------------------------------------------------------------------


async def test_who_has_most_sessions_gives_way_with_the_one_idle_for_longest(full: Path) -> None:
    async with bank_in_memory(full, max_sessions=3) as bank:
        one, first, second, third = (Talk(bank, f"CUST00{n}") for n in (2, 1, 1, 3))
        for talk in (one, first, second):
            await talk.open()
        assert await first.works()
        await third.open()
        open_now = [await talk.works() for talk in (one, first, second, third)]
        assert open_now == [True, True, False, True]


async def test_where_none_is_idle_a_new_session_is_refused(full: Path) -> None:
    async with bank_in_memory(full, max_sessions=1) as bank:
        talk, other = Talk(bank), Talk(bank, "CUST002")
        await talk.open()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(talk.send, ASK)
            await anyio.wait_all_tasks_blocked()
            refused = await other.send(ASK_ME)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert "in use" in refused.json()["error"]["message"]
            # Whoever is never asked does not need one.
            assert (await other.send(LOOK)).status_code == 200
            assert (await talk.send({}, "DELETE")).status_code == 200
        await other.open()


async def test_a_session_that_is_idle_for_too_long_ends(full: Path) -> None:
    async with bank_in_memory(full, session_idle=0.1) as bank:
        talk = Talk(bank)
        await talk.open()
        assert await talk.works()
        await anyio.sleep(0.3)
        assert not await talk.works()


async def test_calls_that_wait_for_an_answer_are_bounded(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_CALLS", 1)
    async with bank_in_memory(full) as bank:
        talk = Talk(bank)
        await talk.open()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(talk.send, ASK)
            await anyio.wait_all_tasks_blocked()
            refused = await talk.send({**LOOK, "id": 8})
            assert "1 calls of this session are under way" in refused.text
            assert (await talk.send({}, "DELETE")).status_code == 200
