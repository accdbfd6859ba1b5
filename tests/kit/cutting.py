"""A server over HTTP whose connection breaks in the middle of a call."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .serving import Handler, serving

_SUPPORT = {"com.example/tool-chaining": {}}
_READS = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
_TOOLS = [{"name": name, **_READS} for name in ("begin", "cut", "go_on")]

_RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": _SUPPORT},
        "ttlMs": 0,
        "cacheScope": "public",
    },
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "experimental": _SUPPORT},
        "serverInfo": {"name": "cutting", "version": "1"},
    },
    "tools/list": {"ttlMs": 0, "cacheScope": "private", "tools": _TOOLS},
    "begin": {
        "content": [{"type": "text", "text": "It has begun."}],
        "_meta": {"nextTool": {"tool": "cut"}},
    },
    "go_on": {"content": [{"type": "text", "text": "It goes on."}]},
}
"""By method, or by tool."""


@contextmanager
def cutting_server() -> Iterator[tuple[str, list[str]]]:
    """Serve `begin`, which names `cut` as the next tool, in both eras; `cut` breaks the connection.

    Yields the URL, and the names of the tools that were called.
    """
    called: list[str] = []

    class Cutting(Handler):
        def do_POST(self) -> None:
            message = self.message()
            if "id" not in message:
                self.answer(202)
                return
            asked = message["method"]
            if asked == "tools/call":
                asked = message["params"]["name"]
                called.append(asked)
            if asked == "cut":
                self.close_connection = True
                return
            answer: dict[str, Any] = {"error": {"code": -32601, "message": "no"}}
            if asked in _RESULTS:
                answer = {"result": {"resultType": "complete", **_RESULTS[asked]}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
            self.answer(200, body.encode())

    with serving(Cutting) as origin:
        yield f"{origin}/mcp", called
