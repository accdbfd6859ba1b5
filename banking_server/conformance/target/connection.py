"""Raw JSON-RPC to a server under test, over stdio and Streamable HTTP, in both eras.

No client library stands in between: what is recorded and judged is what the server really sent.
`connect` opens a `Connection`; `Connection.call_tool` makes one `tools/call`, answering what the
server asks meanwhile, and returns every message of it.
"""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

import httpx2
from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

from banking_server import __version__
from banking_server.chaining import IDENTIFIER, SETTINGS
from banking_server.conformance.message import METHOD_NOT_FOUND, Json, WireMessage
from banking_server.conformance.target.child_process import CannotStart, ChildProcess
from banking_server.conformance.target.elicitation import ElicitationAnswer
from banking_server.conformance.target.era import Era

CLIENT_INFO: Final = {"name": "tool-chaining-conformance", "version": __version__}
MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The longest message that is read: more than that is a refusal to cooperate."""
QUEUED_LINES: Final = 1000
"""Lines that wait to be read; a server that floods its output is slowed down, not followed."""
NOISE: Final = 20
"""Lines that are no JSON and are kept to be shown."""
PAGES: Final = 100
"""Pages of `tools/list` that are read at most."""
ROUNDS: Final = 10
"""Rounds of questions in one call at most, as SDKs have it."""


class TargetFailure(Exception):
    """The server under test did not cooperate: it crashed, hung, or spoke something else."""


@dataclass(frozen=True)
class Target:
    """How the server under test is reached: by `url`, or by starting `command`."""

    url: str | None = None
    command: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for `command`, besides those of the suite's own environment."""
    timeout: float = 30.0
    """Seconds that one answer may take."""

    @property
    def name(self) -> str:
        """The target as the user gave it."""
        return self.url or " ".join(self.command)

    @property
    def transport(self) -> Literal["http", "stdio"]:
        """The transport that this target is reached by."""
        return "http" if self.url else "stdio"


@dataclass(frozen=True)
class Profile:
    """What the suite says it can do, in the part of a client."""

    settings: Mapping[str, Any] | None = field(default_factory=lambda: SETTINGS)
    """What it declares for the tool-chaining extension; None: it does not declare it."""
    elicitation: bool = False
    """Whether questions can be put to the user."""

    def capabilities(self) -> Json:
        """Return the client capabilities."""
        capabilities: Json = {}
        if self.elicitation:
            capabilities["elicitation"] = {"form": {}}
        if self.settings is not None:
            capabilities["extensions"] = {IDENTIFIER: dict(self.settings)}
        return capabilities


@dataclass(frozen=True)
class Reply:
    """The answer to one request: a result or an error, one of them None."""

    result: Json | None
    error: Json | None
    messages: tuple[WireMessage, ...]
    """Everything that was exchanged for it, the request first."""


Ask = Callable[[str, Json], Json]
"""Answers a question of the server: given method and params, returns the result."""


class Channel(Protocol):
    """Carries messages of one connection, and records them."""

    def request(self, message: Json, headers: Mapping[str, str], answer: Ask) -> Json:
        """Send a request and return the response to it, answering requests meanwhile.

        Raises TargetFailure.
        """
        ...

    def notify(self, message: Json) -> None:
        """Send a notification. Raises TargetFailure."""
        ...

    def close(self) -> None:
        """Leave nothing open."""
        ...


class _Unanswerable(Exception):
    """The suite plays no part that could answer this method."""


@dataclass
class _Record:
    """The messages of a connection, in order."""

    messages: list[WireMessage] = field(default_factory=list[WireMessage])

    def sent(self, body: Json) -> None:
        self.messages.append(WireMessage("client", body))

    def received(self, body: Json) -> None:
        self.messages.append(WireMessage("server", body))


def _response_to(message: Json, answer: Ask) -> Json:
    """Answer a request of the server."""
    envelope = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        return {**envelope, "result": answer(str(message["method"]), message.get("params") or {})}
    except _Unanswerable:
        error = {"code": METHOD_NOT_FOUND, "message": "the conformance suite does not offer this"}
        return {**envelope, "error": error}


