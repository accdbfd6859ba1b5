"""Raw JSON-RPC to a server under test, in both eras.

No client library stands in between: what is recorded and judged is what the server really sent.
`connect` opens a `Connection`; `Connection.call_tool` makes one `tools/call`, answering what the
server asks meanwhile, and returns every message of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from banking_server import __version__
from banking_server.chaining.directive import IDENTIFIER, SETTINGS
from banking_server.conformance.message import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    Json,
    WireMessage,
)
from banking_server.conformance.target.channel import (
    Ask,
    Channel,
    Record,
    Target,
    TargetFailure,
)
from banking_server.conformance.target.elicitation import Answers, ElicitationAnswer
from banking_server.conformance.target.era import Era
from banking_server.conformance.target.http import Http
from banking_server.conformance.target.stdio import Stdio

CLIENT_INFO: Final = {"name": "tool-chaining-conformance", "version": __version__}

PAGES: Final = 100
"""Pages of `tools/list` that are read at most."""

ROUNDS: Final = 10
"""Rounds of questions in one call at most, as SDKs have it."""


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
    """The response to one request, as received: a result or an error, the other one is None."""

    result: Json | None
    error: Json | None
    messages: tuple[WireMessage, ...]
    """Everything that was exchanged for it, the request first."""


@dataclass(frozen=True)
class ToolCall:
    """One `tools/call`, from the first request to the complete result."""

    tool: str
    arguments: Json
    replies: tuple[Reply, ...]
    """One for each round; all but the last are interim (`input_required`)."""

    @property
    def final(self) -> Reply:
        """The last reply."""
        return self.replies[-1]


class Connection:
    """A connection to the server in one era, opened by `connect`."""

    def __init__(self, channel: Channel, record: Record, era: Era, profile: Profile) -> None:
        self._channel = channel
        self._record = record
        self._profile = profile
        self._next_id = 0
        self._input_schemas: dict[str, object] = {}
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
        all_meta = dict(meta or {})
        if self.era is Era.MODERN:
            all_meta |= {
                PROTOCOL_VERSION_KEY: self.version,
                CLIENT_INFO_KEY: CLIENT_INFO,
                CLIENT_CAPABILITIES_KEY: (profile or self._profile).capabilities(),
            }
        message["params"] = {**params, "_meta": all_meta} if all_meta else params
        schema = self._input_schemas.get(params["name"]) if method == "tools/call" else None
        response = self._channel.request(message, answer or Answers(), input_schema=schema)
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
            self._channel.adopt(version)
            self._channel.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result = reply.result or {}
        meta = result.get("_meta")
        info = result.get("serverInfo") or (
            meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None
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
        self._input_schemas = {str(tool.get("name")): tool.get("inputSchema") for tool in tools}
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
        asked = Answers(answers)
        replies: list[Reply] = []
        params: Json = {"name": name, "arguments": arguments}
        for _ in range(ROUNDS):
            reply = self.request("tools/call", params, answer=asked, meta=meta, profile=profile)
            replies.append(reply)
            result = reply.result or {}
            if result.get("resultType") != "input_required":
                return ToolCall(name, arguments, tuple(replies))
            questions = result.get("inputRequests") or {}
            params = {"name": name, "arguments": arguments}
            if isinstance(questions, dict) and questions:
                params["inputResponses"] = {
                    key: asked.to_interim(question) for key, question in questions.items()
                }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise TargetFailure(f"{name} asked for input {ROUNDS} times and never completed")

    def close(self) -> None:
        """Close it; a server that was started for it is stopped."""
        self._channel.close()


def _why(reply: Reply, fault: str) -> str:
    """Say in one clause why a reply cannot be used."""
    if reply.error is not None:
        return f"error {reply.error.get('code')}: {str(reply.error.get('message'))[:200]}"
    return f"the reply {fault}"


def connect(target: Target, era: Era, profile: Profile) -> Connection:
    """Connect to `target` in `era`; the caller closes the connection.

    Raises:
        TargetFailure: No connection, or the server does not speak this era.
    """
    record = Record()
    channel: Channel = Http(target, record) if target.url else Stdio(target, record)
    connection = Connection(channel, record, era, profile)
    try:
        connection.greet()
    except BaseException:
        connection.close()
        raise
    return connection
