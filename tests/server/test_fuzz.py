"""Whatever is sent, as much as there is of it: each request answered once, nothing lost or leaked.

`pytest tests/server/test_fuzz.py --fuzz 100000` sends so many requests over HTTP, and a tenth as
many lines over stdio; the usual run sends a few hundred. What is sent is the same in each run of
one length, and a failure says what it was.
"""

import http.client
import itertools
import json
import queue
import re
import select
import socket
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from banking_server.server.build import utc_now

from ..kit.bank import copy_of
from ..kit.command import PATIENCE, Cli, command, environment
from ..kit.servers import HttpServer, headers_of, http_server, post
from ..kit.words import CONFIRM, EVERYDAY, MODES, PREPARE, SAVINGS, VERSIONS
from .odd_requests import (
    ANSWERS,
    CLIENT,
    LEGACY,
    MODERN,
    OddRequest,
    filled_in,
    in_json,
    meta,
    requests,
    texts,
)

AT_ONCE = 8
"""Requests that are under way at the same time."""

Json = dict[str, Any]
ASK_ME: Json = {"elicitation": {}}
YES: Json = {"action": "accept", "content": {"agreed": True}}


def first_of(revision: str) -> bytes:
    """Write what a client of this revision says first, and how it goes on to say who it is."""
    if revision == LEGACY:
        return plain("initialize", protocolVersion=LEGACY, clientInfo=CLIENT, capabilities=ASK_ME)
    return plain("server/discover", _meta=meta(ASK_ME))


def payment(revision: str) -> Iterator[bytes]:
    """Write what a customer says who pays somebody, in the usual way."""
    more = {"_meta": meta({})} if revision == MODERN else {}
    prepare = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 0.07, "memo": "last"}
    yield plain("tools/call", name=PREPARE, arguments=prepare, **more)
    confirm = {"transferId": "<transfer>", "action": "confirm", "confirmationCode": "<code>"}
    yield plain("tools/call", name=CONFIRM, arguments=confirm, **more)


def plain(method: str, **params: Any) -> bytes:
    return in_json({"jsonrpc": "2.0", "id": "<number>", "method": method, "params": params})


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("fuzz"))


def drawn(count: int, one: st.SearchStrategy[Any]) -> Iterator[list[tuple[Any, Any]]]:
    """Draw `count` of these, each with an answer to a question, in batches of `AT_ONCE`.

    Hypothesis does no more than draw: what fails depends on all that was sent before, so that
    nothing smaller need fail. It draws with 0, 1, 2... for a seed, and remembers what it drew with
    each, lest it draw the same again; hence many.
    """
    found: list[tuple[Any, Any]] = []
    for number in itertools.count():

        @seed(number)
        @settings(
            max_examples=min(count, 1000),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.tuples(one, ANSWERS))
        def collect(each: tuple[Any, Any]) -> None:
            found.append(each)

        collect()
        while len(found) >= AT_ONCE and count > 0:
            yield found[:AT_ONCE]
            del found[:AT_ONCE]
            count -= AT_ONCE
        if count <= 0:
            return


# --- what is to come back -------------------------------------------------------------------------


def key(request_id: Any) -> str:
    """Tell ids apart as JSON does: 1 is not "1"."""
    return json.dumps(request_id)


@dataclass(frozen=True)
class Owed:
    """What has to come back for one message."""

    to: frozenset[str]
    """The keys of the ids that the answer may give back."""
    least: int = 1
    most: int = 1


NULL = key(None)


def owed_for(sent: bytes, given_id: str) -> Owed:
    """Say what has to come back for what was sent, which may have an id that was given to it."""
    legible = frozenset({NULL, *_legible(sent)})
    try:
        message = json.loads(sent.decode())
    except (ValueError, RecursionError):
        return Owed(legible | {given_id}, least=1 if sent.strip() else 0)
    if not isinstance(message, dict):
        return Owed(frozenset({NULL}))
    if "method" not in message and ("result" in message or "error" in message):
        return Owed(legible, least=0)
    found = message.get("id")
    if isinstance(found, int | str) and not isinstance(found, bool):
        try:
            str(found).encode()
        except UnicodeEncodeError:
            return Owed(frozenset({NULL}))
        return Owed(frozenset({key(found)}))
    is_notification = "id" not in message and isinstance(message.get("method"), str)
    return Owed(frozenset({NULL}), least=0 if is_notification else 1)


def _legible(sent: bytes) -> Iterator[str]:
    """Find what can be taken for an id in what may be no JSON."""
    for found in _ID.findall(sent):
        try:
            yield key(json.loads(found))
        except ValueError:
            continue


