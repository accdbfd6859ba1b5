"""What the HTTP server says when it is asked too much, or the bank cannot be asked."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from banking_server.bank.storage import BankBusy
from banking_server.server import health, running
from banking_server.server.build import utc_now
from banking_server.server.http import http_app
from banking_server.server.settings import Settings
from banking_server.server.tokens import Tokens, load_keys

from ..benchmark.load import Caller
from ..kit.servers import HttpServer, tool_call

pytestmark = pytest.mark.anyio

FAR = "http://127.0.0.1:8000/mcp"


class Seconds:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bank:
    """The application without a socket, and its clock."""

    def __init__(self, client: httpx2.AsyncClient, seconds: Seconds, settings: Settings) -> None:
        self.client = client
        self.seconds = seconds
        self.settings = settings

    def headers(self, customer: str = "CUST001") -> dict[str, str]:
        tokens = Tokens(load_keys(self.settings).tokens, FAR)
        scopes = ["bank:read", "bank:transfer"]
        token = tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(minutes=5))
        return {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }

    async def call(self, customer: str = "CUST001") -> httpx2.Response:
        body = tool_call("list_accounts")
        return await self.client.post(FAR, json=body, headers=self.headers(customer))


@asynccontextmanager
async def bank_at(database: Path, **options: Any) -> AsyncIterator[Bank]:
    settings = Settings(database=database, resource_url=FAR, **options)
    seconds = Seconds()
    app = http_app(settings, monotonic=seconds)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client,
    ):
        yield Bank(client, seconds, settings)


# --- too fast -------------------------------------------------------------------------------------


async def test_a_request_too_many_is_told_when_to_come_back(database: Path) -> None:
    async with bank_at(database, calls_per_second=1) as bank:
        assert [(await bank.call()).status_code for _ in range(2)] == [200, 200]
        refused = await bank.call()
        assert (await bank.call("CUST002")).status_code == 200, "somebody else"
        bank.seconds.now += 1
        assert (await bank.call()).status_code == 200
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"
    error = refused.json()
    assert (error["jsonrpc"], error["id"], error["error"]["code"]) == ("2.0", None, -32603)
    assert "again in 1 second" in error["error"]["message"]


async def test_the_steps_inside_a_request_count_too(database: Path) -> None:
    steps = [{**tool_call("list_accounts"), "id": number} for number in range(6)]
    async with bank_at(database, calls_per_second=2) as bank:
        body = tool_call("multiplex_tools", {"tools": steps})
        answer = await bank.client.post(FAR, json=body, headers=bank.headers())
    results = answer.json()["result"]["structuredContent"]["results"]
    assert [each["status"] for each in results] == ["done"] * 3 + ["failed"] * 3
    assert results[-1]["structuredContent"]["status"] == "busy"


async def test_without_a_token_nobody_counts(database: Path) -> None:
    async with bank_at(database, calls_per_second=1) as bank:
        tries = [(await bank.client.post(FAR, json={})).status_code for _ in range(4)]
        assert (await bank.call()).status_code == 200
    assert tries == [401] * 4


# --- the bank cannot be asked ---------------------------------------------------------------------


async def test_a_token_that_cannot_be_checked_is_an_incident(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> bool:
        raise OSError("the disk of S3CRET is gone")

    async with bank_at(database) as bank:
        monkeypatch.setattr(running, "is_customer", broken)
        answer = await bank.call()
    assert answer.status_code == 503
    assert "Retry-After" not in answer.headers
    message = answer.json()["error"]["message"]
    assert "S3CRET" not in answer.text
    assert "Traceback" not in answer.text
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    incident = message.rsplit(maxsplit=1)[1].rstrip(".")
    assert incident in logged.getMessage()
    assert logged.exc_info is not None
    assert "S3CRET" in str(logged.exc_info[1])


async def test_a_bank_that_is_busy_asks_to_be_asked_again(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def busy(*_: Any) -> bool:
        raise BankBusy()

    async with bank_at(database) as bank:
        monkeypatch.setattr(running, "is_customer", busy)
        answer = await bank.call()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "try again" in answer.json()["error"]["message"]
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


# --- health ---------------------------------------------------------------------------------------


async def ask(bank: Bank, method: str = "GET", **headers: str) -> httpx2.Response:
    return await bank.client.request(method, "http://10.0.0.7:8000/health", headers=headers)


async def test_it_is_well(database: Path) -> None:
    """Whoever asks, by whatever address, and with no token or a bad one."""
    async with bank_at(database) as bank:
        for headers in ({}, {"Host": "evil.example"}, {"Authorization": "Bearer garbage"}):
            answer = await ask(bank, **headers)
            assert (answer.status_code, answer.content) == (200, b'{"status":"ok"}')
            assert set(answer.headers) == {"content-length", "content-type", "cache-control"}
        assert (await ask(bank, "HEAD")).status_code == 200
        assert (await ask(bank, "POST")).status_code == 405


async def test_it_is_not_well(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> bool:
        raise OSError("the disk of S3CRET is gone")

    async with bank_at(database) as bank:
        monkeypatch.setattr(running, "is_customer", broken)
        answer = await ask(bank)
        assert (answer.status_code, answer.content) == (503, b'{"status":"unavailable"}')
        monkeypatch.undo()
        assert (await ask(bank)).status_code == 503, "the answer of this second"
        bank.seconds.now += 1
        assert (await ask(bank)).status_code == 200


async def test_the_bank_is_asked_once_a_second(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    async def count(*_: Any) -> bool:
        asked.append(bank.seconds.now)
        await asyncio.sleep(0)
        return False

    async with bank_at(database) as bank:
        monkeypatch.setattr(running, "is_customer", count)
        async with anyio.create_task_group() as many:
            for _ in range(50):
                many.start_soon(ask, bank)
        await ask(bank)
        assert len(asked) == 1
        bank.seconds.now += 1
        await ask(bank)
    assert len(asked) == 2


async def test_a_bank_that_says_nothing_is_not_well(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def silent(*_: Any) -> bool:
        asked.append("once")
        await asyncio.Event().wait()
        return True

    async with bank_at(database) as bank:
        monkeypatch.setattr(running, "is_customer", silent)
        monkeypatch.setattr(health, "TIME_LIMIT_SECONDS", 0.01)
        assert (await ask(bank)).status_code == 503
        bank.seconds.now += 10
        assert (await ask(bank)).status_code == 503
    assert asked == ["once"], "a second question would only be stuck behind the first"


# --- connections ----------------------------------------------------------------------------------


def test_blanks_around_a_header_are_none_of_it(bank: HttpServer) -> None:
    request = Caller(bank.port, bank.token()).request("list_accounts")
    request = request.replace(b"Mcp-Name: list_accounts", b"Mcp-Name: \t list_accounts \t ")
    with socket.create_connection(("127.0.0.1", bank.port), timeout=20) as connection:
        connection.sendall(request)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_the_head_of_a_request_is_bounded(bank: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", bank.port), timeout=20) as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Endless: ")
        said = b""
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 1000)
            while part := connection.recv(1000):
                said += part
        except ConnectionError:
            return
    assert said.startswith(b"HTTP/1.1 431")
