"""Whatever is sent over HTTP, as much as there is of it: each request answered once, nothing lost.

Messages of a usual conversation are changed at random: the usual run sends some dozens, `--ci` some
hundreds and `--nightly` some thousands. The seed is the same each time, and a failure says what was
sent last. `test_connections.py` has what is odd on the wire, `test_stdio.py` what is odd in a line.
"""

import copy
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from banking_server.chaining import IDENTIFIER, SETTINGS

from ..kit.command import PATIENCE, Cli
from ..kit.servers import headers_of
from ..kit.words import CONFIRM, HANDOFF, MODES, PREPARE, STATEMENT, TO_SAVINGS, VERSIONS
from .in_memory import Bank, bank_in_memory

AT_ONCE = 8
"""Requests over HTTP that are under way at the same time."""

Json = dict[str, Any]
MODERN, LEGACY = VERSIONS["auto"], VERSIONS["legacy"]
CLIENT = {"name": "a client", "version": "1"}
CAPABILITIES: Json = {"elicitation": {}, "experimental": {IDENTIFIER: SETTINGS}}
YES: Json = {"action": "accept", "content": {"agreed": True}}
PAYMENT = {**TO_SAVINGS, "amount": 0.07}
CONFIRMED = {"transferId": "<transfer>", "action": "confirm"}

INITIALIZE = {"protocolVersion": LEGACY, "clientInfo": CLIENT, "capabilities": CAPABILITIES}
CALLS: list[tuple[str, Json]] = [
    (PREPARE, PAYMENT),
    (PREPARE, {"fromAccountId": "acc_checking_001", "amount": 250}),
    (CONFIRM, CONFIRMED),
    (CONFIRM, {**CONFIRMED, "confirmationCode": "<code>"}),
    (STATEMENT, {"accountId": "acc_savings_001", "days": 30}),
    (HANDOFF, {"reason": "A question"}),
    ("multiplex_tools", {"tools": [{"params": {"name": PREPARE, "arguments": PAYMENT}}] * 2}),
]
USUAL: list[tuple[str, Json]] = [
    *[("tools/call", {"name": name, "arguments": arguments}) for name, arguments in CALLS] * 3,
    *[(method, {}) for method in ("ping", "tools/list", "resources/list", "no/such")],
    ("initialize", INITIALIZE),
    ("resources/read", {"uri": "bank://guide"}),
    ("prompts/get", {"name": "x"}),
    ("notifications/cancelled", {"requestId": 1}),
]
"""Methods and parameters; texts of the form `<name>` stand for what the conversation has told."""

RAW: dict[str, bytes] = {
    "not a number": b"NaN",
    "infinite": b"1e999",
    "no double": b"0.010000000000000001",
    "long": b"1" * 5000,
    "no json": b"[1,]",
    "deep": b"[" * 120 + b"]" * 120,
    "deeper": b'{"id":' * 1500 + b"1" + b"}" * 1500,
}
"""What is no JSON, or is read in one way here and in another there, or is deep."""

VALUES: list[Any] = [
    *(None, True, 0, -1, 2**53 + 1, 10**300, 0.001, -0.0, [], {}, [[1]], {"\ud800": None}),
    *("", "null", "\x00", "\u202e\x1b[2J", "\ud800", "🏦", "x" * 3000, "acc_checking_002"),
    *[f"<{name}>" for name in RAW],
]
HEADERS = [
    *[("MCP-Protocol-Version", "1999-01-01"), ("Authorization", "Bearer eyJ.e30.x")],
    *[("Mcp-Session-Id", "x"), ("Mcp-Method", "tools/list"), ("Host", "evil.example")],
    *[("Content-Type", "text/plain"), ("Content-Encoding", "gzip"), ("Origin", "null")],
]
"""What is said beside what would be."""


def objects_in(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from objects_in(each)


class Conversation:
    """What was said so far, of which later messages make use."""

    def __init__(self, revision: str, seed: int) -> None:
        self.random = Random(seed)
        self.revision = revision
        self.known: Json = {}
        self.posted: set[str] = set()
        """Transfers that an answer called posted."""
        self.last = ""
        """The result that was told last."""
        self._number = 1000
        self._again: list[Json] = []
        """Calls whose question has come, with a yes."""

    def plain(self, method: str, params: Json) -> Json:
        """Return a message with an id that no other has; a notification has none."""
        self._number += 1
        message: Json = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if not method.startswith("notifications/"):
            ids = (self._number, str(self._number), f"\u202e\x00🏦{self._number}")
            message["id"] = self.random.choice(ids)
        if self.revision == MODERN:
            message["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
            }
        return message

    def odd(self) -> bytes:
        """Return one message, changed at random; on one line."""
        message = self.plain(*self.random.choice(USUAL))
        if self._again and self.random.random() < 0.3:
            message["method"] = "tools/call"
            message["params"] = self._again.pop()
        message = copy.deepcopy(message)
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            changed = self.random.choice(list(objects_in(message)))
            name = self.random.choice([*changed, "unknown", "\ud800"])
            if self.random.random() < 0.3:
                changed.pop(name, None)
            else:
                changed[name] = copy.deepcopy(self.random.choice(VALUES))
        sent = self.written(message)
        if self.random.randrange(15) == 1:
            at = self.random.randrange(len(sent))
            junk = self.random.choice([b"", b"\x00", b"\xff", b'"', b"}", b"\xc0\x80"])
            return sent[:at] + junk + sent[at + 1 :]
        return sent

    def written(self, message: Json) -> bytes:
        """Write a message with what the conversation knows, and with what is no JSON."""

        def instead(found: re.Match[bytes]) -> bytes:
            name = found[1].decode()
            return RAW.get(name) or json.dumps(self.known.get(name, "nothing")).encode()

        return re.sub(rb'"<([a-z ]+)>"', instead, json.dumps(message).encode())

    def learn(self, answer: Json, sent: bytes) -> None:
        """Take in what an answer tells."""
        result = answer.get("result")
        if not isinstance(result, dict):
            return
        if asked := result.get("inputRequests"):
            state = {"requestState": result.get("requestState")}
            answers = {"inputResponses": dict.fromkeys(asked, YES)}
            self._again.append({**json.loads(sent)["params"], **state, **answers})
        self.last = json.dumps(result)
        for found in re.findall(r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})", self.last):
            self.known["transfer"], self.known["code"] = found
        for each in objects_in(result):
            if each.get("status") == "posted" and isinstance(each.get("transferId"), str):
                self.posted.add(each["transferId"])


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """How many are sent, half of them of each revision."""
    if request.config.getoption("nightly"):
        return 20_000
    return 1000 if request.config.getoption("ci") else 80