_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)')


class Conversation:
    """What was said so far, of which later messages make use."""

    def __init__(self) -> None:
        self.known: Json = {}
        self.posted: set[str] = set()
        """Transfers that an answer called posted."""
        self.outcomes: Counter[str] = Counter()
        self._numbers = itertools.count(1000)
        self._asked: dict[str, Json] = {}

    def write(self, text: bytes) -> tuple[bytes, Owed]:
        """Return a message as it goes out, with an id that no other has, and what it is owed."""
        number = next(self._numbers)
        ids = {
            "number": number,
            "negative": -number,
            "text": str(number),
            "odd text": f"\u202e\x00🏦{number}",
            "huge": 10**300 + number,
        }
        given_id = next((key(ids[name]) for name in ids if b'"<%s>"' % name.encode() in text), NULL)
        sent = filled_in(text, {**self.known, **ids})
        if given_id != NULL:
            self.known["id before"] = json.loads(given_id)
        return sent, owed_for(sent, given_id)

    def learn(self, answer: Any, sent: bytes = b"null") -> None:
        """Take in what an answer tells."""
        if not isinstance(answer, dict):
            return
        result = answer.get("result")
        if isinstance(result, dict) and isinstance(result.get("inputRequests"), dict):
            params = json.loads(sent)["params"]
            self.known["asked name"] = params["name"]
            self.known["asked arguments"] = params.get("arguments")
            self.known["state"] = result.get("requestState")
            self.known["asked key"] = next(iter(result["inputRequests"]), "")
        self.outcomes["error" if "error" in answer else "result"] += 1
        for found in _members(answer):
            for name, member in (
                ("transferId", "transfer"),
                ("handoffId", "handoff"),
                ("nextCursor", "cursor"),
            ):
                if isinstance(found.get(name), str):
                    self.known[member] = found[name]
            if found.get("status") == "posted" and isinstance(found.get("transferId"), str):
                self.posted.add(found["transferId"])
            if code := re.search(
                r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})", str(found.get("text"))
            ):
                self.known["transfer"], self.known["code"] = code[1], code[2]


