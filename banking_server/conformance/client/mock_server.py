"""The mock MCP server that a client under test talks to, playing one case of a script.

It speaks raw HTTP in both eras, and is lenient about everything that is not being judged. It writes
down every call and every message; `client.checks` judges them once the client has ended.
"""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from banking_server import __version__
from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.script import (
    Case,
    ClientScript,
    Elicit,
    ScriptAnswer,
    ScriptTool,
)
from banking_server.conformance.message import (
    CLIENT_CAPABILITIES_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    Json,
    WireMessage,
)
from banking_server.conformance.report.keeping import cost
from banking_server.conformance.target.channel import (
    MESSAGE_BYTES,
    Received,
    Room,
    TargetFailure,
    read,
)
from banking_server.conformance.target.era import Era
from banking_server.conformance.values import same

SERVER_INFO: Final = {"name": "tool-chaining-mock", "version": __version__}
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions in which a connection begins with `initialize`."""
INVALID_PARAMS: Final = -32602
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
SESSION: Final = "mock-session"
LOG_BYTES: Final = 8 * 1024 * 1024
"""About how much memory the messages of one run may take. A client that sends more is refused."""
OVERHEAD_BYTES: Final = 1000
"""About how much memory a message takes besides its content."""
READERS: Final = 4
"""Messages that are read at a time, however many connections a client opens."""
LINE_BYTES: Final = 1024
"""The longest line between the chunks of a body."""
ENDPOINT: Final = "/mcp"
CANCEL: Final = "/cancel"
"""Where a client waits to be told that the user cancels."""
HELD_SECONDS: Final = 4
"""How long an answer is held from a client that does not give its call up."""
CANCEL_SECONDS: Final = 10
"""The same for a client that was told that the user cancels, on a busy machine too."""
ASKING_SECONDS: Final = 1
"""How long a client that was given `cancelUrl` may take to ask for it, once its call is held."""
META_TEXT: Final = "the text of _meta stands here"
LONG_TEXT: Final = "".join(f"Paragraph {number} of a long text.\n" for number in range(1, 401))
"""What `${long}` in a script stands for: about 12,000 characters."""


@dataclass
class Operation:
    """One `tools/call`, however many rounds it took."""

    number: int
    tool: str
    arguments: Json
    meta: Json
    authorization: str | None = None
    """The header of its first request."""
    request: WireMessage | None = None
    """Its first request, as it came."""
    answered: bool = False
    """Whether its result or error has been sent, or its answer was broken off or held for good."""
    result: Json | None = None
    """The complete result that it brought, if it brought one."""
    gave_up: bool = False
    """Whether the client gave it up while its answer was held."""


@dataclass(frozen=True)
class Request:
    """One request of the client."""

    method: str
    params: Json
    calls: int
    """How many calls had been answered when it came."""


@dataclass
class Log:
    """What one mock server saw."""

    operations: list[Operation] = field(default_factory=list[Operation])
    requests: list[Request] = field(default_factory=list[Request])
    """Every request of the era that is being played."""
    fetched: list[str] = field(default_factory=list[str])
    """Paths of documents that were asked for."""
    waits_for_cancel: bool = False
    """Whether the client was told, while its call was held, that the user cancels."""
    messages: list[WireMessage] = field(default_factory=list[WireMessage])
    room: Room = field(default_factory=lambda: Room(LOG_BYTES))
    """For the messages, of both sides."""
    flooded: bool = False
    """Whether the client sent more than there is room for."""
    refused_method: str | None = None
    """The method of a request that came in another era's protocol."""

    def note(self, message: WireMessage, size: int | None = None) -> bool:
        """Note a message of about `size` bytes. Returns False if there is no room left for it."""
        taken = (cost(message.body) if size is None else size) + OVERHEAD_BYTES
        if self.flooded or not self.room.takes(taken):
            self.flooded = True
            return False
        self.messages.append(message)
        return True

    def client_capabilities(self) -> list[Json]:
        """Return the capabilities that the client declared: one for each declaration."""
        found: list[Any] = []
        for request in self.requests:
            if request.method == "initialize":
                found.append(request.params.get("capabilities"))
            else:
                found.append(_meta(request.params).get(CLIENT_CAPABILITIES_KEY))
        return [capabilities for capabilities in found if isinstance(capabilities, dict)]


