"""One server's tools, as a client sees them."""

from typing import Final

from mcp import Client
from mcp.client.caching import CacheMode
from mcp.types import Tool

PAGE_LIMIT: Final = 100
"""Pages of `tools/list` that are read at most: a list that never ends cannot hang a chain."""


class ToolCatalog:
    """The tools that one connected server lists, over all pages.

    Fetched when first asked for, and once more when a name is not found, since the list may
    have changed. Share one between chains on the same connection to list once.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tools: dict[str, Tool] | None = None

    async def list(self) -> list[Tool]:
        """Return all tools, in the server's order. Raises what `Client.list_tools` raises."""
        tools = await self._fetch("use") if self._tools is None else self._tools
        return [*tools.values()]

    async def find(self, name: str) -> Tool | None:
        """Return the tool called `name`, or None where the server lists no such tool.

        Raises what `Client.list_tools` raises.
        """
        tools = await self._fetch("use") if self._tools is None else self._tools
        if name not in tools:
            # Even a list that was fetched just now can be an answer out of the SDK's own cache.
            tools = await self._fetch("refresh")
        return tools.get(name)

    async def _fetch(self, cache_mode: CacheMode) -> dict[str, Tool]:
        tools: dict[str, Tool] = {}
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGE_LIMIT):
            page = await self._client.list_tools(cursor=cursor, cache_mode=cache_mode)
            for tool in page.tools:
                tools.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if cursor is None or cursor in seen:
                break
            seen.add(cursor)
        self._tools = tools
        return tools