def _members(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _members(each)


class Memory:
    """A process's resident memory, which must not grow once it is warm."""

    def __init__(self, pid: int, count: int) -> None:
        self._pid = pid
        self._warm_at = count // 10
        self._sent = 0
        self.warm = 0

    def now(self) -> int:
        """Return it, in KiB."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self._pid)], capture_output=True)
        return int(shown.stdout)

    def count(self, sent: int) -> None:
        self._sent += sent
        if not self.warm and self._sent >= self._warm_at:
            self.warm = self.now()

    def has_not_grown(self) -> None:
        assert self.now() <= 1.2 * self.warm


def all_is_well(database: Path, cli: Cli, log: str, conversation: Conversation) -> None:
    """Check the books, and that the log tells of no fault."""
    assert "Traceback" not in log, log[-5000:]
    assert "Exception" not in log, log[-5000:]
    checked = cli("database", "check", "--database", str(database))
    assert checked.code == 0, checked.out
    with closing(sqlite3.connect(database)) as connection:
        posted = connection.execute("SELECT transfer_id FROM transfer WHERE status = 'posted'")
        assert {row[0] for row in posted} == conversation.posted


# --- HTTP -----------------------------------------------------------------------------------------


class Line:
    """A connection to the server, which is opened anew where the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, request: bytes) -> None:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE)
        self._socket.sendall(request)

    def answer(self, method: str, said: Callable[[Json], None]) -> tuple[int, Any, list[Json]]:
        """Return status, headers and messages; what comes in an event stream is `said` at once."""
        assert self._socket is not None
        response = http.client.HTTPResponse(self._socket, method=method)
        response.begin()
        messages = []
        if response.headers.get_content_type() == "text/event-stream":
            # The bank says now and then that it is still there, so that no read takes long.
            end = time.monotonic() + PATIENCE
            for line in response:
                assert time.monotonic() < end, f"nothing came of it, but for {messages}"
                if line.startswith(b"data:") and (data := line[5:].strip()):
                    message = json.loads(data)
                    said(message)
                    messages.append(message)
        else:
            body = response.read()
            if body and response.headers.get_content_type() == "application/json":
                message = json.loads(body)
                if "jsonrpc" in message:
                    messages.append(message)
        if response.will_close:
            self.close()
        return response.status, response.headers, messages

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class OverHttp(Conversation):
    """Sends requests over several connections, and looks at each answer."""

    def __init__(self, server: HttpServer) -> None:
        super().__init__()
        self.server = server
        self.lines = [Line(server.port) for _ in range(AT_ONCE)]
        self.aside = Line(server.port)
        self.session: str | None = None
        self.statuses: Counter[int] = Counter()
        whole = ("bank:read", "bank:transfer")
        self.tokens = {
            "full": self._token("CUST001", *whole),
            "another's": self._token("CUST002", *whole),
            "reading": self._token("CUST001", "bank:read"),
            "garbage": "eyJ\xe4.e30.x",
            "none": None,
        }

    def _token(self, customer: str, *scopes: str) -> str:
        lifetime = timedelta(days=1)
        return self.server.tokens.mint(customer, scopes, now=utc_now(), lifetime=lifetime)

    def head_and_body(self, request: OddRequest, sent: bytes) -> bytes:
        said = {**headers_of(self.tokens[request.token]), "Host": f"127.0.0.1:{self.server.port}"}
        said["MCP-Protocol-Version"] = request.revision
        if request.in_session and self.session is not None:
            said["Mcp-Session-Id"] = self.session
        if request.revision == MODERN:
            said |= _routing(sent)
        lines = list(said.items())
        for name, value in request.headers:
            if not request.twice:
                lines = [line for line in lines if line[0] != name]
            if value is not None:
                lines.append((name, value))
        if request.chunked:
            lines.append(("Transfer-Encoding", "chunked"))
            half = len(sent) // 2
            parts = [part for part in (sent[:half], sent[half:]) if part]
            sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        else:
            lines.append(("Content-Length", str(len(sent))))
        first = f"{request.method} {request.path} HTTP/1.1\r\n"
        head = first + "".join(f"{name}: {value}\r\n" for name, value in lines)
        return head.encode("latin-1", "replace") + b"\r\n" + sent

    def open_session(self) -> None:
        opened = post(self.server, self.tokens["full"], self.write(first_of(LEGACY))[0])
        assert opened.status_code == 200, opened.text
        self.session = opened.headers["Mcp-Session-Id"]

    def send(self, batch: list[tuple[OddRequest, Any]]) -> None:
        """Send some requests at once, with what is answered if the bank asks something."""
        in_session = [request for request, _ in batch if request.in_session]
        if in_session and self.session is None:
            self.open_session()
        # What its own client ends need not be answered.
        ended = any(
            request.method == "DELETE" or b"notifications/cancelled" in request.text
            for request in in_session
        )
        gone = False
        under_way = []
        for line, (request, reply) in zip(self.lines, batch, strict=True):
            sent, owed = self.write(request.text)
            raw = self.head_and_body(request, sent)
            line.send(raw)
            under_way.append((line, request, reply, sent, owed, raw))
        for line, request, reply, sent, owed, raw in under_way:
            try:
                status, headers, messages = line.answer(request.method, partial(self.reply, reply))
            except (http.client.HTTPException, ConnectionError):
                # Of a head that is none nobody has to take more.
                assert not request.plain, raw
                line.close()
                continue
            self.statuses[status] += 1
            case = (status, messages, raw)
            assert status < 500 or (status == 503 and "Retry-After" in headers), case
            answered = [message for message in messages if "method" not in message]
            for message in answered:
                self.learn(message, sent)
            ids = {key(message.get("id")) for message in answered}
            # A session can have been ended, or have given way to a new one.
            gone = gone or (request.plain and request.in_session and status == 404)
            if not request.plain or gone:
                assert len(answered) <= 1, case
                assert ids <= owed.to | {NULL}, case
            else:
                least = 0 if request.in_session and ended else owed.least
                assert least <= len(answered) <= owed.most, case
                assert ids <= owed.to, case
        if gone:
            self.session = None

    def reply(self, first: Any, message: Json) -> None:
        """Answer what the bank asks in a session: as drawn, and then so that it goes on."""
        if "method" not in message or "id" not in message:
            return
        for answer in (first, {"action": "decline"}):
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
            sent, _ = self.write(in_json(reply))
            request = OddRequest(LEGACY, in_session=True, text=b"")
            self.aside.send(self.head_and_body(request, sent))
            status, _, _ = self.aside.answer("POST", lambda _: None)
            assert status < 500, (status, sent)

    def close(self) -> None:
        for line in (*self.lines, self.aside):
            line.close()