class MockServer:
    """Plays one case on a port of its own while the `with` block lasts."""

    def __init__(
        self,
        script: ClientScript,
        case: Case,
        era: Era,
        *,
        patience: float,
        other: bool = False,
    ) -> None:
        """Play `case`; `other` plays the second server of the script instead.

        `patience` is how many seconds a question waits for its answer.
        """
        self.log = Log()
        self._era = era
        self._case = case
        self._patience = patience
        self._advertised = script.advertised(case)
        self._page_size = script.page_size
        self._ttl_ms = case.ttl_ms
        self._documents = script.documents
        self._tools: Sequence[ScriptTool] = script.tools
        self._answers: Sequence[ScriptAnswer] = (*case.answers, *script.answers)
        if other and script.other_server is not None:
            self._tools = script.other_server.tools
            self._answers = script.other_server.answers
        self._lock = threading.Lock()
        self.reading = threading.BoundedSemaphore(READERS)
        self._waiting: dict[str, threading.Event] = {}
        self._elicits = False
        """Whether the client declared that it can be asked."""
        self._asked = threading.Event()
        """Set when the client asked to be told that the user cancels."""
        self._cancel = threading.Event()
        """Set when the user cancels: a call whose answer is held has arrived."""
        self._cancelled = threading.Event()
        """Set when the client sent `notifications/cancelled`."""
        self._held: list[threading.Event] = []
        """Of each answer that is or was held; set when it is known how that ended."""
        self._http = _HttpServer(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True
        )

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """Where the client connects."""
        return self.origin + ENDPOINT

    @property
    def cancel_url(self) -> str:
        """A GET of it is answered when the user cancels."""
        return self.origin + CANCEL

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        for event in (*self._waiting.values(), self._cancel, self._cancelled):
            event.set()
        # The client has ended, and gave up what is still held: that is judged next.
        for noted in self._held:
            noted.wait(1)

    # What the HTTP handler calls, on a thread for each connection

    def document(self, path: str) -> Json | None:
        """Return the document at `path`, or None, and note that it was asked for."""
        with self._lock:
            self.log.fetched.append(path)
        return self._documents.get(path)

    def wait_for_cancel(self) -> None:
        """Wait until the user cancels, or the case is over."""
        self._asked.set()
        self._cancel.wait(self._patience)

    def receive(self, received: Received, exchange: "_Exchange") -> None:
        """Handle one JSON-RPC message, answering through `exchange`."""
        message = received.body
        with self._lock:
            has_room = self.log.note(WireMessage("client", message), received.size)
        if not has_room:
            exchange.refuse()
            return
        if "method" not in message:
            event = self._waiting.get(str(message.get("id")))
            if event is not None:
                event.set()
            exchange.accepted()
        elif "id" not in message:
            if message["method"] == "notifications/cancelled":
                self._cancelled.set()
            exchange.accepted()
        else:
            raw_params = message.get("params")
            params: Json = raw_params if isinstance(raw_params, dict) else {}
            self._respond(str(message["method"]), params, message["id"], exchange)

    def _respond(self, method: str, params: Json, request_id: Any, exchange: "_Exchange") -> None:
        version = _meta(params).get(PROTOCOL_VERSION_KEY)
        modern = method == "server/discover" or version == Era.MODERN
        if method == "initialize" and self._era is Era.MODERN:
            self._refuse(method, request_id, exchange)
            return
        if modern and self._era is Era.LEGACY:
            self.log.refused_method = method
            self._error(request_id, METHOD_NOT_FOUND, f"Method not found: {method}", exchange, 400)
            return
        with self._lock:
            answered = sum(operation.answered for operation in self.log.operations)
            self.log.requests.append(Request(method, params, answered))
        declared = params.get("capabilities", _meta(params).get(CLIENT_CAPABILITIES_KEY))
        if method == "initialize" or self._era is Era.MODERN:
            self._elicits = isinstance(declared, dict) and "elicitation" in declared
        if method == "tools/call":
            self._call(params, request_id, exchange)
        elif method in ("server/discover", "initialize", "tools/list", "ping"):
            self._result(request_id, self._other_result(method, params, answered), exchange)
        else:
            self._error(request_id, METHOD_NOT_FOUND, f"Method not found: {method}", exchange)

    def _refuse(self, method: str, request_id: Any, exchange: "_Exchange") -> None:
        self.log.refused_method = method
        self._send(
            {
                "jsonrpc": "2.0",
                "id": request_id,
                "error": {
                    "code": UNSUPPORTED_PROTOCOL_VERSION,
                    "message": f"This server speaks {Era.MODERN} only",
                    "data": {"supported": [Era.MODERN], "requested": None},
                },
            },
            exchange,
            400,
        )

    def _other_result(self, method: str, params: Json, answered: int) -> Json:
        result: Json
        if method == "ping":
            result = {}
        elif method == "tools/list":
            result = self._page(params.get("cursor"), answered)
        else:
            result = self._greeting(method, params)
        extra = self._case.result_meta.get(method)
        if extra is not None:
            result["_meta"] = {**result.get("_meta", {}), **extra}
        return result

    def _greeting(self, method: str, params: Json) -> Json:
        capabilities: Json = {"tools": {"listChanged": True}}
        modern = method == "server/discover"
        if self._advertised is not None:
            places = ["extensions"] if modern else ["extensions", "experimental"]
            for place in [self._case.advertise_in] if self._case.advertise_in else places:
                capabilities[place] = {IDENTIFIER: self._advertised}
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
        start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
        size = self._page_size or len(listed)
        page: Json = {
            "tools": [
                _replaced(tool.to_wire(), {"${origin}": self.origin})
                for tool in listed[start : start + size]
            ]
        }
        if start + size < len(listed):
            page["nextCursor"] = str(start + size)
        if self._era is Era.MODERN:
            page |= {"ttlMs": self._ttl_ms, "cacheScope": "private"}
        return page

    def _call(self, params: Json, request_id: Any, exchange: "_Exchange") -> None:
        operation, index = self._operation(params, exchange.authorization)
        answer = next((answer for answer in self._answers if _fits(answer, operation)), None)
        if answer is None:
            operation.answered = True
            self._error(request_id, INVALID_PARAMS, f"Unknown tool: {operation.tool}", exchange)
            return
        # Who cannot be asked is not: the last round is the answer.
        index = min(index, len(answer.rounds) - 1) if self._elicits else len(answer.rounds) - 1
        # On 2025-11-25 questions are asked while the one request is open.
        while (asked := answer.rounds[index]).elicit is not None and self._era is Era.LEGACY:
            self._ask(asked.elicit, exchange)
            index += 1
        if asked.elicit is not None:
            self._result(request_id, _interim(asked.elicit, operation, index), exchange)
            return
        # Marked before it is sent: the client may be faster than this thread.
        operation.answered = True
        if asked.broken is not None:
            exchange.break_off(asked.broken)
        elif asked.error is not None:
            self._send({"jsonrpc": "2.0", "id": request_id, "error": asked.error}, exchange)
        elif asked.held and self._given_up(operation, exchange):
            return
        else:
            result = _replaced(
                cast(Json, asked.result), {"${call}": operation.number, "${long}": LONG_TEXT}
            )
            operation.result = result
            if asked.list_changed and self._era is Era.LEGACY:
                exchange.stream({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            self._result(request_id, result, exchange, asked.meta_text)

    def _given_up(self, operation: Operation, exchange: "_Exchange") -> bool:
        """Hold an answer; note and return whether the client gave the call up meanwhile.

        The user cancels as soon as the call has arrived, where the client asked to be told.
        """
        seconds = HELD_SECONDS
        if self._case.context.cancel:
            if not self._asked.wait(ASKING_SECONDS):
                return False
            self.log.waits_for_cancel, seconds = True, CANCEL_SECONDS
            self._cancel.set()
        end = time.monotonic() + seconds
        noted = threading.Event()
        self._held.append(noted)
        while time.monotonic() < end and not operation.gave_up:
            operation.gave_up = exchange.is_abandoned() or self._cancelled.wait(0.005)
        noted.set()
        return operation.gave_up

    def _operation(self, params: Json, authorization: str | None) -> tuple[Operation, int]:
        """Return the operation that a request belongs to, and its round."""
        raw = params.get("arguments")
        arguments: Json = raw if isinstance(raw, dict) else {}
        state = str(params.get("requestState", "")).split(":")
        with self._lock:
            operations = self.log.operations
            if len(state) == 2 and all(part.isdecimal() for part in state):
                number, index = int(state[0]), int(state[1])
                if 1 <= number <= len(operations):
                    return operations[number - 1], index
            tool = str(params.get("name"))
            if len(operations) == 1 and _is_again(operations[0], tool, arguments):
                operations.clear()
            requests = [each for each in self.log.messages if each.body.get("params") is params]
            operation = Operation(
                len(operations) + 1,
                tool,
                arguments,
                _meta(params),
                authorization,
                requests[-1] if requests else None,
            )
            operations.append(operation)
            return operation, 0

    def _ask(self, elicit: Elicit, exchange: "_Exchange") -> None:
        question_id = f"question-{len(self._waiting) + 1}"
        event = self._waiting[question_id] = threading.Event()
        question = {
            "jsonrpc": "2.0",
            "id": question_id,
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": elicit.message,
                "requestedSchema": elicit.requested_schema,
            },
        }
        with self._lock:
            self.log.note(WireMessage("server", question))
        exchange.stream(question)
        event.wait(self._patience)

    def _result(
        self, request_id: Any, result: Json, exchange: "_Exchange", meta_text: str | None = None
    ) -> None:
        if self._era is Era.MODERN:
            result = {"resultType": "complete", **result}
        if meta_text is not None:
            result = {**result, "_meta": META_TEXT}
            exchange.replacement = json.dumps(META_TEXT), meta_text
        self._send({"jsonrpc": "2.0", "id": request_id, "result": result}, exchange)

    def _error(
        self, request_id: Any, code: int, message: str, exchange: "_Exchange", status: int = 200
    ) -> None:
        error = {"code": code, "message": message}
        self._send({"jsonrpc": "2.0", "id": request_id, "error": error}, exchange, status)

    def _send(self, message: Json, exchange: "_Exchange", status: int = 200) -> None:
        with self._lock:
            self.log.note(WireMessage("server", message))
        new_session = self._era is Era.LEGACY and "protocolVersion" in message.get("result", {})
        exchange.answer(message, status, {"mcp-session-id": SESSION} if new_session else {})


class _Exchange:
    """One HTTP exchange: JSON, or an event stream once something was streamed."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler
        self._streaming = False
        self.replacement = "", ""
        """A text of the message to come, and what goes over the wire in its place."""

    @property
    def authorization(self) -> str | None:
        """The header of that name."""
        return self._handler.headers.get("authorization")

    def is_abandoned(self) -> bool:
        """Say whether the client has closed the connection."""
        connection = self._handler.connection
        readable, _, _ = select.select([connection], [], [], 0)
        try:
            return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def break_off(self, how: Literal["stream", "status"]) -> None:
        """End the stream of an answer before the answer, or answer with HTTP 500."""
        if how == "status":
            self._handler.send_error(500)
        else:
            self._begin_stream()

    def refuse(self) -> None:
        """Say that nothing more is taken, and hang up."""
        self._handler.close_connection = True
        self._handler.send_error(429)

    def accepted(self) -> None:
        self._handler.send_response(202)
        self._handler.send_header("content-length", "0")
        self._handler.end_headers()

    def stream(self, message: Json) -> None:
        if not self._streaming:
            self._begin_stream()
        self._handler.wfile.write(b"event: message\ndata: " + self._encoded(message) + b"\n\n")
        self._handler.wfile.flush()

    def _begin_stream(self) -> None:
        self._handler.send_response(200)
        self._handler.send_header("content-type", "text/event-stream")
        self._handler.send_header("cache-control", "no-cache")
        self._handler.send_header("connection", "close")
        self._handler.end_headers()
        self._handler.close_connection = True
        self._streaming = True

    def answer(self, message: Json, status: int, headers: Mapping[str, str]) -> None:
        if self._streaming:
            self.stream(message)
            return
        body = self._encoded(message)
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.send_header("content-type", "application/json")
        self._handler.send_header("content-length", str(len(body)))
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def _encoded(self, message: Json) -> bytes:
        return json.dumps(message).replace(*self.replacement, 1).encode()


class _HttpServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback interface."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, mock: MockServer) -> None:
        self.mock = mock
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's would look up this host's name, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client may hang up whenever it likes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _mock(self) -> MockServer:
        return cast(_HttpServer, self.server).mock

    def do_POST(self) -> None:
        if self.path.partition("?")[0] != ENDPOINT:
            self.close_connection = True  # What it holds is not read.
            self._plain(404)
            return
        received: Received | None = None
        with self._mock.reading, contextlib.suppress(TargetFailure, ValueError):
            body = self._body()
            received = None if body is None else read(body)
        if received is None:
            self.close_connection = True
            self._plain(400)
            return
        self._mock.receive(received, _Exchange(self))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == ENDPOINT:
            self._plain(405)  # No stream of its own for server messages: the protocol allows it.
            return
        if path == CANCEL:
            self._mock.wait_for_cancel()
            self._plain(204)
            return
        document = self._mock.document(path)
        if document is None:
            self._plain(404)
        else:
            _Exchange(self).answer(document, 200, {})

    def do_HEAD(self) -> None:
        found = self._mock.document(self.path.partition("?")[0])
        self._plain(404 if found is None else 200)

    def do_DELETE(self) -> None:
        self._plain(200)

    def _body(self) -> bytes | None:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline(LINE_BYTES).split(b";")[0], 16):
                if not 0 < size <= MESSAGE_BYTES - len(body):
                    return None
                body += self.rfile.read(size)
                self.rfile.readline(LINE_BYTES)
            self.rfile.readline(LINE_BYTES)
            return body
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MESSAGE_BYTES:
            return None
        return self.rfile.read(int(length))

    def _plain(self, status: int) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the suite."""


def _is_again(first: Operation, tool: str, arguments: Json) -> bool:
    """Whether the first call is made once more, as by a client that sends a request again.

    No script lets the first call name itself, so no directive asked for that.
    """
    return first.tool == tool and same(first.arguments, arguments)


def _fits(answer: ScriptAnswer, operation: Operation) -> bool:
    if answer.tool != operation.tool:
        return False
    if answer.until_call is not None and operation.number >= answer.until_call:
        return False
    return answer.arguments is None or same(answer.arguments, operation.arguments)


def _interim(elicit: Elicit, operation: Operation, index: int) -> Json:
    """Return the result that asks for input (2026-07-28)."""
    interim: Json = {
        "resultType": "input_required",
        "inputRequests": {
            elicit.key: {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": elicit.message,
                    "requestedSchema": elicit.requested_schema,
                },
            }
        },
        "requestState": f"{operation.number}:{index + 1}",
    }
    if elicit.meta is not None:
        interim["_meta"] = elicit.meta
    return interim


def _meta(params: Json) -> Json:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _replaced(value: Any, replacements: Mapping[str, Any]) -> Any:
    """Put values in the place of `${…}`; one that is the whole text keeps its type."""
    if isinstance(value, dict):
        return {key: _replaced(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, replacements) for item in value]
    if isinstance(value, str):
        for name, replacement in replacements.items():
            if value == name:
                return replacement
            value = value.replace(name, str(replacement))
    return value
