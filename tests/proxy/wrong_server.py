"""A server whose answers are wrong in the way that the called tool's name says. It knows no SDK."""

import json
import sys
from http.server import BaseHTTPRequestHandler
from typing import Any

JSON = dict[str, Any]

OLD, NEW = "2025-11-25", "2026-07-28"
LARGE = "x" * 17 * 1024 * 1024

MALFORMED: dict[str, JSON] = {
    "a text": {"result": "done"},
    "neither": {},
    "an error that is none": {"error": "It did not work."},
}

UNREADABLE = ("half a character", "a batch")

REFUSALS = {"-32602": 200, "-32020": 400, "401": 401, "502": 502}
"""Which tool is refused with which error, and by which HTTP status."""
OWN = ("-32000", "-32603", "-32700")
"""Which tool is answered with an error of the server's own, by a code that the SDK uses too."""

LOST = ("stream nothing", "stream cut", "cut")
"""After which tool's call the answer does not come."""
FOLLOWED = [
    {"name": name, "inputSchema": {"type": "object"}} for name in (*REFUSALS, "asks of the weather")
]

ASKS: JSON = {"sure": {"method": "weather/ask"}}


def said(text: str) -> JSON:
    return {"result": {"content": [{"type": "text", "text": text}]}}


def greeting(method: str, revision: str) -> JSON:
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {"result": {"tools": FOLLOWED, **(cached if revision == NEW else {})}}
    described: JSON = {"capabilities": {"tools": {}}}
    if method == "initialize" and revision == OLD:
        info = {"name": "wrong", "version": "1"}
        return {"result": {**described, "protocolVersion": OLD, "serverInfo": info}}
    if method == "server/discover" and revision == NEW:
        return {"result": {**described, **cached, "supportedVersions": [NEW]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def answer(message: JSON, revision: str) -> str:
    """Return the line that answers a request."""
    own = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] != "tools/call":
        return json.dumps({**own, **greeting(message["method"], revision)})
    kind = message["params"]["name"].removeprefix("stream ")
    if kind in MALFORMED:
        return json.dumps({**own, **MALFORMED[kind]})
    if kind == "large":
        return json.dumps({**own, **said(LARGE)})
    if kind == "half a character":
        return json.dumps({**own, **said("\ud800")})
    if kind == "a batch":
        return json.dumps([{**own, **said("Good.")}])
    if kind.startswith("to "):
        led = {"content": [], "_meta": {"nextTool": {"tool": kind[3:], "arguments": {}}}}
        return json.dumps({**own, "result": {"resultType": "complete", **led}})
    if kind in REFUSALS or kind in OWN:
        return json.dumps({**own, "error": {"code": int(kind), "message": "No."}})
    if kind == "asks of the weather" and "requestState" not in message["params"]:
        interim = {"resultType": "input_required", "requestState": "1", "inputRequests": ASKS}
        return json.dumps({**own, "result": interim})
    good = {**said("Good.")["result"], "resultType": "complete"}
    line = json.dumps({**own, "result": good})
    # A request of its own that nobody can read is no answer, whatever its number.
    request = json.dumps({"jsonrpc": "2.0", "method": "x", "params": "\ud800", "id": own["id"]})
    return "\n".join(["Starting ...", "[]", request, line] if kind == "noise" else [line])


class Wrong(BaseHTTPRequestHandler):
    """The same over HTTP: as JSON, or in a stream. The path says which revision."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = answer(message, self.path.strip("/")).encode()
        headers = {"Content-Type": "application/json"}
        name = message.get("params", {}).get("name", "")
        if name.startswith("stream "):
            body, headers["Content-Type"] = b"data: " + body + b"\n\n", "text/event-stream"
        self.send_response(REFUSALS.get(name, 200))
        if REFUSALS.get(name, 200) > 400:
            body, headers["Content-Type"] = b"No.", "text/plain"
        length = len(body)
        if name in LOST:
            body = b": nothing\n\n" if name == "stream nothing" else body[:5]
            length = length if "cut" in name else len(body)
            self.close_connection = True
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    for line in sys.stdin:
        if {"id", "method"} <= (request := json.loads(line)).keys():
            print(answer(request, sys.argv[1]), flush=True)
