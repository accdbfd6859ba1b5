"""How a client hears of changes: of lists, and of resources that it subscribed to.

Until 2025-11-25 it hears of changed lists unasked, and subscribes to a resource by a request of
its own. On 2026-07-28 it opens streams (`subscriptions/listen`), and each notification says to
which it belongs.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND

from banking_server.proxy.eras import Json
from banking_server.proxy.questions import Running
from banking_server.proxy.sdk import SUBSCRIPTION_ID_META_KEY
from banking_server.proxy.upstream import Upstream

MAX_STREAMS: Final = 100
"""Streams that one client may have open at a time."""

RELISTEN_AFTER: Final = 5.0
"""Seconds after which a stream is opened again that the server has ended."""

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
_LISTS: Final = {
    f"notifications/{kind}/list_changed": (kind, f"{kind}ListChanged")
    for kind in ("tools", "prompts", "resources")
}


class _Stream:
    """A stream that is open at the server, for a client's own stream or for its connection."""

    def __init__(self, tell: Callable[[str, Json], Awaitable[None]], own_id: Any) -> None:
        self.tell = tell
        self.own_id = own_id
        self.acknowledged = anyio.Event()


class Changes:
    """What one client wants to hear of. `tell` reaches a client of 2025-11-25 at any time."""

    def __init__(self, tasks: TaskGroup, tell: Callable[[str, Json], Awaitable[None]]) -> None:
        self._tasks = tasks
        self._tell = tell
        self._streams: dict[str, _Stream] = {}
        self._opened = 0
        self._wanted: list[tuple[Running, Json]] = []
        self._subscriptions: Counter[str] = Counter()
        self._listening: dict[str, anyio.CancelScope] = {}

    # --- clients of 2025-11-25 --------------------------------------------------------------------

    async def begin(self, upstream: Upstream) -> None:
        """Let a new connection of a client of 2025-11-25 hear of what the last one heard of."""
        uris = [*self._listening, *self._subscriptions]
        self._listening.clear()
        if not upstream.modern:
            for uri in uris:
                await _quietly(upstream, "resources/subscribe", uri)
            return
        lists = {
            member: True
            for kind, member in _LISTS.values()
            if (upstream.capabilities.get(kind) or {}).get("listChanged")
        }
        if lists:
            self._tasks.start_soon(self._listen_on, upstream, lists, anyio.CancelScope())
        for uri in uris:
            await self._listen_to(upstream, uri)

    async def subscribe(self, upstream: Upstream, method: str, params: Json) -> Json:
        """Answer `resources/subscribe` and `resources/unsubscribe`. Raises MCPError."""
        uri = str(params.get("uri"))
        if not upstream.modern:
            result = await upstream.request(method, params)
            if method == "resources/subscribe":
                self._subscriptions[uri] = 1
            else:
                del self._subscriptions[uri]
            return result
        if method == "resources/subscribe":
            await self._listen_to(upstream, uri)
        elif uri in self._listening:
            self._listening.pop(uri).cancel()
        return {}

    async def _listen_to(self, upstream: Upstream, uri: str) -> None:
        if uri in self._listening:
            return
        if len(self._listening) >= MAX_STREAMS:
            raise MCPError(code=INTERNAL_ERROR, message=f"No more than {MAX_STREAMS} subscriptions")
        self._listening[uri] = scope = anyio.CancelScope()
        wanted = {"resourceSubscriptions": [uri]}
        await self._tasks.start(self._listen_on, upstream, wanted, scope)

    async def _listen_on(
        self,
        upstream: Upstream,
        wanted: Json,
        scope: anyio.CancelScope,
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep a stream open at the server, for as long as there is one."""
        with scope:
            first = True
            while not upstream.ended:
                stream = _Stream(self._tell, None)
                async with anyio.create_task_group() as tasks:

                    async def report(stream: _Stream = stream) -> None:
                        await stream.acknowledged.wait()
                        task_status.started()

                    if first:
                        tasks.start_soon(report)
                        first = False
                    try:
                        await self._open(upstream, stream, {"notifications": wanted})
                    except MCPError as error:
                        stream.acknowledged.set()
                        if error.code == METHOD_NOT_FOUND:
                            return
                    await anyio.sleep(RELISTEN_AFTER)

    # --- clients of 2026-07-28 --------------------------------------------------------------------

    async def listen(self, upstream: Upstream, running: Running, params: Json) -> Json:
        """Answer `subscriptions/listen`: tell the client, until it or the server ends the stream.

        Raises MCPError.
        """
        if len(self._streams) + len(self._wanted) >= MAX_STREAMS:
            raise MCPError(code=INTERNAL_ERROR, message=f"No more than {MAX_STREAMS} streams")
        if upstream.modern:
            return await self._open(upstream, _Stream(running.notify, running.id), params)
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

    async def _open(self, upstream: Upstream, stream: _Stream, params: Json) -> Json:
        self._opened += 1
        name = f"listen-{self._opened}"
        self._streams[name] = stream
        try:
            result = await upstream.request("subscriptions/listen", params, request_id=name)
        finally:
            del self._streams[name]
        return _renamed(result, stream.own_id)

    # --- what the server says ---------------------------------------------------------------------

    async def told(self, method: str, params: Json) -> bool:
        """Pass a notification on if it is one of changes; return whether it was."""
        name = (params.get("_meta") or {}).get(SUBSCRIPTION_ID_META_KEY)
        if isinstance(name, str) and (stream := self._streams.get(name)) is not None:
            if method == _ACKNOWLEDGED:
                stream.acknowledged.set()
                if stream.own_id is None:
                    return True
            await stream.tell(method, _renamed(params, stream.own_id))
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
    """Return a message of a stream with the client's name for it; None if it knows of none."""
    meta = {k: v for k, v in (message.get("_meta") or {}).items() if k != SUBSCRIPTION_ID_META_KEY}
    if own_id is not None:
        meta[SUBSCRIPTION_ID_META_KEY] = own_id
    rest = {k: v for k, v in message.items() if k != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


async def _quietly(upstream: Upstream, method: str, uri: str) -> None:
    try:
        await upstream.request(method, {"uri": uri})
    except MCPError:
        return
