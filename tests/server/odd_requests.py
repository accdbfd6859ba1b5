"""What can be sent to the server, made from its own tools: strategies for messages and requests.

A text of the form `<name>` in a message stands for what only the conversation knows, like the id
of a transfer that was prepared: `written` puts that in. So a message is sent as it can be at any
point of any conversation.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from banking_server.chaining import IDENTIFIER, SETTINGS
from banking_server.tools import TOOLS

from ..kit.words import CONFIRM, EVERYDAY, FOREIGN, LOCKED, PAYEE, PREPARE, SAVINGS, VERSIONS

MODERN, LEGACY = VERSIONS["auto"], VERSIONS["legacy"]

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

ACCOUNTS = st.sampled_from([EVERYDAY, SAVINGS, LOCKED, PAYEE, FOREIGN])
LEAVES = st.one_of(
    st.sampled_from([None, True, 0, -1, 25, 2**53 + 1, 10**300, 0.001, -0.0, 19.99]),
    st.sampled_from(["", "null", "\x00", "\u202e\x1b[2J", "\ud800", "🏦", "x" * 3000]),
    st.sampled_from(["<transfer>", "<code>", "<handoff>", "<state>"]),
    ACCOUNTS,
    st.sampled_from([f"<{name}>" for name in RAW]),
    st.text(max_size=8),
)
VALUES = st.one_of(
    *(LEAVES, LEAVES, st.lists(LEAVES, max_size=3)),
    st.dictionaries(st.sampled_from(["name", "arguments", "_meta", "id", "", "\ud800"]), LEAVES),
)
BY_NAME: Mapping[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("accountId", "fromAccountId", "toAccountId"), ACCOUNTS),
    "amount": st.sampled_from([0.01, 25, 25.5, 3000, 10_000.01]),
    "scheduledDate": st.sampled_from([None, None, "2027-01-04", "2027-02-29", "9999-12-31"]),
    "transferId": st.just("<transfer>"),
    "action": st.sampled_from(["confirm", "cancel"]),
    "confirmationCode": st.just("<code>"),
    "handoffId": st.just("<handoff>"),
    "choice": st.sampled_from(["realtime", "callback"]),
    "tools": st.deferred(lambda: st.lists(st.fixed_dictionaries({"params": CALLS}), max_size=3)),
}
"""What arguments with a meaning can be."""


@st.composite
def changed(draw: st.DrawFn, values: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """Draw an object that may have lost a member, have a wrong one, or one too many."""
    drawn = dict(draw(values))
    change = draw(st.integers(0, 9))
    if change == 1 and drawn:
        del drawn[draw(st.sampled_from(sorted(drawn)))]
    elif change == 2 and drawn:
        drawn[draw(st.sampled_from(sorted(drawn)))] = draw(VALUES)
    elif change == 3:
        drawn[draw(st.sampled_from(["unknown", "__proto__", "\ud800"]))] = draw(VALUES)
    return drawn


def call(tool: str, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": st.just(tool), "arguments": arguments})


def payment(**more: str) -> dict[str, Any]:
    return {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 0.07, **more}


CONFIRMED = {"transferId": "<transfer>", "action": "confirm"}


def arguments(names: Iterable[str]) -> st.SearchStrategy[dict[str, Any]]:
    optional = {name: BY_NAME.get(name, VALUES) for name in names}
    return changed(st.fixed_dictionaries({}, optional=optional))


CALLS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    *[call(tool.name, arguments(tool.parameters["properties"])) for tool in TOOLS],
    *[call(PREPARE, st.just(payment()))] * 3,
    *[call(CONFIRM, st.just(CONFIRMED))] * 3,
    *[call(CONFIRM, st.just({**CONFIRMED, "confirmationCode": "<code>"}))] * 3,
)

CLIENT = {"name": "a client", "version": "1"}
CAPABILITIES = st.sampled_from(
    [{}, {"elicitation": {}}, {"elicitation": {}, "extensions": {IDENTIFIER: SETTINGS}}]
)
ANSWERS = st.one_of(
    *[st.just({"action": "accept", "content": {"agreed": True}})] * 3,
    st.just({"action": "decline"}),
    changed(st.fixed_dictionaries({"action": st.just("accept"), "content": VALUES})),
    VALUES,
)
"""Answers to what the bank asks, with a yes among them."""

ASKED_AGAIN = st.fixed_dictionaries(
    {
        "name": st.just("<asked name>"),
        "arguments": st.just("<asked arguments>"),
        "requestState": st.just("<state>"),
        "inputResponses": changed(st.fixed_dictionaries({"<asked key>": ANSWERS})),
    }
)
"""The second round of a call on 2026-07-28."""

METHODS = st.sampled_from(
    [
        *("tools/list", "resources/list", "resources/read", "prompts/get", "completion/complete"),
        *("logging/setLevel", "tasks/get", "elicitation/create", "initialize", "no/such", "\x00"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
    ]
)
OTHERS = changed(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("uri", "name", "level", "requestId", "ref"), VALUES)
    )
)


def meta(capabilities: dict[str, Any]) -> dict[str, Any]:
    """Return what each request of 2026-07-28 says of its client."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


