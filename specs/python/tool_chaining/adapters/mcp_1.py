"""A `ClientSession` of `mcp` 1.x, for frameworks that require `mcp` below 2."""

from datetime import timedelta
from typing import Any


class SessionCaller:
    """An initialized session as a `ToolCaller`::

        follower = Follower(SessionCaller(session), consent=policy)

    `progress` is called with the progress of every call of the chain.
    """

    protocol_version = "2025-11-25"
    """The newest revision of `mcp` 1.x. A server advertises in the same way on older ones."""

    def __init__(self, session: Any, *, progress: Any = None) -> None:
        self._session, self._progress = session, progress

    @property
    def server_capabilities(self) -> Any:
        """The server's capabilities, from the initialization of the session."""
        return self._session.get_server_capabilities()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, read_timeout_seconds: float | None, meta: Any
    ) -> Any:
        """Make one call, with its provenance."""
        seconds = None if read_timeout_seconds is None else timedelta(seconds=read_timeout_seconds)
        return await self._session.call_tool(name, arguments, seconds, self._progress, meta=meta)

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Any:
        """Return one page of the tools."""
        from mcp.types import PaginatedRequestParams

        return await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor))
