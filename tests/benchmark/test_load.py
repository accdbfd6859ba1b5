"""The load counts right answers, and no others."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

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
        load = Load((port,), ((Caller(port).balance("acc_1"),),), seconds=60)
        measured = measure(load)
    assert measured.labels["balance"].calls == 3
    assert measured.wrong == 1
    assert said in (measured.first_wrong or "")


def test_where_nobody_listens_there_is_nothing_to_measure() -> None:
    load = Load((1,), ((Caller(1).balance("acc_1"),),), seconds=1)
    with pytest.raises(BenchmarkFailed, match="refused"):
        measure(load)