@st.composite
def texts(draw: st.DrawFn, revision: str) -> bytes:
    """Draw a message as it is written, or next to so; on one line, but for `<names>`."""
    is_call = draw(st.integers(0, 2)) > 0
    method = "tools/call" if is_call else draw(METHODS)
    params = dict(draw((CALLS | CALLS | ASKED_AGAIN) if is_call else OTHERS))
    if revision == MODERN:
        params["_meta"] = meta(draw(CAPABILITIES))
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if not method.startswith("notifications/"):
        message["id"] = draw(st.sampled_from(["<number>", "<text>", "<odd text>"]))
    message = draw(changed(st.just(message)))
    text = json.dumps(message).encode()
    damage = draw(st.integers(0, 29))
    if damage == 1:
        return b"[" + text + b"]"
    if damage == 2:
        # Which of two members of one name counts, no standard says.
        return text.replace(b"{", b'{"method": "ping", "jsonrpc": "2.0", ', 1)
    if damage in (3, 4):
        at = draw(st.integers(0, len(text)))
        junk = draw(st.sampled_from([b"", b"\x00", b"\xff", b'"', b"}", b"\xc0\x80"]))
        return text[:at] + junk + text[at + damage - 3 :]
    return text


def written(text: bytes, known: Mapping[str, Any]) -> bytes:
    """Put in what the conversation knows, and what is no JSON, where a text says `<name>`."""

    def instead(found: re.Match[bytes]) -> bytes:
        name = found[1].decode()
        return RAW.get(name) or json.dumps(known.get(name, "nothing")).encode()

    return re.sub(rb'"<([a-z ]+)>"', instead, text)


@dataclass(frozen=True)
class OddRequest:
    """A request over HTTP."""

    revision: str
    text: bytes
    token: str = "full"
    method: str = "POST"
    path: str = "/mcp"
    headers: tuple[tuple[str, str], ...] = ()
    """What is said beside what would be."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the message can be odd."""
        return (self.token, self.method, self.path, self.headers) == ("full", "POST", "/mcp", ())


HEADERS = st.tuples(
    st.sampled_from(
        [
            *("Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Session-Id"),
            *("Authorization", "Host", "Origin", "Content-Encoding", "Forwarded", "traceparent"),
        ]
    ),
    st.sampled_from(
        [
            *("", "*/*", "gzip", LEGACY, "1999-01-01", "tools/call", "=?base64?8J+Ppg==?=", "null"),
            *("Bearer", "Basic eDp5", "\xe4\xff", "x" * 3000, "\x01", "a,b", "evil.example"),
        ]
    ),
)


@st.composite
def requests(draw: st.DrawFn) -> OddRequest:
    """Draw a request; three of four say what belongs to their message."""
    revision = draw(st.sampled_from([MODERN, LEGACY]))
    plain = (revision, draw(texts(revision)))
    match draw(st.integers(0, 15)):
        case 1:
            return OddRequest(*plain, token=draw(st.sampled_from(["reading", "none", "garbage"])))
        case 2:
            methods = ["GET", "DELETE", "PUT", "OPTIONS", "HEAD", "get", "FOO"]
            return OddRequest(*plain, method=draw(st.sampled_from(methods)))
        case 3:
            paths = ["/", "/mcp/", "//mcp", "/%6dcp", "/health"]
            return OddRequest(*plain, path=draw(st.sampled_from(paths)))
        case 4:
            return OddRequest(*plain, headers=(draw(HEADERS), draw(HEADERS)))
        case _:
            return OddRequest(*plain)
