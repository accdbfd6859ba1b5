"""The tools of one server, as a client sees them."""

import inspect
from typing import Any, Final

from mcp_types import Tool

from banking_server.chaining.caller import ToolCaller, awaited, tool_list

PAGE_LIMIT: Final = 100
"""Pages of `tools/list` that are read at most, so that an endless list cannot hang a chain."""


class ToolCatalog:
    """The tools that one connected server lists, on all pages (TC-C-12).

    The list is fetched when it is first needed, and again when a name is not in it, since the
    list may have changed (TC-C-13). Chains on the same connection can share one catalog.
    """

    def __init__(self, client: ToolCaller) -> None:
        self._client = client
        self._tools: dict[str, Tool] | None = None

    async def list(self) -> list[Tool]:
        """Return all tools in the server's order.

        Raises what the client's `list_tools` raises, and ValueError if it returns no tool list.
        """
        tools = await self._fetch() if self._tools is None else self._tools
        return [*tools.values()]

    async def find(self, name: str) -> Tool | None:
        """Return the tool called `name`, or None if the server lists no such tool.

        Raises as `list` does.
        """
        tools = await self._fetch() if self._tools is None else self._tools
        if name not in tools:
            # Even a list that was fetched just now can have come from the client's own cache.
            tools = await self._fetch(fresh=True)
        return tools.get(name)

    async def _fetch(self, *, fresh: bool = False) -> dict[str, Tool]:
        list_tools: Any = self._client.list_tools
        options = {"cache_mode": "refresh"} if fresh and _takes_cache_mode(list_tools) else {}
        tools: dict[str, Tool] = {}
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGE_LIMIT):
            page = tool_list(await awaited(list_tools(cursor=cursor, **options), "list_tools"))
            for tool in page.tools:
                tools.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if cursor is None or cursor in seen:
                break
            seen.add(cursor)
        self._tools = tools
        return tools


def _takes_cache_mode(list_tools: Any) -> bool:
    try:
        return "cache_mode" in inspect.signature(list_tools).parameters
    except (TypeError, ValueError):
        # Some callables have no signature that Python could show.
        return False
