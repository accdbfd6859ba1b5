"""A server over HTTP whose connection breaks in the middle of a call."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .serving import Handler, serving

_SUPPORT = {"com.example/tool-chaining": {}}
_NAMES = ("begin", "cut", "go_on")


@contextmanager
def cutting_server() -> Iterator[tuple[str, list[str]]]:
    """Serve `begin`, which names `cut` as the next tool, in both eras; `cut` breaks the connection.

    Yields the URL, and the names of the tools that were called.
    """
    called: list[str] = []

    class Cutting(Handler):
        def do_POST(self) -> None:
            message = self.message()
            method, params = message["method"], message.get("params", {})
            if "id" not in message:
                self.answer(202)
                return
            if method == "tools/call":
                called.append(params["name"])
            if method == "tools/call" and params["name"] == "cut":
                self.close_connection = True
                return
            result = _result(method, params)
            known = {"error": {"code": -32601, "message": "no"}} if result is None else {}
            answer = known or {"result": {"resultType": "complete", **(result or {})}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
            self.answer(200, body.encode())

    with serving(Cutting) as origin:
        yield f"{origin}/mcp", called


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "server/discover":
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": _SUPPORT},
                "ttlMs": 0,
                "cacheScope": "public",
            }
        case "initialize":
            capabilities = {"tools": {}, "experimental": _SUPPORT}
            info = {"name": "cutting", "version": "1"}
            began = {"protocolVersion": "2025-11-25", "serverInfo": info}
            return {**began, "capabilities": capabilities}
        case "tools/list":
            more = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
            tools = [{"name": name, **more} for name in _NAMES]
            return {"ttlMs": 0, "cacheScope": "private", "tools": tools}
        case "tools/call":
            done: dict[str, Any] = {"type": "text", "text": f"{params['name']} was done."}
            if params["name"] != "begin":
                return {"content": [done]}
            return {"content": [done], "_meta": {"nextTool": {"tool": "cut"}}}
    return None
