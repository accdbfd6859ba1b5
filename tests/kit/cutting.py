"""A server over HTTP whose connection breaks in the middle of a call."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

CUTS = ("closed", "reset", "truncated")

_SUPPORT = {"com.example/tool-chaining": {}}
_NAMES = ("begin", "cut", "go_on")


@contextmanager
def cutting_server(cut: str = "closed") -> Iterator[tuple[str, list[str]]]:
    """Serve `begin`, which names `cut` as the next tool, in both eras; `cut` breaks the connection.

    `cut` says how; "silent" is the way of a server that does not answer at all. Yields the URL, and
    the names of the tools that were called.
    """
    called: list[str] = []
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self.send_error(405)

        def do_DELETE(self) -> None:
            self._send(200, b"")

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, params = message["method"], message.get("params", {})
            if "id" not in message:
                self._send(202, b"")
                return
            if method == "tools/call":
                called.append(params["name"])
            if method == "tools/call" and params["name"] == "cut":
                if cut == "silent":
                    ended.wait()
                self._break_off()
                return
            result = _result(method, params)
            known = {"error": {"code": -32601, "message": "no"}} if result is None else {}
            answer = known or {"result": {"resultType": "complete", **(result or {})}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
            self._send(200, body.encode())

        def _send(self, status: int, body: bytes, *, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def _break_off(self) -> None:
            self.close_connection = True
            if cut == "truncated":
                self._send(200, b'{"jsonrpc": "2.0",', length=100)
            if cut == "reset":
                now = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                self.connection.close()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", called
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


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
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "experimental": _SUPPORT},
                "serverInfo": {"name": "cutting", "version": "1"},
            }
        case "tools/list":
            tools = [
                {
                    "name": name,
                    "inputSchema": {"type": "object"},
                    "annotations": {"readOnlyHint": True},
                }
                for name in _NAMES
            ]
            return {"ttlMs": 0, "cacheScope": "private", "tools": tools}
        case "tools/call":
            done: dict[str, Any] = {"type": "text", "text": f"{params['name']} was done."}
            if params["name"] != "begin":
                return {"content": [done]}
            mark = {"_meta": {"com.example/tool-chaining": {"describes": "nextTool"}}}
            return {
                "content": [done, {"type": "text", "text": "Call cut next.", **mark}],
                "structuredContent": {"nextStep": {"tool": "cut", "arguments": {}}},
                "_meta": {"nextTool": {"tool": "cut", "title": "Cut it"}},
            }
    return None
