"""Whatever is sent, as much as there is of it: each request answered once, nothing lost or leaked.

The usual run sends some dozens, `--ci` some hundreds and `--nightly` some thousands. What is sent
is the same in each run of one length, and a failure says what it was.
"""

import itertools
import json
import queue
import re
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ..kit.command import PATIENCE, Cli, command, environment
from ..kit.servers import headers_of
from ..kit.words import MODES, VERSIONS
from .in_memory import Bank, bank_in_memory
from .odd_requests import (
    ANSWERS,
    CLIENT,
    LEGACY,
    MODERN,
    OddRequest,
    meta,
    requests,
    texts,
    written,
)

AT_ONCE = 8
"""Requests over HTTP that are under way at the same time."""

Json = dict[str, Any]
ASK_ME: Json = {"elicitation": {}}
DECLINED = {"action": "decline"}


def plain(method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": "<number>", "method": method, "params": params}
    return json.dumps(message).encode()


def first_of(revision: str) -> bytes:
    """Write what a client of this revision says first."""
    if revision == LEGACY:
        return plain("initialize", protocolVersion=LEGACY, clientInfo=CLIENT, capabilities=ASK_ME)
    return plain("server/discover", _meta=meta(ASK_ME))


def last_of(revision: str) -> bytes:
    """Write what a customer says who goes on in the usual way."""
    more = {"_meta": meta({})} if revision == MODERN else {}
    return plain("tools/call", name="list_accounts", arguments={}, **more)


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """How many are sent over HTTP, and four times as many as over stdio."""
    if request.config.getoption("nightly"):
        return 20_000
    return 400 if request.config.getoption("ci") else 80


def drawn(count: int, one: st.SearchStrategy[Any]) -> Iterator[tuple[Any, Any]]:
    """Draw `count` of these, each with an answer to a question.

    Hypothesis does no more than draw: what fails depends on all that was sent before, so that
    nothing smaller need fail. It remembers what it drew with a seed, lest it draw the same again;
    hence several.
    """
    found: list[tuple[Any, Any]] = []

    def collect(each: tuple[Any, Any]) -> None:
        found.append(each)

    quiet = settings(
        max_examples=min(count, 500),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for number in itertools.count():
        seed(number)(quiet(given(st.tuples(one, ANSWERS))(collect)))()
        yield from found[:count]
        count -= len(found)
        found.clear()
        if count <= 0:
            return


# --- what is to come back -------------------------------------------------------------------------


def key(request_id: Any) -> str:
    """Tell ids apart as JSON does: 1 is not "1"."""
    return json.dumps(request_id)


NULL = key(None)


def owed_for(sent: bytes) -> tuple[set[str], int]:
    """Return the keys of the ids that an answer may give back, and how many there must be."""
    legible = {NULL}
    for found in re.findall(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)', sent):
        try:
            legible.add(key(json.loads(found)))
        except ValueError:
            continue
    try:
        message = json.loads(sent.decode())
    except (ValueError, RecursionError):
        # Whether it is a notification cannot be told; `test_stdio.py` has what has to be answered.
        return legible, 0
    if not isinstance(message, dict):
        return {NULL}, 1
    if "method" not in message and ("result" in message or "error" in message):
        return legible, 0
    request_id = message.get("id")
    if isinstance(request_id, int | str) and not isinstance(request_id, bool):
        return ({NULL} if "\ud800" in str(request_id) else {key(request_id)}), 1
    is_notification = "id" not in message and isinstance(message.get("method"), str)
    return {NULL}, 0 if is_notification else 1


class Conversation:
    """What was said so far, of which later messages make use."""

    def __init__(self) -> None:
        self.known: Json = {}
        self.posted: set[str] = set()
        """Transfers that an answer called posted."""
        self.last = ""
        """The result that was told last."""
        self._numbers = itertools.count(1000)

    def write(self, text: bytes) -> bytes:
        """Return a message as it goes out, with an id that no other has."""
        number = next(self._numbers)
        ids = {"number": number, "text": str(number), "odd text": f"\u202e\x00🏦{number}"}
        return written(text, {**self.known, **ids})

    def learn(self, answer: Json, sent: bytes = b"") -> None:
        """Take in what an answer tells."""
        result = answer.get("result")
        if not isinstance(result, dict):
            return
        if asked := result.get("inputRequests"):
            params = json.loads(sent)["params"]
            self.known["asked name"] = params["name"]
            self.known["asked arguments"] = params.get("arguments")
            self.known["state"] = result.get("requestState")
            self.known["asked key"] = next(iter(asked))
        self.last = told = json.dumps(result)
        for found in re.findall(r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})", told):
            self.known["transfer"], self.known["code"] = found
        for found in re.findall(r"\bho_[0-9a-f]{16}\b", told):
            self.known["handoff"] = found
        for each in _members(result):
            if each.get("status") == "posted" and isinstance(each.get("transferId"), str):
                self.posted.add(each["transferId"])


def _members(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _members(each)


def all_is_well(database: Path, cli: Cli, log: str, conversation: Conversation) -> None:
    """Check the books, and that the log tells of no fault."""
    assert "Traceback" not in log, log[-5000:]
    checked = cli("database", "check", "--database", str(database))
    assert checked.code == 0, checked.out
    with closing(sqlite3.connect(database)) as connection:
        posted = connection.execute("SELECT transfer_id FROM transfer WHERE status = 'posted'")
        assert {row[0] for row in posted} == conversation.posted


# --- HTTP, without a socket: `test_connections.py` has what is odd on the wire --------------------


class OverHttp(Conversation):
    """Sends requests, and looks at each answer."""

    def __init__(self, bank: Bank) -> None:
        super().__init__()
        self.bank = bank
        self.tokens = {
            "full": bank.token(),
            "reading": bank.token("CUST001", "bank:read"),
            "garbage": "eyJ.e30.x",
        }

    async def send(self, request: OddRequest) -> None:
        sent = self.write(request.text)
        headers = {**headers_of(self.tokens.get(request.token))}
        headers["MCP-Protocol-Version"] = request.revision
        if request.revision == MODERN:
            headers |= _routing(sent)
        pairs = [(name, value.encode()) for name, value in [*headers.items(), *request.headers]]
        url = f"http://127.0.0.1:8000{request.path}"
        with anyio.fail_after(PATIENCE):
            answer = await self.bank.http.request(request.method, url, content=sent, headers=pairs)
        case = (answer.status_code, answer.content, request, sent)
        assert answer.status_code < 500, case
        if b"jsonrpc" not in answer.content:
            assert not request.is_plain or owed_for(sent)[1] == 0, case
            return
        # A session is opened in an event stream.
        (told,) = map(json.loads, re.findall(r"(?m)^(?:data: )?(\{.*\})\s*$", answer.text))
        self.learn(told, sent)
        ids, _ = owed_for(sent)
        assert key(told.get("id")) in (ids if request.is_plain else ids | {NULL}), case


def _routing(sent: bytes) -> dict[str, str]:
    """Return the headers that repeat a message of 2026-07-28."""
    try:
        message = json.loads(sent)
        name = message["params"].get("name", message["params"].get("uri"))
        said = {"Mcp-Method": message["method"], "Mcp-Name": name}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}
    return {
        header: value
        for header, value in said.items()
        if isinstance(value, str) and value.isascii() and value.isprintable()
    }


def test_requests(full: Path, count: int, cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    conversation = anyio.run(send_all, full, list(drawn(count, requests())))
    log = "\n".join(str(record.exc_text or record.getMessage()) for record in caplog.records)
    all_is_well(full, cli, log, conversation)


async def send_all(database: Path, batches: list[tuple[OddRequest, Any]]) -> OverHttp:
    async with bank_in_memory(database) as bank:
        conversation = OverHttp(bank)
        while batches:
            async with anyio.create_task_group() as at_once:
                for request, _ in batches[:AT_ONCE]:
                    at_once.start_soon(conversation.send, request)
            del batches[:AT_ONCE]
        await conversation.send(OddRequest(LEGACY, last_of(LEGACY)))
        assert "acc_checking_001" in conversation.last
    return conversation


# --- stdio ----------------------------------------------------------------------------------------


class OverStdio(Conversation):
    """Sends lines to a server, and looks at each that comes back."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__()
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._said: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self._stdout:
            self._said.put(line)

    def _put(self, line: bytes) -> None:
        self._stdin.write(line + b"\n")
        self._stdin.flush()

    def send(self, text: bytes, reply: Any) -> None:
        """Send a line, with what is answered if the bank asks something, and wait for its answer.

        A ping after it is answered by then, too: whatever else comes before that is too much.
        """
        sent, ping = self.write(text), self.write(plain("ping"))
        ids, least = owed_for(sent)
        self._put(sent)
        self._put(ping)
        waiting = {key(json.loads(ping)["id"]): 1}
        came = 0
        while waiting or came < least:
            try:
                message = json.loads(self._said.get(timeout=PATIENCE))
            except queue.Empty:
                raise AssertionError(f"not answered: {sent!r}") from None
            if "method" in message:
                for each in (reply, DECLINED) if "id" in message else ():
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": each}
                    self._put(self.write(json.dumps(answer).encode()))
            elif waiting.pop(key(message["id"]), None) is None:
                assert key(message["id"]) in ids, (sent, message)
                came += 1
                self.learn(message, sent)
        assert came <= 1, sent


@pytest.mark.parametrize("mode", [MODES[1], pytest.param(MODES[0], marks=pytest.mark.ci)])
def test_lines(full: Path, count: int, cli: Cli, mode: str, request: Any) -> None:
    revision, log = VERSIONS[mode], full.with_name("server.log")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command("--database", str(full), "--customer", "CUST001"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
        )
    request.addfinalizer(process.kill)

    def memory() -> int:
        """Return the process's resident memory, in KiB."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True)
        return int(shown.stdout)

    conversation = OverStdio(process)
    # The first request decides of which revision all others are.
    conversation.send(first_of(revision), None)
    warm = 0
    for number, (text, reply) in enumerate(drawn(count // 4, texts(revision))):
        conversation.send(text, reply)
        if number == count // 40:
            warm = memory()
    assert memory() <= 1.2 * warm, "it does not grow once it is warm"
    conversation.send(last_of(revision), DECLINED)
    assert "acc_checking_001" in conversation.last
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    all_is_well(full, cli, log.read_text(), conversation)
