"""Servers are killed while customers pay, and PostgreSQL with them: nothing is lost or doubled."""

import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest

from banking_server.bank.location import Location, in_full

from ..bank.support import check_books, sql
from ..kit.command import PATIENCE, run
from ..kit.postgres import PostgresServer
from ..kit.servers import HttpServer, http_server, post, tool_call
from ..kit.words import CONFIRM, PREPARE


def pay(number: int, servers: list[HttpServer], over: Event) -> list[str]:
    """Pay again and again, and repeat a call until it is answered; return what was posted."""

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            token = servers[-1].token(f"CUST00{number}")
            with suppress(httpx2.TransportError):
                answer = post(servers[-1], token, tool_call(tool, arguments))
                if answer.status_code == 200 and not answer.json()["result"]["isError"]:
                    return dict(answer.json()["result"])
            time.sleep(0.05)
        raise AssertionError("no server answers")

    source, target = f"acc_savings_00{number}", f"acc_checking_00{number}"
    payment = {"fromAccountId": source, "toAccountId": target, "amount": 0.01}
    posted: list[str] = []
    while not over.is_set():
        prepared = call(PREPARE, **payment, memo=str(len(posted)))
        transfer = prepared["structuredContent"]["transferId"]
        (code,) = set(re.findall(r"is (\d{6})", str(prepared["content"])))
        done = call(CONFIRM, transferId=transfer, action="confirm", confirmationCode=code)
        assert done["structuredContent"]["status"] == "posted"
        posted.append(transfer)
    return posted


@pytest.mark.nightly
@pytest.mark.on_each
def test_what_was_acknowledged_is_there_once(engine: str, tmp_path: Path, full: Path) -> None:
    where: Location = full
    if engine == "postgresql":
        database = PostgresServer(tmp_path / "data", lasting=True)
        database.start()
        where = database.create("bank")
    settings = {"BANKING_DATABASE": in_full(where), "BANKING_SECRET": "s" * 40}
    run("database", "create", **settings)
    servers: list[HttpServer] = []
    over, paying = Event(), []
    with ThreadPoolExecutor() as threads:
        try:
            for kills in range(10):
                with http_server(tmp_path, **settings) as server:
                    servers.append(server)
                    if not paying:
                        paying = [
                            threads.submit(pay, number, servers, over) for number in (1, 2, 3)
                        ]
                    time.sleep(random.uniform(0.2, 1.5))
                    if kills == 9:
                        over.set()
                        acknowledged = {each for future in paying for each in future.result()}
                    elif engine == "postgresql" and kills % 3 == 0:
                        process = tmp_path / "data" / "postmaster.pid"
                        os.kill(int(process.read_text().split()[0]), signal.SIGQUIT)
                        while process.exists():
                            time.sleep(0.05)
                        server.process.kill()
                        database.start()
                    server.process.kill()
        finally:
            over.set()
    assert "Traceback" not in "".join(server.logged() for server in servers)
    check_books(where, datetime.now(UTC))
    postings = sql(where, "SELECT transfer_id FROM posting WHERE transfer_id IS NOT NULL")
    assert {transfer for (transfer,) in postings} == acknowledged
    assert len(acknowledged) > 10
    if engine == "postgresql":
        database.stop()
