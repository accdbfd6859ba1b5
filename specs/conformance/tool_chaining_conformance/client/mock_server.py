"""The mock MCP server that a client under test talks to, playing one case of a script.

It uses raw HTTP in both eras, and tolerates every fault that no check covers. It records every call
and every message. `client.checks` judges them after the client ended.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from tool_chaining_conformance import __version__
from tool_chaining_conformance.client.script import (
    Broken,
    Case,
    ClientScript,
    Elicit,
    Place,
    ScriptAnswer,
    ScriptTool,
)
from tool_chaining_conformance.message import (
    CLIENT_CAPABILITIES_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    Json,
    WireMessage,
    within,
)
from tool_chaining_conformance.names import IDENTIFIER
from tool_chaining_conformance.target.channel import MESSAGE_BYTES, TargetFailure, read
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import same

SERVER_INFO: Final = {"name": "tool-chaining-mock", "version": __version__}
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions in which a connection begins with `initialize`."""
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
ENDPOINT: Final = "/mcp"
CANCEL: Final = "/cancel"
"""The path where a GET of the client waits until the user cancels."""
CANCELLED: Final = "/cancelled"
"""The path that the client requests after its user cancelled a chain that had ended."""
CANCEL_SECONDS: Final = 10
"""Seconds to hold back a response after the client learned that the user cancels."""
LIST_SECONDS: Final = 3
"""The same for a list: fewer seconds than HTTP clients usually wait for a response."""
SILENCE_SECONDS: Final = 5
"""Seconds until the mock server breaks off the response of an unanswered call."""
QUIET_SECONDS: Final = 1
"""Seconds without a request until a call stops waiting for others to run beside it."""
REFUSALS: Final = (-32020, -32021, -32022)
"""The codes of errors that say, on 2026-07-28, that the server refused a call before it acted."""
UNAUTHORIZED: Final = (401, 403)
"""The HTTP statuses that say so."""
ASKING_SECONDS: Final = 1
"""Seconds that a client with a `cancelUrl` may take to request it, after its call is held."""
KEPT_BYTES: Final = 16 * 1024 * 1024
"""How much all requests of a run may have together: the suite keeps each. It refuses the rest."""
LINE_BYTES: Final = 1_000
"""The longest line with the length of a chunk."""
META_TEXT: Final = "the text of _meta stands here"


@dataclass
class Operation:
    """One `tools/call`, with all its rounds."""

    number: int
    tool: str
    arguments: Json
    meta: Json
    authorization: str | None = None
    """The header of its first request."""
    answered: bool = False
    """Whether its result or error went out, or its response was cut off."""
    result: Json | None = None
    """Its complete result, if it has one."""
    refused: bool = False
    """Whether the answer says that the server refused it before acting. If the server answered an
    earlier request of it with a question, it has begun."""
    times: int = 1
    """1, plus the number of requests of it sent again after an answer that was no refusal."""
    beside: tuple["Operation", ...] = ()
    """The calls that were running when it arrived."""
    at: float = 0
    """When it arrived, in seconds of a monotonic clock."""

    @property
    def at_once(self) -> int:
        """How many calls of the tool were running when it arrived, itself included."""
        return 1 + sum(other.tool == self.tool for other in self.beside)

    def is_of(self, tool: str, arguments: Json) -> bool:
        """Return whether it is a call of this tool with these arguments."""
        return self.tool == tool and same(self.arguments, arguments)


@dataclass(frozen=True)
class Request:
    """One request of the client."""

    method: str
    params: Json
    calls: int
    """How many calls had been answered when it arrived."""


@dataclass
class Log:
    """The requests that one mock server received."""

    operations: list[Operation] = field(default_factory=list[Operation])
    requests: list[Request] = field(default_factory=list[Request])
    """Every request of the current era."""
    waits_for_cancel: bool = False
    """Whether the client learned, while its call was held, that the user cancels."""
    cancelled_late: bool = False
    """Whether the client said that its user cancelled a chain that had ended."""
    messages: list[WireMessage] = field(default_factory=list[WireMessage])
    refused_method: str | None = None
    """The method of a request of another era."""

    def client_capabilities(self) -> list[Json]:
        """Return the capabilities that the client declared: one for each declaration."""
        found: list[Any] = []
        for request in self.requests:
            if request.method == "initialize":
                found.append(request.params.get("capabilities"))
            else:
                found.append(within(request.params, "_meta").get(CLIENT_CAPABILITIES_KEY))
        return [capabilities for capabilities in found if isinstance(capabilities, dict)]


