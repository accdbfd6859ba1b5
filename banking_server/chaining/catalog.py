"""The tools of one server, as a client sees them."""

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import Tool

from banking_server.chaining.caller import ToolLister, awaited, tool_list
from banking_server.chaining.content import on_the_wire
from banking_server.chaining.values import same

PAGE_LIMIT: Final = 100
"""Pages of `tools/list` that are read at most, so that an endless list cannot hang a chain."""

MAX_TOOLS: Final = 5_000
"""Tools that one server may list, on all pages."""

MAX_TEXT: Final = 4_000_000
"""Characters that they may have all together, with their names, descriptions and schemas."""

READINGS: Final = 3
"""How often a list is read at most that changes while it is read."""


@dataclass(frozen=True)
class ToolList:
    """What a server listed at one time, on all its pages (TC-C-12)."""

    tools: tuple[Tool, ...]
    read_at: float
    """When reading it began, by the clock of the catalog, in seconds."""
    stale_at: float
    """Until when it may be used: its `ttlMs`, the shortest of its pages. Without one, no longer."""

    def find(self, name: str) -> Tool | None:
        """Return the tool called `name`; None if there is none, or several different (TC-C-47)."""
        found = [tool for tool in self.tools if tool.name == name]
        return found[0] if found and all(same_tool(found[0], tool) for tool in found[1:]) else None


class ToolCatalog:
    """The tools that one connected server lists. Chains on the same connection can share it.

    A list is read when it is first needed, and kept for as long as its `ttlMs` says; a list that
    says nothing, as on revision 2025-11-25, is read again for each directive. So a list that is
    kept has a `ttlMs`, and the server need not tell when it changes. If the host nevertheless hears
    `notifications/tools/list_changed`, to which it can listen on revision 2026-07-28, it calls
    `changed` (TC-C-43)::

        async with client.listen(tools_list_changed=True) as events:
            async for _ in events:
                catalog.changed()

    The client's own cache is never used, since nobody else knows how old its answers are.
    `clock` returns seconds that never go back.
    """

    def __init__(self, client: ToolLister, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: ToolList | None = None
        self._changes = 0

    def now(self) -> float:
        """Return the time by the catalog's clock."""
        return self._clock()

    def changed(self) -> None:
        """Use no list any more whose reading began before now (TC-C-43)."""
        self._changes += 1
        self._kept = None

    async def list(self) -> list[Tool]:
        """Return all tools in the server's order; of several with one name, the first.

        Raises what the client's `list_tools` raises, and ValueError if it returns no tool list.
        """
        first: dict[str, Tool] = {}
        for tool in (await self.for_directive(self.now())).tools:
            first.setdefault(tool.name, tool)
        return [*first.values()]

    async def for_directive(self, arrived: float) -> ToolList:
        """Return a list that may be used for a directive that arrived at `arrived`.

        It can have been read before; then `read_at` is earlier. Raises as `list` does.
        """
        kept = self._kept
        if kept is not None and (kept.read_at >= arrived or arrived < kept.stale_at):
            return kept
        return await self.read()

    async def read(self) -> ToolList:
        """Read the list from the server, and keep it. Raises as `list` does.

        It is read again if it changes meanwhile. Raises ValueError if that never ends.
        """
        for _ in range(READINGS):
            changes = self._changes
            read = await self._read_once()
            if changes == self._changes:
                self._kept = read
                return read
        raise ValueError(f"the list of tools changed each of the {READINGS} times it was read")

    async def _read_once(self) -> ToolList:
        list_tools: Any = self._client.list_tools
        options = {"cache_mode": "refresh"} if _takes_cache_mode(list_tools) else {}
        read_at = self._clock()
        tools: list[Tool] = []
        fresh_ms: list[int] = []
        cursor: str | None = None
        seen: set[str] = set()
        text = 0
        for _ in range(PAGE_LIMIT):
            page = tool_list(await awaited(list_tools(cursor=cursor, **options), "list_tools"))
            tools += page.tools
            if len(tools) > MAX_TOOLS:
                raise ValueError(f"the server lists more than {MAX_TOOLS:,} tools")
            text += sum(_text_of(tool) for tool in page.tools)
            if text > MAX_TEXT:
                raise ValueError(f"the server's tools have more than {MAX_TEXT:,} characters")
            fresh_ms.append(page.ttl_ms)  # 0 if the server says nothing
            cursor = page.next_cursor
            if cursor is None or cursor in seen:
                break
            seen.add(cursor)
        return ToolList(tuple(tools), read_at, read_at + min(fresh_ms) / 1000)


def same_tool(one: Tool | None, other: Tool | None) -> bool:
    """Return whether two tools are defined alike, to the last hint."""
    if one is None or other is None:
        return one is other
    try:
        return same(on_the_wire(one), on_the_wire(other))
    except RecursionError:
        return False  # Nested too deeply to tell.


def _text_of(tool: Tool) -> int:
    """Return about how many characters of JSON a tool is."""
    return len(str(tool.__dict__))


def _takes_cache_mode(list_tools: Any) -> bool:
    try:
        return "cache_mode" in inspect.signature(list_tools).parameters
    except (TypeError, ValueError):
        # Some callables have no signature that Python could show.
        return False