def _routing(sent: bytes) -> dict[str, str]:
    """Return the headers that repeat a message of 2026-07-28."""
    try:
        message = json.loads(sent)
        method, params = message["method"], message.get("params", {})
        name = params.get("name", params.get("uri"))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}
    said = {"Mcp-Method": method, "Mcp-Name": name}
    return {
        header: value
        for header, value in said.items()
        if isinstance(value, str) and value.isascii() and value.isprintable()
    }


def test_requests(tmp_path: Path, count: int, cli: Cli) -> None:
    with http_server(
        tmp_path,
        BANKING_MAX_SESSIONS="20",
        BANKING_MAX_PENDING_TRANSFERS="1000",
        BANKING_MAX_WRONG_CODES_AN_HOUR="100000",
        BANKING_CONNECTIONS_PER_ADDRESS="100",
    ) as server:
        conversation = OverHttp(server)
        memory = Memory(server.process.pid, count)
        with closing(conversation):
            for batch in drawn(count, requests()):
                conversation.send(batch)
                memory.count(len(batch))
            memory.has_not_grown()
        paid = conversation.posted.copy()
        for message in payment(LEGACY):
            sent, _ = conversation.write(message)
            answer = post(server, conversation.tokens["full"], sent)
            conversation.learn(answer.json())
        assert len(conversation.posted - paid) == 1
        assert server.interrupt() == 0
        all_is_well(tmp_path / "bank.db", cli, server.logged(), conversation)


# --- stdio ----------------------------------------------------------------------------------------


class OverStdio(Conversation):
    """Sends lines to a server, and looks at each that comes back."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__()
        assert process.stdin is not None
        self._stdin = process.stdin
        self._said: queue.Queue[bytes] = queue.Queue()
        self._calls: dict[str, bytes] = {}
        """What was sent, by the key of its id."""
        self._others: set[str] = set()
        self._least = self._most = self._came = 0
        """Answers to what need not get one, or not with an id of its own: the ids that they may
        have, and how many must, may and did come."""
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def _listen(self, stdout: Any) -> None:
        for line in stdout:
            self._said.put(line)

    def _put(self, line: bytes) -> None:
        self._stdin.write(line + b"\n")
        self._stdin.flush()

    def send(self, batch: list[tuple[bytes, Any]]) -> None:
        """Send some lines at once, with what is answered if the bank asks something."""
        replies = itertools.cycle(reply for _, reply in batch)
        unanswered: Counter[str] = Counter()
        for text, _ in batch:
            sent, owed = self.write(text)
            self._put(sent)
            if NULL not in owed.to:
                (only,) = owed.to
                unanswered[only] += 1
                self._calls[only] = sent
            else:
                self._others |= owed.to
                self._least += owed.least
                self._most += owed.most
        # What its own client cancels need not be answered.
        cancelled = any(b"notifications/cancelled" in text for text, _ in batch)
        while +unanswered or self._came < self._least:
            try:
                message = json.loads(self._said.get(timeout=1 if cancelled else PATIENCE))
            except queue.Empty:
                assert cancelled, f"not answered: {unanswered}, of {batch}"
                self._others |= unanswered.keys()
                self._most += unanswered.total()
                break
            if "id" in message and "method" in message:
                for reply in (next(replies), {"action": "decline"}):
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": reply}
                    self._put(self.write(in_json(answer))[0])
            elif "method" not in message:
                answered = key(message["id"])
                if unanswered[answered]:
                    unanswered[answered] -= 1
                else:
                    assert answered in self._others, (message, batch)
                    self._came += 1
                self.learn(message, self._calls.pop(answered, b"null"))
        assert self._came <= self._most, batch


@contextmanager
def over_stdio(database: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    variables = {
        "BANKING_MAX_PENDING_TRANSFERS": "1000",
        "BANKING_MAX_WRONG_CODES_AN_HOUR": "100000",
    }
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command("--database", str(database), "--customer", "CUST001"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(**variables),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("mode", MODES)
def test_lines(tmp_path: Path, filled: Path, count: int, cli: Cli, mode: str) -> None:
    revision, count = VERSIONS[mode], max(count // 20, 1)
    database, log = copy_of(filled, tmp_path), tmp_path / "server.log"
    with over_stdio(database, log) as process:
        conversation = OverStdio(process)
        memory = Memory(process.pid, count)

        # The first request decides of which revision all others are.
        conversation.send([(first_of(revision), None)])
        for batch in drawn(count, texts(revision)):
            conversation.send(batch)
            memory.count(len(batch))
        memory.has_not_grown()
        paid = conversation.posted.copy()
        for message in payment(revision):
            conversation.send([(message, YES)])
        assert len(conversation.posted - paid) == 1
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    all_is_well(database, cli, log.read_text(), conversation)
