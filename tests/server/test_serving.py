"""How connections are served: what a client may leave undone, and how a server ends.

And the log, which stops nothing when nobody reads it.
"""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from banking_server.server import serving

from ..kit.command import PATIENCE
from ..kit.serving import served

REQUEST = b"GET %s HTTP/1.1\r\nHost: bank\r\n\r\n"


async def answer(request: Request) -> Response:
    await request.body()
    return PlainTextResponse(request.url.path * 10_000 if "big" in request.url.path else "well")


async def slow(request: Request) -> Response:
    await asyncio.sleep(float(request.query_params["seconds"]))
    return PlainTextResponse("done")


def app() -> Starlette:
    ways = ["GET", "POST"]
    return Starlette(
        routes=[Route("/slow", slow), Route("/{path}", answer, methods=ways)],
    )


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Where a server is that is soon impatient."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 1)
    monkeypatch.setattr(serving, "UNREAD_SECONDS", 1)
    with served(app()) as url:
        yield "127.0.0.1", httpx2.URL(url).port or 0


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other end closes the connection."""
    connection.settimeout(PATIENCE)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_who_does_not_finish_a_head_is_closed(address: tuple[str, int]) -> None:
    begun = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: bank\r\nX: ")
    with ExitStack() as opened:
        connections = [opened.enter_context(socket.create_connection(address)) for _ in begun]
        for connection, said in zip(connections, begun, strict=True):
            connection.sendall(said)
        for connection in connections:
            assert b"200 OK" not in rest(connection)


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_USER_TIMEOUT is Linux's")
def test_who_does_not_read_is_closed(address: tuple[str, int]) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(address)
        connection.settimeout(PATIENCE)
        # Once it is closed, what is still sent is answered with a reset.
        with pytest.raises(ConnectionError):
            connection.sendall(REQUEST % b"/big" * 1_000_000)


def test_what_is_under_way_is_answered_when_it_ends_but_not_what_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "ENDING_SECONDS", 2)
    told: dict[str, str] = {}

    def ask(seconds: str) -> None:
        try:
            answered = httpx2.get(url, params={"seconds": seconds}, timeout=PATIENCE)
            told[seconds] = str(answered.status_code)
        except httpx2.TransportError:
            told[seconds] = "nothing"

    with served(app(), path="/slow") as url:
        asking = [threading.Thread(target=ask, args=(seconds,)) for seconds in ("0.5", "60")]
        for each in asking:
            each.start()
        # An idle connection is not waited for.
        with httpx2.Client() as idle:
            idle.get(url.replace("slow", "a"))
            time.sleep(0.2)
    for each in asking:
        each.join()
    assert told["0.5"] == "200"
    assert told["60"] in ("500", "nothing")
    assert "Traceback" not in caplog.text
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)


LOUD = """
import logging
from banking_server.server.build import configure_logging
configure_logging("INFO")
for number in range(5_000):
    logging.getLogger("banking_server").info("%d %s", number, "x" * 1_000)
print("It goes on.", flush=True)
input()
"""


def test_a_pipe_that_nobody_reads_stops_nothing_and_what_is_left_out_is_counted() -> None:
    command, pipe = [sys.executable, "-c", LOUD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "It goes on.\n"
        _, log = program.communicate("\n", timeout=PATIENCE)
    written = re.findall("^.* banking_server: [0-9]+ x+$", log, re.MULTILINE)
    left_out = re.findall(r"^\[([0-9]+) lines were dropped", log, re.MULTILINE)
    assert left_out
    assert len(written) + sum(map(int, left_out)) == 5_000
