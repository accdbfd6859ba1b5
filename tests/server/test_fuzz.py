"""Whatever is sent over HTTP, as much as there is of it: each request answered once, nothing lost.

Messages of a usual conversation are changed at random: the usual run sends some dozens, `--ci` some
hundreds and `--nightly` some thousands. The seed is the same each time, and a failure says what was
sent last. `test_serving.py` has what is odd on the wire, `test_stdio.py` what is odd in a line.
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
from ..kit.servers import request_of
from ..kit.words import CONFIRM, HANDOFF, PREPARE, STATEMENT, TO_SAVINGS, VERSIONS
from .in_memory import LIST_TOOLS, Bank, bank_in_memory

AT_ONCE = 8
"""Requests that are under way at the same time."""

Json = dict[str, Any]
MODERN, LEGACY = VERSIONS["auto"], VERSIONS["legacy"]
CLIENT = {"name": "a client", "version": "1"}
CAPABILITIES: Json = {"elicitation": {}, "experimental": {IDENTIFIER: SETTINGS}}
PAYMENT = {**TO_SAVINGS, "amount": 0.07}
CONFIRMED = {"transferId": "<transfer>", "action": "confirm"}

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
    (
        "initialize",
        {"protocolVersion": LEGACY, "clientInfo": CLIENT, "capabilities": CAPABILITIES},
    ),
    ("resources/read", {"uri": "bank://guide"}),
    ("notifications/cancelled", {"requestId": 1}),
]
"""Methods and parameters; texts of the form `<name>` stand for what the conversation has told."""

RAW: dict[str, bytes] = {
    "not a number": b"NaN",
    "infinite": b"1e999",
    "no double": b"0.010000000000000001",
    "long": b"1" * 5000,
    "no json": b"[1,]",
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

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.known: Json = {}
        self.posted: set[str] = set()
        """Transfers that an answer called posted."""
        self._number = 1000

    def message(self) -> bytes:
        """Return a message with an id that no other has, changed at random."""
        self._number += 1
        method, params = self.random.choice(USUAL)
        message: Json = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if not method.startswith("notifications/"):
            message["id"] = self.random.choice([self._number, f"\u202e\x00🏦{self._number}"])
        message["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": self.random.choice([CAPABILITIES, {}]),
        }
        message = copy.deepcopy(message)
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            changed = self.random.choice(list(objects_in(message)))
            name = self.random.choice([*changed, "unknown"])
            if self.random.random() < 0.3:
                changed.pop(name, None)
            else:
                changed[name] = copy.deepcopy(self.random.choice(VALUES))
        sent = re.sub(rb'"<([a-z ]+)>"', self._instead, json.dumps(message).encode())
        if self.random.random() < 0.07:
            at = self.random.randrange(len(sent))
            junk = self.random.choice([b"", b"\x00", b"\xff", b'"', b"}", b"\xc0\x80"])
            return sent[:at] + junk + sent[at + 1 :]
        return sent

    def _instead(self, found: re.Match[bytes]) -> bytes:
        name = found[1].decode()
        return RAW.get(name) or json.dumps(self.known.get(name, "nothing")).encode()

    def learn(self, answer: Json) -> None:
        """Take in what an answer tells."""
        text = json.dumps(answer)
        for found in re.findall(r"code for transfer (tr_[0-9a-f]{16}) is (\d{6})", text):
            self.known["transfer"], self.known["code"] = found
        for each in objects_in(answer.get("result")):
            if each.get("status") == "posted" and isinstance(each.get("transferId"), str):
                self.posted.add(each["transferId"])


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """How many are sent of each revision."""
    if request.config.getoption("nightly"):
        return 10_000
    return 500 if request.config.getoption("ci") else 40


def read(sent: bytes) -> Json | None:
    """Return the message, if it is one object of JSON."""
    try:
        message = json.loads(sent.decode())
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def routing(message: Json) -> dict[str, str]:
    """Return the headers that repeat a message of 2026-07-28."""
    params = message.get("params")
    named = params if isinstance(params, dict) else {}
    said = {
        "Mcp-Method": message.get("method"),
        "Mcp-Name": named.get("name", named.get("uri")),
    }
    return {
        header: value
        for header, value in said.items()
        if isinstance(value, str) and value.isascii() and value.isprintable()
    }


async def send(bank: Bank, conversation: Conversation, sent: bytes) -> None:
    """Send a message, a fifth of them with something odd beside it, and look at the answer."""
    random, message = conversation.random, read(sent)
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
    headers = request_of(sent, token)[1] | routing(message or {})
    pairs = [(name, value.encode()) for name, value in [*headers.items(), *odd]]
    with anyio.fail_after(PATIENCE):
        url = f"http://127.0.0.1:8000{path}"
        answer = await bank.http.request(method, url, content=sent, headers=pairs)
    case = (answer.status_code, answer.content, method, path, odd, sent)
    assert answer.status_code < 500, case
    if answer.text.startswith("{"):
        conversation.learn(answer.json())
    if (method, path, odd, answer.status_code) == ("POST", "/mcp", [], 200):
        assert message is not None, case
        assert answer.json()["id"] == message["id"], case


async def send_all(database: Path, count: int) -> Conversation:
    conversation = Conversation(seed=count)
    async with bank_in_memory(database) as bank:
        for _ in range(0, count, AT_ONCE):
            async with anyio.create_task_group() as at_once:
                for _ in range(AT_ONCE):
                    at_once.start_soon(send, bank, conversation, conversation.message())
        assert (await bank.send(LIST_TOOLS)).status_code == 200
    return conversation


def test_requests(full: Path, count: int, cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    """The books are sound, every transfer that was called posted is, and the log has no fault."""
    conversation = anyio.run(send_all, full, count)
    assert "Traceback" not in caplog.text, caplog.text[-5000:]
    checked = cli("--database", str(full), "database", "check")
    assert checked.code == 0, checked.out
    with closing(sqlite3.connect(full)) as connection:
        posted = connection.execute("SELECT transfer_id FROM transfer WHERE status = 'posted'")
        assert {row[0] for row in posted} == conversation.posted
