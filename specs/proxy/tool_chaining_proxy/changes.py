"""Notifications of changes for clients of 2026-07-28, on the streams of `subscriptions/listen`.

Each notification names its stream. A client of 2025-11-25 gets these notifications on its
connection.
"""

from typing import Any

from tool_chaining.content import member
from tool_chaining_proxy.eras import Json
from tool_chaining_proxy.questions import Running
from tool_chaining_proxy.sdk import SUBSCRIPTION_ID_META_KEY
from tool_chaining_proxy.upstream import Upstream


class Changes:
    """The streams that one caller has open."""

    def __init__(self) -> None:
        self._streams: dict[str, Running] = {}
        self._opened = 0

    async def listen(self, upstream: Upstream, running: Running, params: Json) -> Json:
        """Answer `subscriptions/listen`. It ends when the client or the server ends the stream.

        Raises MCPError.
        """
        self._opened += 1
        name = f"listen-{self._opened}"
        self._streams[name] = running
        try:
            result = await upstream.request(
                "subscriptions/listen", params, running.declared, request_id=name
            )
        finally:
            del self._streams[name]
        return _renamed(result, running.id)

    async def pass_on(self, method: str, params: Json) -> bool:
        """Pass a notification on if it belongs to a stream. Return whether it does."""
        name = member(params.get("_meta"), SUBSCRIPTION_ID_META_KEY)
        running = self._streams.get(name) if isinstance(name, str) else None
        if running is None:
            return False
        await running.notify(method, _renamed(params, running.id))
        return True


def _renamed(message: Json, own_id: Any) -> Json:
    """Return a message of a stream with the client's name for it."""
    meta = message.get("_meta")
    kept = meta if isinstance(meta, dict) else {}
    return {**message, "_meta": {**kept, SUBSCRIPTION_ID_META_KEY: own_id}}
