"""The load counts right answers, and no others."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from banking_server.benchmark import load
from banking_server.benchmark.calls import Caller
from banking_server.benchmark.load import BenchmarkFailed, Load, measure
from banking_server.benchmark.rows import TO_AND_FRO

from ..kit.servers import http_server
from ..kit.serving import running

RIGHT = b'{"result":{"isError":false,"structuredContent":{"accountId":"acc_1","posted":1}}}'


def test_every_confirmation_that_is_counted_is_a_transfer_that_was_posted(tmp_path: Path) -> None:
    with http_server(tmp_path, BANKING_CALLS_PER_SECOND="0") as server:
        connections = tuple(
            Caller(server.port, server.token(customer)).to_and_fro(one, other, f"memo {number}")
            for number in range(2)
            for customer, one, other in TO_AND_FRO
        )
        measured = measure(Load((server.port,), connections, calls=60))
    assert (measured.wrong, measured.first_wrong) == (0, None)
    assert measured.seconds > 0
    assert 0 < measured.cpu < 1
    counted = {label: latency.calls for label, latency in measured.labels.items()}
    assert sum(counted.values()) == 60
    with closing(sqlite3.connect(tmp_path / "bank.db")) as bank:
        transfers = dict(bank.execute("SELECT status, count(*) FROM transfer GROUP BY status"))
    assert transfers["posted"] == counted["confirm"] > 6
    assert sum(transfers.values()) == counted["prepare"]


def close(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


def answers(status: int, body: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (answers(503, RIGHT), "balance: 503"),
        (answers(200, RIGHT.replace(b"false", b"true")), "balance: 200"),
        (answers(200, RIGHT.replace(b"acc_1", b"acc_2")), "acc_2"),
        (answers(200, b""), "balance: 200"),
        (close, "closed"),
    ],
)
def test_a_wrong_answer_is_counted_as_one(
    wrong: Callable[[BaseHTTPRequestHandler], None], said: str
) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        left = 3

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            Handler.left -= 1
            (answers(200, RIGHT) if Handler.left >= 0 else wrong)(self)

        def log_message(self, *_: object) -> None:
            pass

    with running(HTTPServer(("127.0.0.1", 0), Handler)) as origin:
        port = int(origin.rpartition(":")[2])
        measured = measure(Load((port,), ((Caller(port).balance("acc_1"),),), seconds=60))
    assert measured.labels["balance"].calls == 3
    assert measured.wrong == 1
    assert said in (measured.first_wrong or "")


ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([b"HTTP/1.1 200 OK\r\n", b"x: y\r\n\r\n"], "balance: an answer without Content-Length"),
        ([ANSWER % (len(RIGHT), RIGHT) + b"HTTP"], "balance: more than was asked for"),
        ([ANSWER % (2, b"{}")], "balance: 200 {}"),
    ],
)
def test_what_is_no_answer_to_one_request_ends_the_connection(sent: list[bytes], said: str) -> None:
    async def measured() -> dict[str, Any]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}}")
            for part in sent:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            call = Caller(port).balance("acc_1")
            return await load._run(asdict(Load((port,), ((call,), (call,)), seconds=60)))

    found = asyncio.run(measured())
    assert (found["wrong"], found["first_wrong"], found["labels"]) == (2, said, {})


def test_an_answer_that_never_comes_is_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def measured() -> dict[str, Any]:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            call = Caller(port).balance("acc_1")
            return await load._run(asdict(Load((port,), ((call,),), seconds=0.01)))

    monkeypatch.setattr(load, "PATIENCE", 0.02)
    found = asyncio.run(measured())
    assert (found["wrong"], found["first_wrong"]) == (1, "?: no answer after 0.03 seconds")


def test_where_nobody_listens_there_is_nothing_to_measure() -> None:
    with pytest.raises(BenchmarkFailed, match="refused"):
        measure(Load((1,), ((Caller(1).balance("acc_1"),),), seconds=1))
