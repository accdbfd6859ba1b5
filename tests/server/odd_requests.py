"""What can be sent to the server, made from its own tools: strategies for messages and requests.

A text of the form `<name>` in a message stands for what only the conversation knows, like the id
of a transfer that was prepared: `filled_in` puts that in. So a message is sent as it can be, but
for the id, at any point of any conversation.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from banking_server.chaining import IDENTIFIER, SETTINGS
from banking_server.tools import TOOLS

from ..kit.words import (
    CONFIRM,
    DEPOSIT,
    EURO,
    EVERYDAY,
    FOREIGN,
    LOCKED,
    PAYEE,
    PREPARE,
    RETIREMENT,
    SAVINGS,
    VERSIONS,
)

MODERN, LEGACY = VERSIONS["auto"], VERSIONS["legacy"]
ACCOUNTS = (EVERYDAY, SAVINGS, RETIREMENT, LOCKED, DEPOSIT, EURO, PAYEE, FOREIGN)

# --- values ---------------------------------------------------------------------------------------

VERBATIM = "<verbatim>"
"""A text that begins so goes out without its quotation marks, whatever stands in it."""

LITERALS = st.sampled_from(
    [
        *("NaN", "-Infinity", "1e999", "-1e400", "0.010000000000000001", "1" * 400, "1" * 5000),
        *("01", "1.", "0x1", "'a'", "[1,]", "{1:2}", "undefined", "", "[" * 90 + "]" * 90),
        *("[" * 120 + "]" * 120, "[" * 1500 + "]" * 1500, '{"id":' * 1500 + "1" + "}" * 1500),
    ]
).map(lambda literal: VERBATIM + literal)
"""What is no JSON, or is read in one way here and in another there, or is deep."""

LEAVES = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 25, 2**53 + 1, 10**18, 10**300, -(2**63)]),
    st.sampled_from([0.01, 0.001, -0.0, 19.99, 1e15, 5e-324, 1.7976931348623157e308]),
    st.sampled_from(["", "null", "yes", "\x00", "\u202e\x1b[2J", "\ud800", "🏦", "x" * 3000]),
    st.sampled_from(["<transfer>", "<code>", "<handoff>", "<state>", *ACCOUNTS]),
    st.integers(),
    st.text(max_size=8),
)
VALUES = st.one_of(
    *(LEAVES, LEAVES, LITERALS, st.lists(LEAVES, max_size=3)),
    st.dictionaries(st.sampled_from(["name", "arguments", "_meta", "id", "", "\ud800"]), LEAVES),
)

BY_NAME: Mapping[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("accountId", "fromAccountId", "toAccountId"), st.sampled_from(ACCOUNTS)),
    "amount": st.sampled_from([0.01, 0.02, 1, 25, 25.5, 3000, 10_000.01, 999_999_999.99]),
    "days": st.sampled_from([1, 30, 365]),
    "scheduledDate": st.sampled_from([None, None, None, "2027-01-04", "2027-02-29", "9999-12-31"]),
    "transferId": st.just("<transfer>"),
    "confirmationCode": st.just("<code>"),
    "handoffId": st.just("<handoff>"),
    "cursor": st.just("<cursor>"),
    "rule": st.sampled_from(["external-payee-3000", ""]),
    "params": st.deferred(lambda: CALLS),
    "jmespath": st.sampled_from(
        ["[0].structuredContent.status", "[0].structuredContent.transferId", "[*].a", "@", "["]
    ),
}
"""What arguments with a meaning can be."""


def fitting(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return what the schema of an argument lets in."""
    if "$ref" in schema:
        return fitting(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in schema:
        return st.one_of([fitting(each, definitions) for each in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"], definitions), min_size=1, max_size=3)
    if schema["type"] == "object":
        members = {
            name: BY_NAME[name] if name in BY_NAME else fitting(each, definitions)
            for name, each in schema["properties"].items()
        }
        needed = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: each for name, each in members.items() if name in needed},
            optional={name: each for name, each in members.items() if name not in needed},
        )
    return {
        "string": st.sampled_from(["a reason", "", "\u202e", "PROMPT_ARGUMENT: which?"]),
        "integer": st.integers(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "null": st.none(),
    }[schema["type"]]


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
        drawn[draw(st.sampled_from(["unknown", "", "__proto__", "\ud800"]))] = draw(VALUES)
    return drawn


ARGUMENTS = {
    tool.name: changed(fitting(tool.parameters, tool.parameters.get("$defs", {}))) for tool in TOOLS
}
PAYMENTS = st.fixed_dictionaries(
    {
        **{"fromAccountId": st.just(EVERYDAY), "toAccountId": st.sampled_from([SAVINGS, PAYEE])},
        "amount": st.sampled_from([0.01, 0.02, 0.03, 1]),
    }
)
CONFIRMATIONS = st.fixed_dictionaries(
    {"transferId": st.just("<transfer>"), "action": st.just("confirm")},
    optional={"confirmationCode": st.just("<code>")},
)


def calls(tool: str, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": st.just(tool), "arguments": arguments})


CALLS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    *[calls(tool, arguments) for tool, arguments in ARGUMENTS.items()],
    *[calls(PREPARE, PAYMENTS), calls(CONFIRM, CONFIRMATIONS)] * 3,
)

# --- messages -------------------------------------------------------------------------------------

CLIENT = {"name": "a client", "version": "1"}


def meta(capabilities: dict[str, Any]) -> dict[str, Any]:
    """Return what each request of 2026-07-28 says of its client."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


CAPABILITIES = st.sampled_from(
    [
        *({}, {"elicitation": {}}, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        {"elicitation": {}, "extensions": {IDENTIFIER: SETTINGS}},
        {"extensions": {IDENTIFIER: 5}, "roots": {}, "sampling": {}},
    ]
)
ANSWERS = st.one_of(
    *[st.just({"action": "accept", "content": {"agreed": True}})] * 3,
    st.just({"action": "decline"}),
    st.just({"action": "accept", "content": {"picked": SAVINGS}}),
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

NO_PARAMS = st.just(dict[str, Any]())
URIS = st.sampled_from(["bank://guide", "file:///etc/passwd", "", "bank://\x00", "http://[", "🏦"])
REQUESTS: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "tools/call": st.one_of(CALLS, CALLS, CALLS, ASKED_AGAIN),
    **dict.fromkeys(
        ("ping", "server/discover", "tools/list", "resources/list", "resources/templates/list"),
        NO_PARAMS,
    ),
    **dict.fromkeys(("prompts/list", "tasks/list", "roots/list", "no/such", "\x00"), NO_PARAMS),
    "resources/read": st.fixed_dictionaries({"uri": URIS}),
    "resources/subscribe": st.fixed_dictionaries({"uri": URIS}),
    "prompts/get": st.fixed_dictionaries({"name": LEAVES}),
    "completion/complete": st.fixed_dictionaries(
        {
            "ref": st.just({"type": "ref/prompt", "name": "x"}),
            "argument": st.fixed_dictionaries({"name": LEAVES, "value": LEAVES}),
        }
    ),
    "logging/setLevel": st.fixed_dictionaries({"level": st.sampled_from(["debug", "loud"])}),
    "tasks/get": st.fixed_dictionaries({"taskId": LEAVES}),
    "elicitation/create": st.fixed_dictionaries({"message": LEAVES, "requestedSchema": LEAVES}),
    "initialize": st.fixed_dictionaries(
        {
            "protocolVersion": st.sampled_from([LEGACY, "2024-11-05", MODERN, "1999-01-01"]),
            "capabilities": CAPABILITIES,
            "clientInfo": st.just(CLIENT),
        }
    ),
}
BEFORE = st.sampled_from(["<id before>", "<id before>", None, -1, "", 1.5])
NOTIFICATIONS: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "notifications/initialized": NO_PARAMS,
    "notifications/cancelled": st.fixed_dictionaries({"requestId": BEFORE}),
    "notifications/progress": st.fixed_dictionaries({"progressToken": LEAVES, "progress": LEAVES}),
    "notifications/roots/list_changed": NO_PARAMS,
    "tools/call": CALLS,
    "no/such": NO_PARAMS,
}
IDS = st.sampled_from(["<number>", "<negative>", "<text>", "<odd text>", "<huge>"])
"""Ids, of which an answer can give back each; no two messages have the same."""

NO_IDS = st.one_of(st.sampled_from([None, True, 1.5, [1], {}, "\ud800"]), LITERALS)


@st.composite
def messages(draw: st.DrawFn, revision: str) -> dict[str, Any]:
    """Draw a message: a request mostly, a notification or an answer, and something about it odd."""
    kind = draw(st.integers(0, 19))
    if kind == 19:
        said = draw(st.fixed_dictionaries({draw(st.sampled_from(["result", "error"])): VALUES}))
        return draw(changed(st.just({"jsonrpc": "2.0", "id": draw(LEAVES), **said})))
    known = NOTIFICATIONS if kind > 16 else REQUESTS
    method = "tools/call" if kind < 9 else draw(st.sampled_from(sorted(known)))
    params = dict(draw(known[method]))
    if revision == MODERN:
        params["_meta"] = meta(draw(CAPABILITIES))
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if known is REQUESTS:
        message["id"] = draw(IDS)
    message |= {"method": method, "params": params}
    odd = draw(st.integers(0, 29))
    if odd == 1:
        message["id"] = draw(NO_IDS)
    elif odd == 2:
        message["params"] = draw(VALUES)
    elif odd == 3:
        params["_meta"] = draw(changed(st.just(params.get("_meta", {}))) | VALUES)
    elif odd == 4:
        params |= {"inputResponses": draw(VALUES), "requestState": draw(VALUES)}
    elif odd == 5:
        message = draw(changed(st.just(message)))
    return message


@st.composite
def texts(draw: st.DrawFn, revision: str) -> bytes:
    """Draw a message as it is written, or next to so; on one line."""
    message: Any = draw(messages(revision))
    damage = draw(st.integers(0, 39))
    if damage == 1:
        message = draw(st.sampled_from([[message], [], [message] * 3, None, 5, "text"]))
    written = in_json(message, ascii_only=draw(st.booleans()))
    if damage == 2:
        # Which of two members of one name counts, no standard says.
        written = written.replace(b"{", b'{"method": "ping", "jsonrpc": "2.0", ', 1)
    elif damage == 3:
        return draw(st.binary(max_size=20)).replace(b"\n", b"")
    if damage in (4, 5, 6):
        at = draw(st.integers(0, len(written)))
        junk = draw(st.sampled_from([b"", b"\x00", b"\xff", b'"', b"}", b"\xc0\x80", b"\xef\xbb"]))
        written = written[:at] + junk + (b"" if damage == 4 else written[at + 1 :])
    return written


def in_json(value: Any, *, ascii_only: bool = True) -> bytes:
    """Write a value that holds what JSON does not know."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    text = _VERBATIM.sub(lambda found: str(json.loads(f'"{found[1]}"')), text)
    return text.encode(errors="surrogatepass")


_VERBATIM = re.compile(rf'"{VERBATIM}((?:[^"\\]|\\.)*)"')


def filled_in(text: bytes, known: Mapping[str, Any]) -> bytes:
    """Put in what the conversation knows, where a text says `<name>`."""
    return _NAMES.sub(
        lambda found: json.dumps(known.get(found[1].decode(), "nothing")).encode(), text
    )


_NAMES = re.compile(rb'"<([a-z ]+)>"')

# --- HTTP -----------------------------------------------------------------------------------------

NAMES = (
    *("Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"),
    *("Mcp-Session-Id", "Authorization", "Host", "Origin", "Content-Encoding", "Accept-Encoding"),
    *("Mcp-Param-Amount", "Expect", "Last-Event-ID", "Forwarded", "X-Forwarded-For", "Cookie"),
    *("Connection", "Upgrade", "traceparent"),
)
HEADER_VALUES = st.one_of(
    st.sampled_from(["", "*/*", "text/event-stream", "application/json; charset=utf-16", "gzip"]),
    st.sampled_from([LEGACY, MODERN, "1999-01-01", "tools/call", "=?base64?8J+Ppg==?=", "null"]),
    st.sampled_from(["Bearer", "Bearer a b", "Basic eDp5", "100-continue", "close", "websocket"]),
    st.sampled_from(["\xe4\xff", "x" * 3000, "\x01", "a,b", "127.0.0.1", "evil.example", "%00"]),
)


@dataclass(frozen=True)
class OddRequest:
    """A request over HTTP."""

    revision: str
    in_session: bool
    text: bytes
    token: str = "full"
    method: str = "POST"
    path: str = "/mcp"
    headers: tuple[tuple[str, str | None], ...] = ()
    """What is said in place of what would be; None: nothing."""
    twice: bool = False
    """Whether what is odd is said beside what would be."""
    chunked: bool = False

    @property
    def plain(self) -> bool:
        """Whether nothing but the message can be odd."""
        return (self.token, self.method, self.path, self.headers) == ("full", "POST", "/mcp", ())


@st.composite
def requests(draw: st.DrawFn) -> OddRequest:
    """Draw a request; three of four say what belongs to their message."""
    revision = draw(st.sampled_from([MODERN, LEGACY]))
    in_session = revision == LEGACY and draw(st.booleans())
    text = draw(texts(revision))
    chunked = draw(st.integers(0, 9)) == 0
    odd = draw(st.integers(0, 19))
    if odd == 1:
        token = draw(st.sampled_from(["reading", "none", "another's", "garbage"]))
        return OddRequest(revision, in_session, text, token=token, chunked=chunked)
    if odd == 2:
        method = draw(st.sampled_from(["GET", "DELETE", "PUT", "OPTIONS", "HEAD", "get", "FOO"]))
        path = draw(st.sampled_from(["/mcp", "/health"]))
        return OddRequest(revision, in_session, text, method=method, path=path)
    if odd == 3:
        path = draw(st.sampled_from(["/", "/mcp/", "/mcp?x=\xe4", "//mcp", "/%6dcp", "/#", "*"]))
        return OddRequest(revision, in_session, text, path=path)
    if odd == 4:
        path = draw(st.sampled_from(["/health", "/.well-known/oauth-protected-resource/mcp"]))
        return OddRequest(revision, in_session, text, path=path, token="none")
    if odd > 7:
        return OddRequest(revision, in_session, text, chunked=chunked)
    headers = draw(
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.none() | HEADER_VALUES), min_size=1, max_size=2
        )
    )
    return OddRequest(revision, in_session, text, headers=tuple(headers), twice=draw(st.booleans()))
