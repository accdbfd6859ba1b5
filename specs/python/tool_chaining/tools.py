"""The tools of a server, as a client reads its list (TC-C-12, TC-C-13)."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio

from tool_chaining.arguments import ArgumentCheck
from tool_chaining.caller import ToolCaller, as_json
from tool_chaining.content import Json, hidden_from_model, json_string, member, visibility
from tool_chaining.negotiation import NEGOTIATED_FROM
from tool_chaining.values import same

logger = logging.getLogger(__name__)

MAX_PAGES: Final = 100
"""The most pages of `tools/list` to read, so that an endless list does not block a chain."""

MAX_TOOLS: Final = 10_000
"""The most tools to read, so that a long list does not fill the memory."""


MAX_NOTES: Final = 1_000
"""The most problems reported for one server, so that it cannot fill the operator's log."""

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True)
class Tool:
    """A tool as its server lists it.

    The hints are the server's own claims, and trusted only if the user or the host says so. A hint
    that is absent or no boolean counts as the value that permits least.
    """

    name: str
    wire: Json
    """The whole entry of the list, as JSON."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """The annotations; empty if those of the list do not count (trusted hints, in the Terms)."""

    @property
    def title(self) -> str | None:
        """The tool's name for people, if it has one."""
        title = self.wire.get("title") or member(self.wire.get("annotations"), "title")
        return title if isinstance(title, str) else None

    @property
    def input_schema(self) -> Any:
        """The schema of the arguments. PHP writes an empty object as `[]`; null is absent."""
        return self.wire.get("inputSchema") or {}

    @property
    def read_only(self) -> bool:
        """Whether the server says that the tool changes nothing."""
        return self.hints.get("readOnlyHint") is True

    @property
    def idempotent(self) -> bool:
        """Whether the server says that a second equal call has no further effect."""
        return self.read_only or self.hints.get("idempotentHint") is True

    @property
    def harmless(self) -> bool:
        """Whether trusted hints spare the question for consent (TC-C-21).

        The tool is read-only, or neither destructive nor open to the world: a payment adds only,
        and is not harmless.
        """
        closed = self.hints.get("openWorldHint") is False
        return self.read_only or (closed and self.hints.get("destructiveHint") is False)

    @property
    def hidden(self) -> bool:
        """Whether the tool is hidden from the model (TC-C-20)."""
        return hidden_from_model(self.wire.get("_meta"))


class ToolList:
    """The tools of one connection.

    A list is used again for as long as its `ttlMs` allows and no change of it was heard. It is read
    anew where it would end a chain: the tool is missing or hidden, needs consent, or its schema
    does not accept the arguments (TC-C-13).
    """

    def __init__(self) -> None:
        self.arguments: Final = ArgumentCheck()
        self._tools: dict[str, Tool] = {}
        self._left_out: frozenset[str] = frozenset()
        self._until = float("-inf")
        self._noted: set[str] = set()

    def fresh(self, name: str) -> Tool | None:
        """Return a tool of the cached list; None if that list is too old."""
        return self._tools.get(name) if anyio.current_time() < self._until else None

    def changed(self) -> None:
        """Note that the server said that its list has changed (`tools/list_changed`)."""
        self._until = float("-inf")

    async def read(self, client: ToolCaller, name: str) -> Tool | None:
        """Read the server's list now, and return the tool `name`; None if it is not listed.

        Raises what `list_tools` raises if no page that was read has the tool.
        """
        _hear_changes(client, self)
        began = anyio.current_time()
        listed = await read_list(client, self.note)
        self._tools, self._until = listed.tools, began + listed.seconds
        self._left_out = listed.left_out
        if listed.failure is not None and name not in listed.tools:
            raise listed.failure
        return listed.tools.get(name)

    def why_missing(self, name: str) -> str:
        """Say why the latest list has no tool `name`."""
        if name in self._left_out:
            return "the server lists it twice, with differences"
        if "" in self._left_out:
            return "it is not in the part of the server's list that could be read"
        return "the server does not list it"

    def note(self, problem: str) -> None:
        """Tell the operator about a problem of the server, once."""
        if problem not in self._noted and len(self._noted) < MAX_NOTES:
            self._noted.add(problem)
            logger.warning("%s", problem)


