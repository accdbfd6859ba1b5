"""Three servers on one PostgreSQL database, one of which is killed, and cut off from it."""

import asyncio
import itertools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import in_full
from banking_server.server.build import utc_now

from ..bank.support import check_books, sql
from ..kit import postgres
from ..kit.bank import SECRET, fill
from ..kit.servers import HttpServer, headers_of, http_server, tool_call
from ..kit.words import CONFIRM, EVERYDAY, PREPARE, SAVINGS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs_program(postgres.MISSING),
    # What they ask of the database at once, `tests/bank/test_processes.py` asks of it.
    pytest.mark.nightly,
]

PASSWORD = "a-password-that-nobody-may-see"
PATIENCE = 30
"""Seconds after which an answer hangs. What is waited for takes half of it at most."""


@dataclass
class Replicas:
    """Three servers behind one address, and their database."""

    postgres: postgres.PostgresServer
    url: URL
    servers: list[HttpServer]


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    with TemporaryDirectory(prefix="banking-server-replicas-") as place, ExitStack() as at_the_end:
        folder = Path(place)
        server = postgres.PostgresServer(folder / "data", lasting=True)
        server.start()
        at_the_end.callback(server.stop)
        url = server.create("bank").set(password=PASSWORD)
        anyio.run(fill, url, utc_now())
        variables = {
            "BANKING_DATABASE": in_full(url),
            "BANKING_SECRET": SECRET,
            "BANKING_RESOURCE_URL": "http://127.0.0.1:8000/mcp",
        }

        def start(_: int) -> HttpServer:
            return at_the_end.enter_context(http_server(folder, **variables))

        with ThreadPoolExecutor() as at_once:
            servers = list(at_once.map(start, range(3)))
        yield Replicas(server, url, servers)
        for each in servers:
            assert PASSWORD not in each.logged()


class Caller:
    """Makes calls, each to the next server, and tells what comes of them."""

    def __init__(self, replicas: Replicas) -> None:
        headers = headers_of(replicas.servers[0].token())
        self._http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE)
        self._ports = itertools.cycle([server.port for server in replicas.servers])

    async def once(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """Make one call; None if the server is not there any more, or the bank cannot be reached.

        Then it says so, and never keeps anybody waiting: that would be a timeout.
        """
        url = f"http://127.0.0.1:{next(self._ports)}/mcp"
        try:
            answer = await self._http.post(url, json=tool_call(tool, arguments))
        except (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError):
            return None
        said = answer.json()
        if answer.status_code == 503:
            assert re.search("try again", said["error"]["message"], re.IGNORECASE)
            return None
        assert answer.status_code == 200, answer.text
        structured: dict[str, Any] = said["result"]["structuredContent"]
        if structured["status"] in ("busy", "unavailable"):
            assert re.search("try again|same call again", structured["message"], re.IGNORECASE)
            return None
        structured["words"] = " ".join(item["text"] for item in said["result"]["content"])
        return structured

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make the same call until it is answered, as a customer would."""
        while (answer := await self.once(tool, **arguments)) is None:
            await asyncio.sleep(0.05)
        return answer

    async def prepare(self, memo: str) -> tuple[str, str]:
        prepared = await self.call(
            PREPARE, fromAccountId=SAVINGS, toAccountId=EVERYDAY, amount=0.01, memo=memo
        )
        assert prepared["status"] == "pending", prepared
        code = re.search(r"\b\d{6}\b", prepared["words"])
        assert code is not None, prepared
        return prepared["transferId"], code[0]

    async def close(self) -> None:
        await self._http.aclose()


async def test_a_server_is_killed_and_postgresql_restarted_under_load(replicas: Replicas) -> None:
    """Nothing acknowledged is lost, nothing is posted twice, and nobody waits for ever."""
    caller = Caller(replicas)
    posted: list[str] = []
    enough = False

    async def customer(number: int) -> None:
        for count in itertools.count():
            if enough:
                return
            transfer_id, code = await caller.prepare(f"{number} {count}")
            receipt = await caller.call(
                CONFIRM, transferId=transfer_id, action="confirm", confirmationCode=code
            )
            assert receipt["status"] == "posted", receipt
            posted.append(transfer_id)

    async def after(more: int) -> None:
        wanted = len(posted) + more
        while len(posted) < wanted:
            await asyncio.sleep(0.01)

    with anyio.fail_after(90):
        async with anyio.create_task_group() as customers:
            for number in range(6):
                customers.start_soon(customer, number)
            await after(10)
            victim = replicas.servers[2].process
            victim.kill()
            victim.wait()
            await after(10)
            await asyncio.to_thread(replicas.postgres.stop)
            # Long enough for every connection that was kept to be found broken.
            await asyncio.sleep(0.5)
            await asyncio.to_thread(replicas.postgres.start)
            await after(10)
            enough = True
    await caller.close()

    postgres.connection_to.cache_clear()
    check_books(replicas.url, utc_now())
    stored = dict(sql(replicas.url, "SELECT transfer_id, status FROM transfer"))
    assert len(set(posted)) == len(posted) > 30
    assert {stored[transfer_id] for transfer_id in posted} == {"posted"}
    for server in replicas.servers[:2]:
        assert "Traceback" not in server.logged(), server.logged()