def key(request_id: Any) -> str:
    """Tell ids apart as JSON does: 1 is not "1"."""
    return json.dumps(request_id)


NULL = key(None)


def owed_for(sent: bytes) -> tuple[set[str], int]:
    """Return the keys of the ids that an answer may give back, and how many there must be."""
    legible = {NULL}
    for found in re.findall(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]{1,4000})', sent):
        try:
            legible.add(key(json.loads(found)))
        except ValueError:
            continue
    try:
        message = json.loads(sent.decode())
    except (ValueError, RecursionError):
        # Whether it is a notification cannot be told; `tests/messages` has what has to be answered.
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


def all_is_well(database: Path, cli: Cli, log: str, conversation: Conversation) -> None:
    """Check the books, and that the log tells of no fault."""
    assert "Traceback" not in log, log[-5000:]
    checked = cli("database", "check", "--database", str(database))
    assert checked.code == 0, checked.out
    with closing(sqlite3.connect(database)) as connection:
        posted = connection.execute("SELECT transfer_id FROM transfer WHERE status = 'posted'")
        assert {row[0] for row in posted} == conversation.posted


async def send_over_http(bank: Bank, conversation: Conversation, sent: bytes) -> None:
    """Send a message, a fifth of them with something odd beside it, and look at the answer."""
    random = conversation.random
    method, path, odd, token = "POST", "/mcp", [], bank.token()
    match random.randrange(20):
        case 1:
            method = random.choice(["GET", "DELETE", "OPTIONS", "HEAD", "FOO"])
        case 2:
            path = random.choice(["/", "/mcp/", "/%6dcp", "/health"])
        case 3:
            odd = random.choices(HEADERS, k=2)
        case 4:
            token = bank.token("CUST001", "bank:read")
    is_plain = (method, path, odd) == ("POST", "/mcp", [])
    headers = {**headers_of(token), "MCP-Protocol-Version": conversation.revision}
    if conversation.revision == MODERN:
        headers |= _routing(sent)
    pairs = [(name, value.encode()) for name, value in [*headers.items(), *odd]]
    with anyio.fail_after(PATIENCE):
        url = f"http://127.0.0.1:8000{path}"
        answer = await bank.http.request(method, url, content=sent, headers=pairs)
    case = (answer.status_code, answer.content, method, path, odd, sent)
    assert answer.status_code < 500, case
    ids, least = owed_for(sent)
    if b"jsonrpc" not in answer.content:
        assert least == 0 or not is_plain, case
        return
    # A session is opened in an event stream.
    (told,) = map(json.loads, re.findall(r"(?m)^(?:data: )?(\{.*\})\s*$", answer.text))
    conversation.learn(told, sent)
    assert key(told.get("id")) in (ids if is_plain else ids | {NULL}), case


def _routing(sent: bytes) -> dict[str, str]:
    """Return the headers that repeat a message of 2026-07-28."""
    try:
        message = json.loads(sent)
        name = message["params"].get("name", message["params"].get("uri"))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}
    said = {"Mcp-Method": message.get("method"), "Mcp-Name": name}
    return {
        header: value
        for header, value in said.items()
        if isinstance(value, str) and value.isascii() and value.isprintable()
    }


async def send_all(database: Path, count: int, revision: str) -> Conversation:
    conversation = Conversation(revision, seed=count)
    async with bank_in_memory(database) as bank:
        for _ in range(0, count, AT_ONCE):
            async with anyio.create_task_group() as at_once:
                for _ in range(AT_ONCE):
                    at_once.start_soon(send_over_http, bank, conversation, conversation.odd())
        assert (await bank.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 200
    return conversation


@pytest.mark.parametrize("mode", MODES)
def test_requests(
    full: Path, count: int, cli: Cli, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = anyio.run(send_all, full, count // 2, VERSIONS[mode])
    all_is_well(full, cli, caplog.text, conversation)