class Allowance:
    """The bytes of requests that the mock servers of one run may still keep."""

    def __init__(self) -> None:
        self.left = KEPT_BYTES
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Return whether a request of this size may be kept; if not, no later one may be."""
        with self._lock:
            self.left = self.left - size if size <= self.left else -1
            return self.left >= 0


class MockServer(ThreadingMixIn, TCPServer):
    """Plays one case on a free port of the loopback interface during the `with` block.

    It is not an `HTTPServer`: that looks up the name of this host, which can take seconds.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        script: ClientScript,
        case: Case,
        era: Era,
        *,
        patience: float,
        other: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        """Play `case`; `other` plays the second server of the script instead.

        A question waits `patience` seconds for its answer.
        """
        self.log = Log()
        self.allowance = allowance or Allowance()
        self._script = script
        self._case = case
        self._era = era
        self._patience = patience
        self._tools: Sequence[ScriptTool] = script.tools
        self._answers: Sequence[ScriptAnswer] = (*case.answers, *script.answers)
        if other and script.other_server is not None:
            self._tools = script.other_server.tools
            self._answers = script.other_server.answers
        self._lock = threading.Lock()
        self._waiting: dict[str, threading.Event] = {}
        """For each question on 2025-11-25, by its id: set when it is answered."""
        self._elicits = False
        """Whether the client declared elicitation."""
        self._asked = threading.Event()
        """Set when the client requested the `cancelUrl`."""
        self._cancel = threading.Event()
        """Set when the user cancels: a call whose answer is held has arrived."""
        self._cancelled = threading.Event()
        """Set when the client sent `notifications/cancelled`."""
        super().__init__(("127.0.0.1", 0), _Exchange)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True
        )

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """The URL for the client."""
        return self.origin + ENDPOINT

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()
        for event in (*self._waiting.values(), self._cancel, self._cancelled):
            event.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: a client may close a connection at any time."""

    # What the HTTP handler calls, on a thread for each connection

    def wait_for_cancel(self) -> None:
        """Wait until the user cancels, or the case is over."""
        self._asked.set()
        self._cancel.wait(self._patience)

    def receive(self, body: Json, exchange: "_Exchange") -> None:
        """Handle one JSON-RPC message, answering through `exchange`."""
        self._noted("client", body)
        if "method" in body and "id" in body:
            self._respond(body, exchange)
            return
        if body.get("method") == "notifications/cancelled":
            self._cancelled.set()
        elif "method" not in body and str(body.get("id")) in self._waiting:
            self._waiting[str(body["id"])].set()
        exchange.plain(202)

    def _noted(self, sender: Literal["client", "server"], body: Json) -> None:
        with self._lock:
            self.log.messages.append(WireMessage(sender, body))

    def _respond(self, body: Json, exchange: "_Exchange") -> None:
        method, params = str(body["method"]), within(body, "params")
        refusal = self._refusal(method, params)
        if refusal is not None:
            self.log.refused_method = method
            answer: Json | None = {"error": refusal}
        else:
            with self._lock:
                answered = sum(operation.answered for operation in self.log.operations)
                self.log.requests.append(Request(method, params, answered))
            answer = self._answer(method, params, answered, exchange)
        if answer is None:
            return
        if self._era is Era.MODERN and "result" in answer:
            answer = {"result": {"resultType": "complete", **answer["result"]}}
        answer = {"jsonrpc": "2.0", "id": body["id"], **answer}
        self._noted("server", answer)
        code = within(answer, "error").get("code")
        refused = refusal is not None or (self._era is Era.MODERN and code in REFUSALS)
        exchange.answer(answer, 400 if refused else 200)

    def _refusal(self, method: str, params: Json) -> Json | None:
        """Return the error for a request of another era, or None."""
        if self._era is Era.MODERN:
            return _UNSUPPORTED if method == "initialize" else None
        modern = within(params, "_meta").get(PROTOCOL_VERSION_KEY) == Era.MODERN
        return _not_found(method) if modern or method == "server/discover" else None

    def _answer(
        self, method: str, params: Json, answered: int, exchange: "_Exchange"
    ) -> Json | None:
        """Return the `result` or `error` for a request; None to send nothing more."""
        if method == "initialize" or self._era is Era.MODERN:
            declared = within(params, "_meta", CLIENT_CAPABILITIES_KEY)
            self._elicits = "elicitation" in (within(params, "capabilities") or declared)
        match method:
            case "tools/call":
                return self._call(params, exchange)
            case "tools/list":
                held = self._case.list_held and answered > 1 and not self._cancel.is_set()
                if held and self._is_cancelled(exchange, LIST_SECONDS):
                    return None
                result = self._page(params.get("cursor"), answered)
                if self._case.last_page_fails and answered and "nextCursor" not in result:
                    return {"error": {"code": INTERNAL_ERROR, "message": "This page is lost"}}
            case "server/discover" | "initialize":
                result = self._greeting(method, params)
            case "ping":
                result = {}
            case _:
                return {"error": _not_found(method)}
        extra = self._case.result_meta.get(method)
        if extra is not None:
            result["_meta"] = {**result.get("_meta", {}), **extra}
        return {"result": result}

    def _greeting(self, method: str, params: Json) -> Json:
        capabilities: Json = {"tools": {"listChanged": True}}
        modern = method == "server/discover"
        places: list[Place] = ["extensions"] if modern else ["extensions", "experimental"]
        for place, settings in self._script.advertised(self._case, places).items():
            capabilities[place] = {IDENTIFIER: settings}
        if modern:
            return {
                "supportedVersions": [Era.MODERN],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {SERVER_INFO_KEY: SERVER_INFO},
            }
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else Era.LEGACY,
            "capabilities": capabilities,
            "serverInfo": SERVER_INFO,
        }

    def _page(self, cursor: Any, answered: int) -> Json:
        listed = [tool for tool in self._tools if tool.is_listed(answered)]
        size = self._script.page_size or len(listed)
        last = (len(listed) - 1) // size * size
        start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
        start = last if cursor == "" else start
        end = start + size
        page: Json = {"tools": [tool.to_wire() for tool in listed[start:end]]}
        if end < len(listed):
            # An empty cursor is a cursor like any other.
            page["nextCursor"] = "" if end == last else str(end)
        if self._era is Era.MODERN:
            lifetimes = self._case.ttl_ms or (self._script.ttl_ms,)
            lifetime = lifetimes[min(start // size, len(lifetimes) - 1)]
            page |= {"ttlMs": lifetime, "cacheScope": "private"}
        return page

    def _call(self, params: Json, exchange: "_Exchange") -> Json | None:
        operation, index = self._operation(params, exchange.headers.get("authorization"))
        begun = index > 0
        answer = next((answer for answer in self._answers if _fits(answer, operation)), None)
        if answer is None:
            operation.answered = True
            return {"error": {"code": INVALID_PARAMS, "message": f"Unknown tool: {operation.tool}"}}
        # A client that cannot ask its user gets the last round, which is the result.
        index = min(index, len(answer.rounds) - 1) if self._elicits else len(answer.rounds) - 1
        while (asked := answer.rounds[index]).elicit is not None:
            if self._era is Era.MODERN:
                return {"result": _interim(asked.elicit, operation, index)}
            # On 2025-11-25 questions are asked while the one request is open.
            self._ask(asked.elicit, exchange)
            index += 1
        time.sleep(asked.waits_ms / 1000)
        if asked.together is not None:
            self._wait_for_others(operation.tool, asked.together)
        # Mark it before sending, since the client may be faster than this thread.
        operation.answered = True
        if asked.broken is not None:
            if asked.broken == "silence":
                self._is_given_up(exchange, SILENCE_SECONDS)
            operation.refused = asked.broken in UNAUTHORIZED and not begun
            exchange.break_off(asked.broken)
            return None
        if asked.held and self._is_cancelled(exchange, CANCEL_SECONDS):
            return None
        if asked.error is not None:
            refuses = self._era is Era.MODERN and asked.error.get("code") in REFUSALS
            operation.refused = refuses and not begun
            return {"error": asked.error}
        operation.result = result = _numbered(cast(Json, asked.result), operation.number)
        if asked.meta_text is None:
            return {"result": result}
        exchange.replacement = json.dumps(META_TEXT), asked.meta_text
        return {"result": {**result, "_meta": META_TEXT}}

    def _wait_for_others(self, tool: str, number: int) -> None:
        """Wait until this number of calls of a tool have run at once, or the client is quiet."""
        seen, since = 0, time.monotonic()
        while time.monotonic() < since + QUIET_SECONDS:
            calls = [each for each in self.log.operations if each.tool == tool]
            if max(each.at_once for each in calls) >= number:
                return
            if len(self.log.requests) > seen:
                seen, since = len(self.log.requests), time.monotonic()
            time.sleep(0.005)

    def _is_cancelled(self, exchange: "_Exchange", seconds: float) -> bool:
        """Cancel as the user, hold the response for so long, and return whether to drop it.

        A client that does not request the `cancelUrl` gets its response at once.
        """
        if not self._asked.wait(ASKING_SECONDS):
            return False
        self.log.waits_for_cancel = True
        self._cancel.set()
        return self._is_given_up(exchange, seconds)

    def _is_given_up(self, exchange: "_Exchange", seconds: float) -> bool:
        """Wait for so long; return whether the client cancelled the call meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if exchange.is_abandoned() or self._cancelled.wait(0.005):
                return True
        return False

    def _operation(self, params: Json, authorization: str | None) -> tuple[Operation, int]:
        """Return the operation that a request belongs to, and its round."""
        arguments = params.get("arguments", {})  # Not an object, so not the directive's arguments.
        state = str(params.get("requestState", "")).split(":")
        with self._lock:
            operations = self.log.operations
            if len(state) == 2 and all(part.isdecimal() for part in state):
                number, index = int(state[0]), int(state[1])
                if 1 <= number <= len(operations):
                    operations[number - 1].times += operations[number - 1].answered
                    return operations[number - 1], index
            tool = str(params.get("name"))
            if operations and operations[-1].refused and operations[-1].is_of(tool, arguments):
                # A client may send a refused call again. It stays one call.
                operations[-1].refused = operations[-1].answered = False
                return operations[-1], 0
            # If the first call arrives twice, the client sent the request again: no script has a
            # directive from the first call to itself.
            alone = len(operations) == 1 and not self._case.context.at_once
            if alone and operations[0].is_of(tool, arguments):
                operations.clear()
            meta, number = within(params, "_meta"), len(operations) + 1
            running = tuple(each for each in operations if not each.answered)
            operation = Operation(number, tool, arguments, meta, authorization)
            operation.beside, operation.at = running, time.monotonic()
            operations.append(operation)
            return operation, 0

    def _ask(self, elicit: Elicit, exchange: "_Exchange") -> None:
        question_id = f"question-{len(self._waiting) + 1}"
        event = self._waiting[question_id] = threading.Event()
        question = {"jsonrpc": "2.0", "id": question_id, **_question(elicit)}
        self._noted("server", question)
        exchange.stream(question)
        event.wait(self._patience)


