"""What a client remembers of a server between chains: its tools, and the calls in doubt."""

import inspect
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import finalize

import anyio
from mcp_types import ListToolsResult, Tool

from tool_chaining.arguments import ArgumentCheck
from tool_chaining.caller import ToolCaller, awaited, read_as
from tool_chaining.doubt import CallsInDoubt
from tool_chaining.negotiation import NEGOTIATED_FROM

MAX_PAGES: Final = 100
"""Pages of `tools/list` that are read at most, so that an endless list does not block a chain."""

MAX_TOOLS: Final = 10_000
"""Tools that are read at most, so that a long list does not fill the memory."""

WITHOUT_TTL: Final = 60.0
"""Seconds that a list of 2025-11-25 is used. Later revisions say it in the list, by `ttlMs`."""


class Catalog:
    """The tools of one server, by name.

    A list that was read before is used as long as it may be. If it would end a chain, it is read
    again (TC-C-13).
    """

    def __init__(self) -> None:
        self.arguments: Final = ArgumentCheck()
        self._tools: dict[str, Tool] = {}
        self._until = float("-inf")

    def known(self, name: str) -> Tool | None:
        """Return a tool of the list that was read before; None if the list is too old."""
        return self._tools.get(name) if anyio.current_time() < self._until else None

    async def read(self, client: ToolCaller, name: str) -> Tool | None:
        """Read the server's list now, and return the tool `name`; None if it is not listed.

        Raises what `list_tools` raises, and ValueError if it returns no list, or too many tools.
        """
        began = anyio.current_time()
        tools, seconds = await _read_list(client)
        # The core protocol allows each name once. If there are two, the first one counts.
        self._tools = {tool.name: tool for tool in reversed(tools)}
        self._until = began + seconds
        return self._tools.get(name)


async def list_all_tools(client: ToolCaller) -> list[Tool]:
    """Return the tools on all pages of the server's list now. Raises as `Catalog.read` does."""
    return (await _read_list(client))[0]


async def _read_list(client: ToolCaller) -> tuple[list[Tool], float]:
    """Return a server's tools on all pages (TC-C-12), and the seconds that they may be used."""
    list_tools: Any = client.list_tools
    has_cache = "cache_mode" in inspect.signature(list_tools).parameters
    options = {"cache_mode": "refresh"} if has_cache else {}
    revision = getattr(client, "protocol_version", None)
    is_old = isinstance(revision, str) and revision < NEGOTIATED_FROM
    tools: list[Tool] = []
    seconds = WITHOUT_TTL if is_old else float("inf")
    cursor: str | None = None
    seen: set[str | None] = {None}
    while True:
        returned = await awaited(list_tools(cursor=cursor, **options), "list_tools")
        page = read_as(ListToolsResult, returned, "list_tools")
        tools += page.tools
        if len(tools) > MAX_TOOLS:
            raise ValueError(f"the server lists more than {MAX_TOOLS:,} tools")
        if not is_old:
            seconds = min(seconds, page.ttl_ms / 1000)
        cursor = page.next_cursor
        if cursor in seen or len(seen) == MAX_PAGES:
            return tools, seconds
        seen.add(cursor)


@dataclass(frozen=True)
class Memory:
    """What is remembered of one connected client, for as long as the object lives."""

    catalog: Catalog = field(default_factory=Catalog)
    in_doubt: CallsInDoubt = field(default_factory=CallsInDoubt)


_OF_CLIENT: Final[dict[int, Memory]] = {}
"""By the identity of a client, since an `mcp.Client` has no hash."""


def memory_of(client: object) -> Memory:
    """Return what is remembered of a connected client: one object for the client's lifetime."""
    memory = _OF_CLIENT.get(id(client))
    if memory is None:
        finalize(client, _OF_CLIENT.pop, id(client), None)
        memory = _OF_CLIENT[id(client)] = Memory()
    return memory
