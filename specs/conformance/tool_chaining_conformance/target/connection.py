"""Raw JSON-RPC to a server under test, in both eras.

There is no client library in between, so the suite records and judges exactly what the server sent.
`connect` opens a `Connection`. `Connection.call_tool` makes one `tools/call`, answers the server's
questions, and returns all messages of the call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tool_chaining_conformance import __version__
from tool_chaining_conformance.message import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    Json,
    WireMessage,
    within,
)
from tool_chaining_conformance.names import IDENTIFIER, SETTINGS
from tool_chaining_conformance.target.channel import Ask, NotServed, Target, TargetFailure
from tool_chaining_conformance.target.elicitation import ElicitationAnswer, answering
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.target.http import Http
from tool_chaining_conformance.target.stdio import Stdio

CLIENT_INFO: Final = {"name": "tool-chaining-conformance", "version": __version__}

PAGES: Final = 100
"""The most pages of `tools/list` to read. A longer list ends the run."""

ROUNDS: Final = 10
"""The most rounds of questions in one call, as in SDKs."""


ORDINARY: Final[Mapping[str, Any]] = {"extensions": SETTINGS}
"""The declaration of the extension in most calls."""


@dataclass(frozen=True)
class Profile:
    """The capabilities that the suite declares as a client."""

    declares: Mapping[str, Any] = field(default_factory=lambda: ORDINARY)
    """The settings of the tool-chaining extension that it declares, by the member of its
    capabilities; empty if it does not declare the extension."""
    elicitation: bool = False
    """Whether it declares form elicitation."""

    def capabilities(self) -> Json:
        """Return the client capabilities."""
        declared = {place: {IDENTIFIER: settings} for place, settings in self.declares.items()}
        return {**declared, "elicitation": {"form": {}}} if self.elicitation else declared


@dataclass(frozen=True)
class Reply:
    """The response to one request, as received: a result or an error; the other one is None."""

    result: Json | None
    error: Json | None
    messages: tuple[WireMessage, ...]
    """All messages of the exchange, the request first."""
    faults: tuple[str, ...] = ()
    """The faults of its directive as I-JSON."""
    kind: Literal["complete", "interim", "unknown"] = "complete"
    """The kind of the result. The suite does not judge a result of an unknown kind."""


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


@dataclass(frozen=True)
class Listing:
    """The tools of a server that were read."""

    tools: dict[str, Json]
    """The tools by name."""
    replies: tuple[Reply, ...]
    """One for each page."""


class Connection:
    """A connection to the server in one era, opened by `connect`."""

    def __init__(self, channel: Http | Stdio, era: Era, profile: Profile) -> None:
        self._channel = channel
        self._profile = profile
        self._next_id = 0
        self._input_schemas: dict[str, object] = {}
        self.era = era
        self.version: str = era
        """The revision that was negotiated."""
        self.server_info: Json = {}
        self.server_capabilities: Json = {}
        self.standing_meta: Json = {}
        """Members of the `_meta` of every request."""
        self.greeting: Reply
        """The reply to `server/discover` or `initialize`, after `greet`."""

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
        self._channel.record.messages = []
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        all_meta = {**self.standing_meta, **(meta or {})}
        if self.era is Era.MODERN:
            all_meta |= {
                PROTOCOL_VERSION_KEY: self.version,
                CLIENT_INFO_KEY: CLIENT_INFO,
                CLIENT_CAPABILITIES_KEY: (profile or self._profile).capabilities(),
            }
        message["params"] = {**params, "_meta": all_meta} if all_meta else params
        schema = self._input_schemas.get(params["name"]) if method == "tools/call" else None
        received = self._channel.request(message, answer or answering(), input_schema=schema)
        result, error = received.body.get("result"), received.body.get("error")
        return Reply(
            result if isinstance(result, dict) else None,
            error if isinstance(error, dict) else None,
            tuple(self._channel.record.messages),
            received.faults,
            self._kind_of(result),
        )

    def _kind_of(self, result: object) -> Literal["complete", "interim", "unknown"]:
        if not isinstance(result, dict):
            return "complete"
        if self.era is Era.LEGACY and result.get("task") is not None:
            return "interim"
        match result.get("resultType"):
            case "input_required" | "task":
                return "interim"
            case str() as kind if kind != "complete":
                return "unknown"
        return "complete"

    def greet(self) -> None:
        """Begin the connection: by `server/discover`, or the `initialize` handshake.

        Raises TargetFailure, whose message says why the server does not support this era.
        """
        if self.era is Era.MODERN:
            self.greeting = reply = self.request("server/discover", {})
            if reply.error is not None:
                raise NotServed(f"server/discover: {_why(reply, '')}", reply.error.get("code"))
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
            if reply.error is not None:
                raise NotServed(f"initialize: {_why(reply, '')}", reply.error.get("code"))
            if not isinstance(version, str):
                raise TargetFailure(f"initialize: {_why(reply, 'names no protocolVersion')}")
            self.version = version
            self._channel.adopt(version)
            self._channel.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        info = within(reply.result, "serverInfo")
        self.server_info = info or within(reply.result, "_meta", SERVER_INFO_KEY)
        self.server_capabilities = within(reply.result, "capabilities")

    def list_tools(self, *, until: str | None = None, profile: Profile | None = None) -> Listing:
        """List the tools over all pages, or up to the tool `until`.

        Raises TargetFailure, also for a reply that is not a list, and for an endless list.
        """
        tools: dict[str, Json] = {}
        replies: list[Reply] = []
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            reply = self.request(
                "tools/list", {} if cursor is None else {"cursor": cursor}, profile=profile
            )
            replies.append(reply)
            page = (reply.result or {}).get("tools")
            if not isinstance(page, list):
                raise TargetFailure(f"tools/list: {_why(reply, 'has no list of tools')}")
            tools |= {one["name"]: one for one in page if isinstance(within(one).get("name"), str)}
            cursor = (reply.result or {}).get("nextCursor")
            if until is not None and until in tools:
                break
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
            if len(replies) == PAGES:
                raise TargetFailure(f"tools/list has more than {PAGES} pages, {len(tools)} tools")
        self._input_schemas |= {name: tool.get("inputSchema") for name, tool in tools.items()}
        return Listing(tools, tuple(replies))

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
        asked = answering(answers)
        replies: list[Reply] = []
        more: Json = {}
        for _ in range(ROUNDS):
            params = {"name": name, "arguments": arguments, **more}
            reply = self.request("tools/call", params, answer=asked, meta=meta, profile=profile)
            replies.append(reply)
            result = reply.result or {}
            if result.get("resultType") != "input_required":
                return ToolCall(name, arguments, tuple(replies))
            questions = within(result, "inputRequests")
            more = {"requestState": result["requestState"]} if "requestState" in result else {}
            if questions:
                more["inputResponses"] = {
                    key: asked(str(within(each).get("method"))) or {"action": "cancel"}
                    for key, each in questions.items()
                }
        raise TargetFailure(f"{name} asked for input {ROUNDS} times and did not complete")

    def new_errors(self) -> str:
        """Return the server's standard error since the last call of this method."""
        return self._channel.new_errors()

    def close(self) -> None:
        """Close the connection; a server that was started for it is stopped."""
        self._channel.close()


def _why(reply: Reply, fault: str) -> str:
    """Return in one clause why a reply cannot be used."""
    if reply.error is not None:
        return f"error {reply.error.get('code')}: {reply.error.get('message')}"
    return f"the reply {fault}"


def connect(target: Target, era: Era, profile: Profile, *, meta: Json | None = None) -> Connection:
    """Connect to `target` in `era`; the caller closes the connection.

    Args:
        target: The server.
        era: The protocol era.
        profile: The capabilities that the suite declares.
        meta: Members of the `_meta` of every request.

    Raises:
        TargetFailure: No connection, or the server does not support this era.
    """
    channel = Http(target) if target.url else Stdio(target)
    connection = Connection(channel, era, profile)
    connection.standing_meta = meta or {}
    try:
        connection.greet()
    except BaseException:
        connection.close()
        raise
    return connection