class _TooLarge(Exception):
    """The body of a request is longer than `MESSAGE_BYTES`, or the suite keeps enough."""


class _Exchange(BaseHTTPRequestHandler):
    """HTTP exchanges on one connection: JSON, or an event stream once something was streamed."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    streaming = False
    replacement = "", ""
    """A text of the next message, and its replacement."""

    @property
    def _mock(self) -> MockServer:
        return cast(MockServer, self.server)

    def do_POST(self) -> None:
        received, refusal = None, 400
        try:
            body = self._body()
            if not self._mock.allowance.take(len(body)):
                raise _TooLarge
            received = read(body)
        except _TooLarge:
            refusal = 413
        except (TargetFailure, ValueError):
            pass
        if self.path.partition("?")[0] != ENDPOINT:
            self.plain(404)
        elif received is None:
            self.close_connection = True
            self.plain(refusal)
        else:
            self.replacement = "", ""
            self._mock.receive(received.body, self)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == CANCEL:
            self._mock.wait_for_cancel()
        self._mock.log.cancelled_late |= path == CANCELLED
        # There is no GET stream for server messages: the protocol allows that.
        self.plain({CANCEL: 200, CANCELLED: 200, ENDPOINT: 405}.get(path, 404))

    def do_DELETE(self) -> None:
        self.plain(200)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self._read(int(self.headers.get("content-length", "")), MESSAGE_BYTES)
        body = b""
        while size := int(self.rfile.readline(LINE_BYTES).split(b";")[0], 16):
            body += self._read(size, MESSAGE_BYTES - len(body))
            self.rfile.readline(LINE_BYTES)
        self.rfile.readline(LINE_BYTES)
        return body

    def _read(self, size: int, most: int) -> bytes:
        if not 0 <= size <= most:
            raise _TooLarge
        return self.rfile.read(size)

    def plain(self, status: int) -> None:
        """Answer without a body."""
        self._head(status, {"content-length": "0"})

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def is_abandoned(self) -> bool:
        """Return whether the client has closed the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def break_off(self, how: Broken) -> None:
        """Respond with an HTTP status alone, or end the response's stream before the response."""
        if isinstance(how, int):
            self.send_error(how)
        else:
            self._begin_stream()

    def stream(self, message: Json) -> None:
        """Send a message as an event."""
        if not self.streaming:
            self._begin_stream()
        self.wfile.write(b"event: message\ndata: " + self._encoded(message) + b"\n\n")
        self.wfile.flush()

    def _begin_stream(self) -> None:
        self._head(200, {"content-type": "text/event-stream", "connection": "close"})
        self.close_connection = self.streaming = True

    def answer(self, message: Json, status: int) -> None:
        """Send a response, as an event if events were sent before it."""
        if self.streaming:
            self.stream(message)
            return
        body = self._encoded(message)
        self._head(status, {"content-type": "application/json", "content-length": str(len(body))})
        self.wfile.write(body)

    def _encoded(self, message: Json) -> bytes:
        return json.dumps(message).replace(*self.replacement, 1).encode()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal is for the suite's own output."""


