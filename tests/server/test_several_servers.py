"""Three servers on one PostgreSQL database: one is killed, and the database is restarted."""

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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
from ..kit.servers import HttpServer, http_server, request_of, tool_call
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

Replicas = tuple[postgres.PostgresServer, URL, list[HttpServer]]


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    with TemporaryDirectory(prefix="banking-server-replicas-") as place, ExitStack() as at_the_end:
        folder = Path(place)
        database = postgres.PostgresServer(folder / "data", lasting=True)
        database.start()
        at_the_end.callback(database.stop)
        url = database.create("bank").set(password=PASSWORD)
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
        yield database, url, servers
        assert not [each for each in servers if PASSWORD in each.logged()]


async def answer_of(sending: Any) -> dict[str, Any] | None:
    """Return the result of one call; None if nobody is there, or "try again" is what is said."""
    try:
        answer = await sending
    except (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError):
        return None
    said = answer.json()
    if answer.status_code == 503:
        assert "try again" in said["error"]["message"].lower()
        return None
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = said["result"]
    busy = result["structuredContent"]["status"] in ("busy", "unavailable")
    return None if busy else result


async def test_a_server_is_killed_and_postgresql_restarted_under_load(replicas: Replicas) -> None:
    """Nothing acknowledged is lost, nothing is posted twice, and nobody waits for ever."""
    database, url, servers = replicas
    http, token = httpx2.AsyncClient(timeout=PATIENCE), servers[0].token()
    next_url = itertools.cycle([f"http://127.0.0.1:{server.port}/mcp" for server in servers])
    posted: list[str] = []

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        """Make the same call, each time to the next server, until it is answered."""
        body, sent = request_of(tool_call(tool, arguments), token)
        while True:
            sending = http.post(next(next_url), content=body, headers=sent)
            if (answer := await answer_of(sending)) is not None:
                return answer
            await asyncio.sleep(0.05)

    async def customer(number: int) -> None:
        accounts = {"fromAccountId": SAVINGS, "toAccountId": EVERYDAY}
        for count in itertools.count():
            prepared = await call(PREPARE, **accounts, amount=0.01, memo=f"{number} {count}")
            transfer = prepared["structuredContent"]["transferId"]
            (code,) = set(re.findall(r"\b\d{6}\b", str(prepared["content"])))
            done = await call(CONFIRM, transferId=transfer, action="confirm", confirmationCode=code)
            assert done["structuredContent"]["status"] == "posted", done
            posted.append(transfer)

    async def more(then: Callable[[], Any]) -> None:
        wanted = len(posted) + 10
        while len(posted) < wanted:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(then)

    with anyio.fail_after(90):
        async with http, anyio.create_task_group() as customers:
            for number in range(6):
                customers.start_soon(customer, number)
            await more(servers[2].process.kill)
            await more(database.stop)
            # Long enough for every connection that was kept to be found broken.
            await asyncio.sleep(0.5)
            await asyncio.to_thread(database.start)
            await more(lambda: None)
            customers.cancel_scope.cancel()

    postgres.connection_to.cache_clear()
    check_books(url, utc_now())
    stored = dict(sql(url, "SELECT transfer_id, status FROM transfer"))
    assert len(set(posted)) == len(posted) >= 30
    assert {stored[transfer] for transfer in posted} == {"posted"}
    for server in servers[:2]:
        assert "Traceback" not in server.logged(), server.logged()