def _hear_changes(client: Any, tools: ToolList) -> None:
    """Let an `mcp.Client` tell a list of tools when it has changed.

    The SDK has no public way to add a listener to a connected client, so this puts one before the
    client's own. If the SDK moves that, changes are not heard, and a list lasts for its `ttlMs`.
    """
    session = getattr(client, "session", None)
    handler = getattr(session, "_message_handler", None)
    if session is None or handler is None or getattr(handler, "tools", None) is tools:
        return

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            tools.changed()
        await handler(message)

    hear.tools = tools  # type: ignore[attr-defined]
    session._message_handler = hear


@dataclass(frozen=True)
class Listed:
    """A server's list, as far as it could be read."""

    tools: dict[str, Tool]
    seconds: float
    """For how long it stays fresh, by its `ttlMs`."""
    left_out: frozenset[str] = frozenset()
    """The names of entries that could not be read; "" for an entry without a name."""
    failure: Exception | None = None
    """What stopped the reading. The hints of the tools do not count then (TC-C-12)."""


async def read_list(client: Any, note: Callable[[str], None]) -> Listed:
    """Read a server's list, page by page and tool by tool. `client` has the `list_tools` of a
    `ToolCaller`.

    Unreadable entries are left out, and `note` is called with a sentence about each. So is a name
    that the list gives twice with differences.
    """
    tools: dict[str, Tool] = {}
    left_out: set[str] = set()
    seconds = 0.0 if (client.protocol_version or "") < NEGOTIATED_FROM else float("inf")
    cursor: Any = None
    seen: set[Any] = {None}
    while True:
        try:
            if not isinstance(cursor, str | None):
                raise ValueError("nextCursor is not a string")
            page = as_json(await _page(client, cursor))
            if not isinstance(page.get("tools"), list):
                raise ValueError("the list has no array of tools")
        except Exception as error:
            note(f"a page of the tool list cannot be read: {json_string(str(error))}")
            unsure = {n: replace(t, hints={}) for n, t in tools.items() if n not in left_out}
            return Listed(unsure, 0.0, frozenset(left_out), error)
        for wire in page["tools"]:
            name = member(wire, "name")
            if not isinstance(name, str) or not name:
                note("an entry of the tool list has no name, and is left out")
                left_out.add("")
            elif name in tools and not same(tools[name].wire, wire):
                note(f"the tool {json_string(name)} is listed twice, and is left out")
                left_out.add(name)
            else:
                tools[name] = _tool(name, wire, note)
        if len(tools) > MAX_TOOLS:
            raise ValueError(f"the server lists more than {MAX_TOOLS:,} tools")
        ttl: Any = page.get("ttlMs")
        is_number = isinstance(ttl, int | float) and not isinstance(ttl, bool)
        seconds = min(seconds, ttl / 1000 if is_number and 0 < ttl < 2**53 else 0.0)
        cursor = page.get("nextCursor")
        if isinstance(cursor, str | None):
            if cursor in seen or len(seen) == MAX_PAGES:
                if cursor is not None:
                    note("the tool list does not end, so the rest of it is not read")
                    left_out.add("")
                clear = {n: t for n, t in tools.items() if n not in left_out}
                return Listed(clear, seconds, frozenset(left_out))
            seen.add(cursor)


async def _page(client: Any, cursor: str | None) -> Any:
    if not str(client.list_tools.__module__).startswith("mcp."):
        return await client.list_tools(cursor=cursor, cache_mode="refresh")
    return await page_as_json(client.session, cursor)


async def page_as_json(session: Any, cursor: str | None) -> Json:
    """Return one page of a list as a `ClientSession` of the SDK received it.

    The models of `mcp.Client.list_tools` turn a hint `"true"` into a boolean.
    """
    from mcp_types import ListToolsRequest, PaginatedRequestParams
    from pydantic import TypeAdapter

    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    page: Json = await session.send_request(request, TypeAdapter(Json))
    return page


def _tool(name: str, wire: Json, note: Callable[[str], None]) -> Tool:
    for place in ("inputSchema", "_meta"):
        if wire.get(place) and not isinstance(wire[place], Mapping):
            note(f"the {place} of the tool {json_string(name)} is not an object, so it is ignored")
    if not isinstance(visibility(wire.get("_meta")), list | None):
        note(f"the visibility of the tool {json_string(name)} is not a list, so it is hidden")
    annotations = wire.get("annotations")
    if annotations and not isinstance(annotations, Mapping):
        note(f"the annotations of the tool {json_string(name)} cannot be read, so they are ignored")
    hints = annotations if isinstance(annotations, Mapping) else {}
    if not all(isinstance(hints.get(hint), bool | None) for hint in _HINTS):
        note(f"a hint of the tool {json_string(name)} is not a boolean, so it is ignored")
    return Tool(name, wire, hints)