class _Stdio:
    """A server that was started here, speaking lines of JSON."""

    def __init__(self, target: Target, record: _Record) -> None:
        self._timeout = target.timeout
        self._record = record
        try:
            self._process = ChildProcess(
                target.command, interactive=True, environment=target.environment
            )
        except CannotStart as error:
            raise TargetFailure(str(error)) from error
        self._lines: queue.Queue[bytes | None] = queue.Queue(QUEUED_LINES)
        self._outbox: queue.Queue[bytes | None] = queue.Queue()
        # A thread each, since a server that does not read, or does not write, blocks its pipe.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader.start()
        self._writer.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.output.readline(MESSAGE_BYTES):
                self._lines.put(line)
        self._lines.put(None)

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (line := self._outbox.get()) is not None:
                self._process.input.write(line)
                self._process.input.flush()

    def _send(self, message: Json) -> None:
        self._record.sent(message)
        self._outbox.put(json.dumps(message).encode() + b"\n")

    def request(self, message: Json, headers: Mapping[str, str], answer: Ask) -> Json:
        self._send(message)
        deadline = time.monotonic() + self._timeout
        noise = 0
        while True:
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise queue.Empty
                line = self._lines.get(timeout=left)
            except queue.Empty:
                heard = f" ({noise} lines that are no JSON)" if noise else ""
                raise TargetFailure(
                    f"no answer to {message['method']} within {self._timeout:g} s"
                    f"{heard}{self._said()}"
                ) from None
            if line is None:
                code = self._process.wait(1.0)
                how = "closed its output" if code is None else f"exited with code {code}"
                raise TargetFailure(
                    f"the server {how} instead of answering {message['method']}{self._said()}"
                )
            try:
                received = json.loads(line)
            except ValueError:
                received = None
            if not isinstance(received, dict):
                noise += 1
                if noise <= NOISE:
                    self._record.received({"notJson": line[:500].decode("utf-8", "replace")})
                continue
            self._record.received(received)
            if "method" in received:
                if "id" in received:
                    self._send(_response_to(received, answer))
            elif received.get("id") == message["id"]:
                return received

    def _said(self) -> str:
        lines = self._process.captured_errors().strip().splitlines()
        return f"; the last line of its standard error: {lines[-1][:300]}" if lines else ""

    def notify(self, message: Json) -> None:
        self._send(message)

    def close(self) -> None:
        self._outbox.put(None)
        self._writer.join(1.0)
        with self._process:
            self._process.stop()
            while self._reader.is_alive():
                # It may wait for room in the queue.
                with contextlib.suppress(queue.Empty):
                    self._lines.get(timeout=0.05)