_UNSUPPORTED: Final = {
    "code": UNSUPPORTED_PROTOCOL_VERSION,
    "message": f"This server speaks {Era.MODERN} only",
    "data": {"supported": [Era.MODERN], "requested": None},
}


def _not_found(method: str) -> Json:
    return {"code": METHOD_NOT_FOUND, "message": f"Method not found: {method}"}


def _fits(answer: ScriptAnswer, operation: Operation) -> bool:
    arguments = operation.arguments if answer.arguments is None else answer.arguments
    in_time = answer.until_call is None or operation.number < answer.until_call
    return in_time and operation.is_of(answer.tool, arguments)


def _question(elicit: Elicit) -> Json:
    params = {
        "mode": "form",
        "message": elicit.message,
        "requestedSchema": elicit.requested_schema,
    }
    return {"method": "elicitation/create", "params": params}


def _interim(elicit: Elicit, operation: Operation, index: int) -> Json:
    """Return the result that asks for input (2026-07-28)."""
    interim: Json = {
        "resultType": "input_required",
        "inputRequests": {elicit.key: _question(elicit)},
        "requestState": f"{operation.number}:{index + 1}",
    }
    return interim if elicit.meta is None else {**interim, "_meta": elicit.meta}


def _numbered(value: Any, number: int) -> Any:
    """Replace each text `${call}` by the number of the call."""
    if isinstance(value, dict):
        return {key: _numbered(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    return number if value == "${call}" else value
