"""How a client hears of changes: of lists, and of resources that it subscribed to.

Until 2025-11-25 it hears of changed lists unasked, and subscribes to a resource by a request of
its own. On 2026-07-28 it opens streams (`subscriptions/listen`), and each notification says to
which it belongs.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR

from banking_server.proxy.eras import Json
from banking_server.proxy.questions import Running
from banking_server.proxy.sdk import SUBSCRIPTION_ID_META_KEY
from banking_server.proxy.upstream import Upstream

MAX_STREAMS: Final = 100
"""Streams that one client may have open at a time."""

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
_LISTS: Final = {
    f"notifications/{kind}/list_changed": (kind, f"{kind}ListChanged")
    for kind in ("tools", "prompts", "resources")
}


class Changes:
    """What one client wants to hear of. `tell` reaches a client of 2025-11-25 at any time."""

    def __init__(self, tasks: TaskGroup, tell: Callable[[str, Json], Awaitable[None]]) -> None:
        self._tasks = tasks
        self._tell = tell
        self._streams: dict[str, Running] = {}
        self._opened = 0
        self._wanted: list[tuple[Running, Json]] = []
        self._subscriptions: Counter[str] = Counter()

    # --- clients of 2025-11-25 --------------------------------------------------------------------

    async def begin(self, upstream: Upstream) -> None:
        """Let a new connection of a client of 2025-11-25 hear of what the last one heard of."""
        for uri in [*self._subscriptions]:
            await _quietly(upstream, "resources/subscribe", uri)

    async def subscribe(self, upstream: Upstream, method: str, params: Json) -> Json:
        """Answer `resources/subscribe` and `resources/unsubscribe`. Raises MCPError."""
        uri = str(params.get("uri"))
        result = await upstream.request(method, params)
        if method == "resources/subscribe":
            self._subscriptions[uri] = 1
        else:
            del self._subscriptions[uri]
        return result

    # --- clients of 2026-07-28 --------------------------------------------------------------------

    async def listen(self, upstream: Upstream, running: Running, params: Json) -> Json:
        """Answer `subscriptions/listen`: tell the client, until it or the server ends the stream.

        Raises MCPError.
        """
        if len(self._streams) + len(self._wanted) >= MAX_STREAMS:
            raise MCPError(code=INTERNAL_ERROR, message=f"No more than {MAX_STREAMS} streams")
        if upstream.modern:
            return await self._open(upstream, running, params)
        asked = params.get("notifications")
        asked = asked if isinstance(asked, dict) else {}
        honoured: Json = {
            member: True for _, member in _LISTS.values() if asked.get(member) is True
        }
        uris = asked.get("resourceSubscriptions")
        uris = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        if uris:
            honoured["resourceSubscriptions"] = uris
        meta = {SUBSCRIPTION_ID_META_KEY: running.id}
        entry = (running, honoured)
        self._wanted.append(entry)
        try:
            await running.notify(_ACKNOWLEDGED, {"notifications": honoured, "_meta": meta})
            for uri in uris:
                self._subscriptions[uri] += 1
                if self._subscriptions[uri] == 1:
                    await upstream.request("resources/subscribe", {"uri": uri})
            await upstream.over()
            raise MCPError(
                code=CONNECTION_CLOSED, message="The server ended. Listen again to hear of changes."
            )
        finally:
            self._wanted.remove(entry)
            for uri in uris:
                self._subscriptions[uri] -= 1
                if self._subscriptions[uri] <= 0:
                    del self._subscriptions[uri]
                    if not upstream.ended:
                        self._tasks.start_soon(_quietly, upstream, "resources/unsubscribe", uri)

    async def _open(self, upstream: Upstream, running: Running, params: Json) -> Json:
        self._opened += 1
        name = f"listen-{self._opened}"
        self._streams[name] = running
        try:
            result = await upstream.request("subscriptions/listen", params, request_id=name)
        finally:
            del self._streams[name]
        return _renamed(result, running.id)

    # --- what the server says ---------------------------------------------------------------------

    async def told(self, method: str, params: Json) -> bool:
        """Pass a notification on if it is one of changes; return whether it was."""
        name = (params.get("_meta") or {}).get(SUBSCRIPTION_ID_META_KEY)
        if isinstance(name, str) and (running := self._streams.get(name)) is not None:
            await running.notify(method, _renamed(params, running.id))
            return True
        if method not in (*_LISTS, _UPDATED):
            return False
        for running, honoured in [*self._wanted]:
            if method == _UPDATED:
                wanted = params.get("uri") in honoured.get("resourceSubscriptions", ())
            else:
                wanted = _LISTS[method][1] in honoured
            if wanted:
                await running.notify(method, _renamed(params, running.id))
        if not self._wanted:
            await self._tell(method, params)
        return True


def _renamed(message: Json, own_id: Any) -> Json:
    """Return a message of a stream with the client's name for it."""
    meta = {**(message.get("_meta") or {}), SUBSCRIPTION_ID_META_KEY: own_id}
    return {**message, "_meta": meta}


async def _quietly(upstream: Upstream, method: str, uri: str) -> None:
    try:
        await upstream.request(method, {"uri": uri})
    except MCPError:
        return