class _Http:
    """A server behind a URL, speaking Streamable HTTP."""

    def __init__(self, target: Target, record: _Record) -> None:
        self._target = target
        self._record = record
        self._url = target.url or ""
        self._session: str | None = None
        self._version: str | None = None
        local = urlsplit(self._url).hostname in ("127.0.0.1", "localhost", "::1")
        try:
            self._client = httpx2.Client(
                headers=dict(target.headers), timeout=target.timeout, trust_env=not local
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise TargetFailure(f"{self._url!r} is not a usable URL: {error}") from error
        self._listener: threading.Thread | None = None
        self._answer: Ask | None = None

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", **more}
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def request(self, message: Json, headers: Mapping[str, str], answer: Ask) -> Json:
        self._record.sent(message)
        self._answer = answer
        method = message["method"]
        try:
            with self._client.stream(
                "POST", self._url, json=message, headers=self._headers(headers)
            ) as response:
                if method == "initialize":
                    self._session = response.headers.get("mcp-session-id")
                for received in self._messages(response):
                    self._record.received(received)
                    if "method" in received:
                        if "id" in received:
                            self._post(_response_to(received, answer))
                    elif received.get("id") in (message["id"], None):
                        # A request that was rejected before its id was read is answered with null.
                        return received
        except httpx2.TimeoutException as error:
            raise TargetFailure(
                f"no answer to {method} within {self._target.timeout:g} s"
            ) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise TargetFailure(f"{method} to {self._url} failed: {error}") from error
        status = f"HTTP {response.status_code}"
        self._record.received({"notJsonRpc": f"{status} without a JSON-RPC response"})
        if response.is_redirect:
            status += f" (a redirect to {response.headers.get('location')}; not followed)"
        raise TargetFailure(f"{method} was answered with {status} and no JSON-RPC response")

    def _messages(self, response: httpx2.Response) -> Iterator[Json]:
        """Yield the JSON-RPC messages of a response body, be it JSON or an event stream."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        deadline = time.monotonic() + self._target.timeout
        if kind == "text/event-stream":
            texts = _events(response, deadline)
        else:
            texts = iter([_body(response, deadline)])
        for text in texts:
            try:
                message = json.loads(text)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                yield message

    def _post(self, message: Json) -> None:
        self._record.sent(message)
        try:
            self._client.post(self._url, json=message, headers=self._headers({}))
        except httpx2.HTTPError as error:
            raise TargetFailure(f"posting to {self._url} failed: {error}") from error

    def notify(self, message: Json) -> None:
        self._post(message)

    def adopt(self, version: str) -> None:
        """Use the negotiated version from now on, and listen to a session's own stream."""
        self._version = version
        if self._session is not None:
            self._listener = threading.Thread(target=self._listen, daemon=True)
            self._listener.start()

    def _listen(self) -> None:
        # Some servers put their questions on the session's GET stream, not on the call's.
        with (
            contextlib.suppress(httpx2.HTTPError, httpx2.StreamError, TargetFailure),
            self._client.stream(
                "GET",
                self._url,
                headers=self._headers({"accept": "text/event-stream"}),
                timeout=httpx2.Timeout(self._target.timeout, read=None),
            ) as response,
        ):
            if response.status_code != 200:
                return
            for text in _events(response, float("inf")):
                try:
                    message = json.loads(text)
                except ValueError:
                    continue
                if isinstance(message, dict) and "method" in message:
                    self._record.received(message)
                    if "id" in message and self._answer is not None:
                        self._post(_response_to(message, self._answer))

    def close(self) -> None:
        if self._session is not None:
            with contextlib.suppress(httpx2.HTTPError):
                self._client.delete(self._url, headers=self._headers({}))
        self._client.close()


def _body(response: httpx2.Response, deadline: float) -> str:
    parts: list[str] = []
    size = 0
    for part in response.iter_text():
        parts.append(part)
        size += len(part)
        _within_bounds(size, deadline)
    return "".join(parts)


def _events(response: httpx2.Response, deadline: float) -> Iterator[str]:
    """Yield the data of each server-sent event."""
    data: list[str] = []
    size = 0
    for line in response.iter_lines():
        _within_bounds(size, deadline)
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
            size += len(line)
        elif not line and data:
            yield "\n".join(data)
            data, size = [], 0


def _within_bounds(size: int, deadline: float) -> None:
    if size > MESSAGE_BYTES:
        raise TargetFailure(f"the server sent more than {MESSAGE_BYTES} bytes as one message")
    if time.monotonic() > deadline:
        raise httpx2.ReadTimeout("the answer did not end in time")


@dataclass(frozen=True)
class ToolCall:
    """One `tools/call`, from the first request to the complete result."""

    replies: tuple[Reply, ...]
    """One for each round; all but the last are interim (`input_required`)."""
    unexpected_questions: int
    """Questions of the server that nobody had an answer for; they were cancelled."""

    @property
    def final(self) -> Reply:
        """The last reply."""
        return self.replies[-1]

    @property
    def messages(self) -> list[WireMessage]:
        """Everything that was exchanged for the call."""
        return [message for reply in self.replies for message in reply.messages]


class _Answers:
    """Hands out the answers of one call, in order, and counts what was asked beyond them."""

    def __init__(self, answers: Sequence[ElicitationAnswer]) -> None:
        self._left = list(answers)
        self.unexpected = 0

    def __call__(self, method: str, params: Json) -> Json:
        if method == "ping":
            return {}
        if method != "elicitation/create":
            raise _Unanswerable(method)
        if self._left:
            schema = params.get("requestedSchema")
            return self._left.pop(0).to_wire(schema if isinstance(schema, dict) else {})
        self.unexpected += 1
        return {"action": "cancel"}


class Connection:
    """A connection to the server in one era, opened by `connect`."""

    def __init__(self, channel: Channel, record: _Record, era: Era, profile: Profile) -> None:
        self._channel = channel
        self._record = record
        self._profile = profile
        self._next_id = 0
        self._param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        self.era = era
        self.version: str = era
        """The revision that was negotiated."""
        self.server_info: Json = {}
        self.server_capabilities: Json = {}
        self.greeting: Reply | None = None
        """The reply to `server/discover` or `initialize`."""

    def request(
        self,
        method: str,
        params: Json,
        *,
        answer: Ask | None = None,
        meta: Json | None = None,
        profile: Profile | None = None,
    ) -> Reply:
        """Send one request and return its reply.

        `profile` takes the place of the connection's own where requests carry capabilities.
        Raises TargetFailure.
        """
        self._next_id += 1
        start = len(self._record.messages)
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        headers: dict[str, str] = {}
        all_meta = dict(meta or {})
        if self.era is Era.MODERN:
            all_meta |= {
                PROTOCOL_VERSION_META_KEY: self.version,
                CLIENT_INFO_META_KEY: CLIENT_INFO,
                CLIENT_CAPABILITIES_META_KEY: (profile or self._profile).capabilities(),
            }
            headers = {"mcp-protocol-version": self.version, "mcp-method": method}
            if method == "tools/call":
                name = str(params["name"])
                headers["mcp-name"] = encode_header_value(name)
                headers |= mcp_param_headers(
                    self._param_headers.get(name, {}), params.get("arguments") or {}
                )
        message["params"] = {**params, "_meta": all_meta} if all_meta else params
        response = self._channel.request(message, headers, answer or _Answers(()))
        result, error = response.get("result"), response.get("error")
        return Reply(
            result if isinstance(result, dict) else None,
            error if isinstance(error, dict) else None,
            tuple(self._record.messages[start:]),
        )

    def greet(self) -> None:
        """Open the era: `server/discover`, or the `initialize` handshake.

        Raises TargetFailure, whose message says why this era is not spoken.
        """
        if self.era is Era.MODERN:
            self.greeting = reply = self.request("server/discover", {})
            versions = (reply.result or {}).get("supportedVersions")
            if not isinstance(versions, list) or self.era not in versions:
                raise TargetFailure(f"server/discover: {_why(reply, f'does not offer {self.era}')}")
        else:
            self.greeting = reply = self.request(
                "initialize",
                {
                    "protocolVersion": self.era,
                    "capabilities": self._profile.capabilities(),
                    "clientInfo": CLIENT_INFO,
                },
            )
            version = (reply.result or {}).get("protocolVersion")
            if not isinstance(version, str):
                raise TargetFailure(f"initialize: {_why(reply, 'names no protocolVersion')}")
            self.version = version
            if isinstance(self._channel, _Http):
                self._channel.adopt(version)
            self._channel.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result = reply.result or {}
        meta = result.get("_meta")
        info = result.get("serverInfo") or (
            meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
        )
        self.server_info = info if isinstance(info, dict) else {}
        capabilities = result.get("capabilities")
        self.server_capabilities = capabilities if isinstance(capabilities, dict) else {}

    def list_tools(self) -> tuple[list[Json], list[WireMessage]]:
        """Return all tools over all pages, with the messages. Raises TargetFailure."""
        tools: list[Json] = []
        messages: list[WireMessage] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGES):
            reply = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            messages += reply.messages
            page = (reply.result or {}).get("tools")
            if not isinstance(page, list):
                raise TargetFailure(f"tools/list: {_why(reply, 'holds no list of tools')}")
            tools += [tool for tool in page if isinstance(tool, dict)]
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
        self._param_headers = {
            str(tool.get("name")): x_mcp_header_map(tool.get("inputSchema")) for tool in tools
        }
        return tools, messages

    def call_tool(
        self,
        name: str,
        arguments: Json,
        *,
        meta: Json | None = None,
        answers: Sequence[ElicitationAnswer] = (),
        profile: Profile | None = None,
    ) -> ToolCall:
        """Call a tool, answering its questions in order. Raises TargetFailure."""
        asked = _Answers(answers)
        replies: list[Reply] = []
        params: Json = {"name": name, "arguments": arguments}
        for _ in range(ROUNDS):
            reply = self.request("tools/call", params, answer=asked, meta=meta, profile=profile)
            replies.append(reply)
            result = reply.result or {}
            if result.get("resultType") != "input_required":
                return ToolCall(tuple(replies), asked.unexpected)
            questions = result.get("inputRequests") or {}
            params = {"name": name, "arguments": arguments}
            if isinstance(questions, dict) and questions:
                params["inputResponses"] = {
                    key: _answer_to(question, asked) for key, question in questions.items()
                }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise TargetFailure(f"{name} asked for input {ROUNDS} times and never completed")

    def close(self) -> None:
        """Close it; a server that was started for it is stopped."""
        self._channel.close()


def _answer_to(question: Any, asked: _Answers) -> Json:
    if not isinstance(question, dict):
        return {"action": "cancel"}
    try:
        return asked(str(question.get("method")), question.get("params") or {})
    except _Unanswerable:
        asked.unexpected += 1
        return {"action": "cancel"}


def _why(reply: Reply, otherwise: str) -> str:
    """Say in one clause why a reply is no use."""
    if reply.error is not None:
        return f"error {reply.error.get('code')}: {str(reply.error.get('message'))[:200]}"
    return f"the answer {otherwise}"


def connect(target: Target, era: Era, profile: Profile) -> Connection:
    """Connect to `target` in `era`; whoever gets the connection closes it.

    Raises:
        TargetFailure: No connection, or the server does not speak this era.
    """
    record = _Record()
    channel: _Stdio | _Http = _Http(target, record) if target.url else _Stdio(target, record)
    connection = Connection(channel, record, era, profile)
    try:
        connection.greet()
    except BaseException:
        connection.close()
        raise
    return connection
